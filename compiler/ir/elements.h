// SPDX-License-Identifier: Apache-2.0
// Single tensor elements in memory as IR constants, for any element type. For printing, filling and comparing tensors;
// not fast.
#ifndef HONE_COMPILER_IR_ELEMENTS_H_
#define HONE_COMPILER_IR_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/random.h"
#include "compiler/ir/expr.h"

namespace hone::ir {

// Reads the element at `bytes` as an IntImm or FloatImm.
Expr ReadElement(DType dtype, const std::byte* bytes);
// Writes a constant (an IntImm or FloatImm) to the SizeOf(its type) bytes at `bytes`.
void WriteElement(const Expr& constant, std::byte* bytes);
// Writes a number as an element of a float type, rounded once.
void WriteElement(DType float_type, double value, std::byte* bytes);
// Reads the element as a number. 64-bit integers are rounded.
double ElementAsDouble(DType dtype, const std::byte* bytes);
// Fills whole elements with values drawn uniformly from [low, high]. Integers are drawn from the whole numbers from
// floor(low) to floor(high). For bool the range is ignored and values are 0 or 1.
void FillRandom(DType dtype, double low, double high, Random& random, std::span<std::byte> bytes);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_ELEMENTS_H_
