// SPDX-License-Identifier: Apache-2.0
// Numbers in the representation of the IR's types: rounding, wrapping, saturation and bit patterns.
//
// Shared by node constructors, interpreter and constant folding, so that all three agree to the bit. Not here: the
// semantics of operators (eval_ops.cc, simplify.h).
#ifndef HONE_COMPILER_IR_NUMERIC_H_
#define HONE_COMPILER_IR_NUMERIC_H_

#include <cstdint>

#include "compiler/ir/type.h"

namespace hone::ir {

// The nearest value of the float type, ties to even. Any NaN becomes the positive quiet NaN without payload.
double RoundTo(DType float_type, double value);
// The low bits of value, read as the integer type. Unsigned types are zero-extended; u64 is a bit pattern. bool: value
// != 0.
int64_t WrapTo(DType int_type, int64_t value);
// Truncates and saturates; NaN gives 0. To bool: value != 0 (so NaN gives 1).
int64_t FloatToInt(DType int_type, double value);
// The integer, of type int_type, in the float type, rounded once.
double IntToFloat(DType int_type, int64_t value, DType float_type);

// a / b rounded towards minus infinity; b > 0.
int64_t FloorDivide(int64_t a, int64_t b);

// The lowest and highest value of an integer type.
int64_t LowestInt(DType int_type);
int64_t HighestInt(DType int_type);  // u64: the bit pattern of all ones

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_NUMERIC_H_
