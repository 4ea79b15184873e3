// SPDX-License-Identifier: Apache-2.0
// Where the values of an index expression lie, so that it can be computed in 32 bits and divided plainly: for back
// ends.
#ifndef HONE_COMPILER_IR_SAFE_BOUNDS_H_
#define HONE_COMPILER_IR_SAFE_BOUNDS_H_

#include "compiler/ir/expr.h"
#include "compiler/ir/simplify.h"

namespace hone::ir {

// Of an i64 expression, of all its elements. Unlike BoundsOf, right also where arithmetic on the way wraps: what may
// wrap is unbounded.
Interval SafeBoundsOf(const Expr& e, const Ranges& ranges);

// Whether both ends are known; cheaper than to ask where they are.
bool HasSafeBounds(const Expr& e, const Ranges& ranges);

bool IsBounded(Interval i);
bool FitsInt(Interval i);  // 32 bits

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_SAFE_BOUNDS_H_
