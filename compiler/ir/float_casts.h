// SPDX-License-Identifier: Apache-2.0
// Casts between floats that change no value.
//
// An operator on f16 or bf16 computes in f32 and rounds its result, so operators in one expression round and widen the
// same number several times. Simplify (simplify.h) leaves these casts alone. Start with DropRoundTrips.
#ifndef HONE_COMPILER_IR_FLOAT_CASTS_H_
#define HONE_COMPILER_IR_FLOAT_CASTS_H_

#include "compiler/ir/expr.h"

namespace hone::ir {

// The expression without casts that have no effect on its value, where W is wider than N:
//   W(N(x)) = x, if all values of x are numbers of N, as in x = select(c, W(y), 0)
//   N(W(y)) = y
//   N(max(W(N(x)), y)) = N(max(x, y)), if all values of y are numbers of N; the same for min
Expr DropRoundTrips(const Expr& e);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_FLOAT_CASTS_H_
