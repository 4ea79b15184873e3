// Where the values of an index expression lie, so that it can be computed in 32 bits and divided plainly.
#ifndef HONE_COMPILER_CODEGEN_OPENCL_BOUNDS_H_
#define HONE_COMPILER_CODEGEN_OPENCL_BOUNDS_H_

#include "compiler/ir/expr.h"
#include "compiler/ir/simplify.h"

namespace hone::codegen::opencl {

// Of an i64 expression, of all its elements. Unlike ir::BoundsOf, right also where arithmetic on the way wraps: what
// may wrap is unbounded.
ir::Interval BoundsOf(const ir::Expr& e, const ir::Ranges& ranges);

bool IsBounded(ir::Interval i);
bool FitsInt(ir::Interval i);  // 32 bits

}  // namespace hone::codegen::opencl

#endif  // HONE_COMPILER_CODEGEN_OPENCL_BOUNDS_H_
