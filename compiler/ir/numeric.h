// SPDX-License-Identifier: Apache-2.0
// Numbers as the IR's types hold them: rounding, wrapping, saturating, and the bits in memory.
//
// Shared by the node constructors, the interpreter and constant folding, so that all three agree to the bit.
// Not here: what the operators do (interpret.cc, simplify).
#ifndef HONE_COMPILER_IR_NUMERIC_H_
#define HONE_COMPILER_IR_NUMERIC_H_

#include <cstdint>

#include "compiler/ir/type.h"

namespace hone::ir {

// The nearest value of a float type, ties to even. NaN becomes the quiet NaN with a clear sign and no payload.
double RoundTo(DType float_type, double value);
// The low bits of value as the integer type (or bool: != 0) reads them; unsigned zero-extended, u64 as bit pattern.
int64_t WrapTo(DType int_type, int64_t value);
// Truncates and saturates; NaN gives 0. To bool: value != 0 (so NaN gives 1).
int64_t FloatToInt(DType int_type, double value);
// The integer (read as int_type) in the float type, rounded once.
double IntToFloat(DType int_type, int64_t value, DType float_type);

// The quotient, rounded down; b > 0.
int64_t FloorDivide(int64_t a, int64_t b);

// The lowest and highest value; integers only.
int64_t LowestInt(DType int_type);
int64_t HighestInt(DType int_type);  // u64: the bit pattern of all ones

uint16_t HalfBits(double value);  // binary16, rounded once
double FromHalfBits(uint16_t bits);
uint16_t BFloatBits(double value);
double FromBFloatBits(uint16_t bits);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_NUMERIC_H_
