// SPDX-License-Identifier: Apache-2.0
// The IR's element types, operators and casts as LLVM values. No memory, no names: expr_emitter.h has those.
//
// A value is a scalar or a vector. Every function inserts its instructions at the builder's insertion point. A bf16
// value is held as its 16 bits (math.h), a bool as an i1.
#ifndef HONE_COMPILER_CODEGEN_LLVM_ARITHMETIC_H_
#define HONE_COMPILER_CODEGEN_LLVM_ARITHMETIC_H_

#include <llvm/IR/IRBuilder.h>

#include "compiler/ir/expr.h"

namespace hone::codegen {

// The type of one element in a buffer: a bool is a byte there.
llvm::Type* MemoryTypeOf(llvm::IRBuilder<>& builder, ir::DType dtype);
// The type of a value in registers.
llvm::Type* TypeOf(llvm::IRBuilder<>& builder, ir::Type type);

// `value` of type `from` as `to`, by the rules of docs/IR.md: floats are rounded once, float to integer saturates.
llvm::Value* EmitCast(llvm::IRBuilder<>& builder, llvm::Value* value, ir::Type from, ir::Type to);
llvm::Value* EmitUnary(llvm::IRBuilder<>& builder, ir::UnaryOp op, ir::DType dtype, llvm::Value* a);

// Sums, products, bits, shifts and comparisons of integers. A shift by the width or more gives 0. Other operators
// abort: divisions and remainders have EmitDivision, kMin and kMax have EmitIntMinMax.
llvm::Value* EmitIntBinary(llvm::IRBuilder<>& builder, ir::BinaryOp op, bool is_signed, llvm::Value* a, llvm::Value* b);
// What is known of the operands of an integer division or remainder.
struct DivisionFacts {
  bool is_unsigned = false;          // the type is unsigned, or a >= 0 and b > 0
  bool divisor_is_positive = false;  // b is a constant above 0
};
// op: kDiv, kMod, kFloorDiv or kFloorMod. Never traps: a / 0 is 0, and the lowest value by -1 wraps.
llvm::Value* EmitDivision(llvm::IRBuilder<>& builder, ir::BinaryOp op, DivisionFacts facts, llvm::Value* a,
                          llvm::Value* b);
llvm::Value* EmitIntMinMax(llvm::IRBuilder<>& builder, bool is_min, bool is_signed, llvm::Value* a, llvm::Value* b);

// All but kMin, kMax (EmitFloatMinMax) and kMod, which each back end has its own way for (ExprEmitter::EmitFloatMod).
llvm::Value* EmitFloatBinary(llvm::IRBuilder<>& builder, ir::BinaryOp op, llvm::Value* a, llvm::Value* b);
// IEEE's minimum and maximum: a NaN wins, and -0 is below +0.
llvm::Value* EmitFloatMinMax(llvm::IRBuilder<>& builder, bool is_min, llvm::Value* a, llvm::Value* b);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_ARITHMETIC_H_
