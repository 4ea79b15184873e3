// SPDX-License-Identifier: Apache-2.0
// Bounds of index expressions that hold even where arithmetic wraps. Back ends use them to compute in 32 bits and to
// choose cheap divisions.
#ifndef HONE_COMPILER_IR_SAFE_BOUNDS_H_
#define HONE_COMPILER_IR_SAFE_BOUNDS_H_

#include "compiler/ir/expr.h"
#include "compiler/ir/simplify.h"

namespace hone::ir {

// The range of the values of an i64 expression, over all vector elements. Unlike BoundsOf it is right where
// intermediate results wrap: an expression that may wrap is unbounded.
Interval SafeBoundsOf(const Expr& e, const Ranges& ranges);

// Whether SafeBoundsOf is bounded on both sides. Cheaper than computing the bounds.
bool HasSafeBounds(const Expr& e, const Ranges& ranges);

bool IsBounded(Interval i);
bool FitsInt(Interval i);  // whether all values fit 32 bits, signed

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_SAFE_BOUNDS_H_
