// SPDX-License-Identifier: Apache-2.0
// Mathematical functions and roundings as LLVM IR. x is a float or a vector of floats.
//
// Instructions are inserted at the builder's insertion point. math.cc has the common functions in f32 and the
// roundings, wide_math.cc has all functions in f64.
#ifndef HONE_COMPILER_CODEGEN_LLVM_MATH_H_
#define HONE_COMPILER_CODEGEN_LLVM_MATH_H_

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <span>

#include "compiler/ir/expr.h"

namespace hone::codegen {

// How a float is multiplied by a power of two.
enum class Scaling : uint8_t {
  kBits,    // by a float whose exponent bits are computed
  kScalef,  // by AVX-512's instruction vscalef
};

// Functions of f32 in as many lanes as x has, after Cephes (Moshier, 1989) and the published error bounds of its
// polynomials: within 2 ulp of the correctly rounded result for exp and log, 4 ulp for the others. Sines, cosines and
// tangents are right for |x| < kAngleMax. Null: the function has no formula here, and EmitWideFunction has one.
llvm::Value* EmitFunction(llvm::IRBuilder<>& builder, ir::Intrinsic function, llvm::Value* x, Scaling scaling);
inline constexpr double kAngleMax = 0x1p50;

// IEEE's maximum by comparing and selecting: a NaN of either operand wins, and -0 is below +0. For x86 these are five
// instructions, LLVM's own takes seven.
llvm::Value* EmitMaxBySelects(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* y);

// All functions of the C library, computed in f64 without one. x is f32 or f64. An f32 result is right to about the
// last bit. An f64 result is within about 1e-14 of the value, relatively (pow: times its exponent). Sines and cosines
// are right for |x| < kAngleMax.
llvm::Value* EmitWideFunction(llvm::IRBuilder<>& builder, ir::Intrinsic function, std::span<llvm::Value* const> args);
// C's fmod, exact. In f64 the quotient must be below 2^1024. It is a loop: afterwards the builder is in another block.
llvm::Value* EmitWideFmod(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* y);

// x rounded to a whole number, ties to even, by additions. x is f32 or f64; the sign of zero and NaNs are kept.
llvm::Value* EmitRoundEven(llvm::IRBuilder<>& builder, llvm::Value* x);

// x plus half a unit of its fraction's bit number `bits`. x: a scalar f32. The result is an i32 with the bits of that
// sum, and is not rounded itself. An instruction that ignores the lower bits then sees x rounded to nearest, ties away
// from zero. PTX's own conversion is slower, because it tests each number for infinity first.
llvm::Value* EmitRoundedBeforeTruncation(llvm::IRBuilder<>& builder, llvm::Value* x, int bits);

// f64 as f32, rounded to odd: towards zero, and with the last bit set if that is inexact. The result is never a tie of
// the next rounding, to a shorter float, and is on the same side of every tie as x. So the two roundings act as one.
llvm::Value* EmitRoundToOdd(llvm::IRBuilder<>& builder, llvm::Value* x);

// A bf16 value is held as its bits, an i16. LLVM's own type needs library functions that no C library has, and makes
// the back end for AVX512-BF16 fail. Both conversions are correct: one rounding, ties to even.
llvm::Value* EmitFromBFloat(llvm::IRBuilder<>& builder, llvm::Value* bits);  // to f32
llvm::Value* EmitToBFloat(llvm::IRBuilder<>& builder, llvm::Value* x);       // from any float

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_MATH_H_
