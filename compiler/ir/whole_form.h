// SPDX-License-Identifier: Apache-2.0
// Integers that are computed by floats, as exporters write arithmetic on shapes: int(ceil(float(n) / 32) * 32).
//
// Where every step is exact, or rounds to an integer that is certain, integer arithmetic gives the same number. Sizes
// can then be compared and simplified. Start with WithoutFloats.
#ifndef HONE_COMPILER_IR_WHOLE_FORM_H_
#define HONE_COMPILER_IR_WHOLE_FORM_H_

#include <optional>

#include "compiler/ir/expr.h"
#include "compiler/ir/simplify.h"

namespace hone::ir {

// An i64 expression without floats that equals e, an integer, for all values in the ranges; nullopt if there is none
// that is certain.
std::optional<Expr> WithoutFloats(const Expr& e, const Ranges& ranges);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_WHOLE_FORM_H_
