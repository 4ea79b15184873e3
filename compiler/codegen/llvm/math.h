// SPDX-License-Identifier: Apache-2.0
// Functions of numbers as LLVM IR: where they are inserted is the builder's. x is a float or a vector of them.
//
// math.cc has the common functions in f32, and rounding; wide_math.cc all of them in f64.
#ifndef HONE_COMPILER_CODEGEN_LLVM_MATH_H_
#define HONE_COMPILER_CODEGEN_LLVM_MATH_H_

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <span>

#include "compiler/ir/expr.h"

namespace hone::codegen {

// How a float is multiplied by a power of two: by floats with these bits, or by AVX-512's instruction for it.
enum class Scaling : uint8_t { kBits, kScalef };

// Functions of f32 in as many lanes as x has, after Cephes (Moshier, 1989) and the published error bounds of its
// polynomials: within 2 ulp of the correctly rounded result for exp and log, 4 ulp for the others. Sines, cosines and
// tangents are right for |x| < kMostAngle. Null for functions that have none here.
llvm::Value* EmitFunction(llvm::IRBuilder<>& builder, ir::Intrinsic function, llvm::Value* x, Scaling scaling);
inline constexpr double kMostAngle = 0x1p50;

// IEEE's maximum, of any floats: a NaN of either wins, and -0 is below +0. Five instructions where LLVM takes seven.
llvm::Value* EmitMaxOfX86(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* y);

// All functions that a C library has, computed in f64 by formulas that need none, of f32 and f64 and vectors of them:
// right to about the last bit of f32; of f64 within some 1e-14 of the value (of pow, times the size of its exponent).
// Sines and cosines are right below kMostAngle.
llvm::Value* EmitWideFunction(llvm::IRBuilder<>& builder, ir::Intrinsic function, std::span<llvm::Value* const> args);
// C's fmod, exact; of f64 while the quotient is a number, below 2^1024. It takes turns: the builder stands in another
// block after it.
llvm::Value* EmitWideFmod(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* y);

// The float whose first `bits` of fraction are those of x, rounded to nearest with ties away from zero; what comes
// behind is not read. Half of the last bit is added, which sign and exponent alone are once they are scaled. PTX's own
// conversion asks each number first whether it is finite. As bits.
llvm::Value* EmitHalfMore(llvm::IRBuilder<>& builder, llvm::Value* x, int bits);

// f64 as f32, towards zero and, where that is not exact, with an odd last bit: no tie of the rounding to a shorter
// float that comes next, and on its own side of every one, so that both together are one rounding.
llvm::Value* EmitOddSingle(llvm::IRBuilder<>& builder, llvm::Value* x);

// bf16 is its bits, an i16, or a vector of them: LLVM's own type needs functions that no C library has, and makes its
// back end for AVX512-BF16 fail. Both are exact: one rounding, ties to even.
llvm::Value* EmitFromBFloat(llvm::IRBuilder<>& builder, llvm::Value* bits);  // to f32
llvm::Value* EmitToBFloat(llvm::IRBuilder<>& builder, llvm::Value* x);       // from any float

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_MATH_H_
