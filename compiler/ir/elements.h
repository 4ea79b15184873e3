// SPDX-License-Identifier: Apache-2.0
// Elements of tensors in memory as constants of the IR, of any element type: for what prints, fills and compares
// tensors and need not be fast.
#ifndef HONE_COMPILER_IR_ELEMENTS_H_
#define HONE_COMPILER_IR_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/random.h"
#include "compiler/ir/expr.h"

namespace hone::ir {

// The element that begins at `bytes`: an IntImm or FloatImm.
Expr ReadElement(DType dtype, const std::byte* bytes);
// The constant (an IntImm or FloatImm) to the SizeOf bytes that begin at `bytes`.
void WriteElement(const Expr& constant, std::byte* bytes);
// The same of a float type for a number, rounded once.
void WriteElement(DType float_type, double value, std::byte* bytes);
// The element as a number; 64-bit integers are rounded.
double ElementAsDouble(DType dtype, const std::byte* bytes);
// Whole elements drawn uniformly from [low, high], of integers those that are whole, of bool 0 and 1 whatever the
// range.
void FillRandom(DType dtype, double low, double high, Random& random, std::span<std::byte> bytes);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_ELEMENTS_H_
