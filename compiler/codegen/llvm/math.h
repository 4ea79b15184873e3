// Functions of numbers as LLVM IR: where they are inserted is the builder's. x is a float or a vector of them.
//
// math.cc has exp, log, tanh, erf in vectors, and rounding; device_math.cc what a CPU takes from its C library.
#ifndef HONE_COMPILER_CODEGEN_LLVM_MATH_H_
#define HONE_COMPILER_CODEGEN_LLVM_MATH_H_

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <span>

#include "compiler/ir/expr.h"

namespace hone::codegen {

// How a float is multiplied by a power of two: by floats with these bits, or by AVX-512's instruction for it.
enum class Scaling : uint8_t { kBits, kScalef };

// Vector approximations for f32, after Cephes (Moshier, 1989) and the published error bounds of its polynomials: within
// 2 ulp of the correctly rounded result for exp and log, 4 ulp for tanh and erf. x: float or vector of float.
llvm::Value* EmitExp(llvm::IRBuilder<>& builder, llvm::Value* x, Scaling scaling);
llvm::Value* EmitLog(llvm::IRBuilder<>& builder, llvm::Value* x);
llvm::Value* EmitTanh(llvm::IRBuilder<>& builder, llvm::Value* x, Scaling scaling);
llvm::Value* EmitErf(llvm::IRBuilder<>& builder, llvm::Value* x, Scaling scaling);
llvm::Value* EmitSigmoid(llvm::IRBuilder<>& builder, llvm::Value* x, Scaling scaling);

// IEEE's maximum, of any floats: a NaN of either wins, and -0 is below +0. Five instructions where LLVM takes seven.
llvm::Value* EmitMaxOfX86(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* y);

// The functions that a CPU takes from its C library, for devices that have none, of f32 and f64 and vectors of them.
// Computed in f64, so right to about the last bit of f32; of f64 within some 1e-14 of the value (of pow, times the size
// of its exponent). Sines and cosines of more than 2^50 are not right.
llvm::Value* EmitDeviceFunction(llvm::IRBuilder<>& builder, ir::Intrinsic function, std::span<llvm::Value* const> args);
// C's fmod, exact while the quotient is below 2^53.
llvm::Value* EmitDeviceFmod(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* y);

// The float whose first `bits` of fraction are those of x, rounded to nearest with ties away from zero; what comes
// behind is not read. Half of the last bit is added, which sign and exponent alone are once they are scaled. PTX's own
// conversion asks each number first whether it is finite. As bits.
llvm::Value* EmitHalfMore(llvm::IRBuilder<>& builder, llvm::Value* x, int bits);

// bf16 is its bits, an i16, or a vector of them: LLVM's own type needs functions that no C library has, and makes its
// back end for AVX512-BF16 fail. Both are exact: one rounding, ties to even.
llvm::Value* EmitFromBFloat(llvm::IRBuilder<>& builder, llvm::Value* bits);  // to f32
llvm::Value* EmitToBFloat(llvm::IRBuilder<>& builder, llvm::Value* x);       // from any float

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_MATH_H_
