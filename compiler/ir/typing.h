// SPDX-License-Identifier: Apache-2.0
// The typing rules: which operand types an operator takes and what type it yields. Used by the constructors (which
// abort), the parser (which reports a line) and the verifier (which returns a Status).
//
// nullopt means ill-typed. Arithmetic in float16 and bfloat16 is well-typed here; the verifier forbids it
// (IsStorageOnly).
#ifndef HONE_COMPILER_IR_TYPING_H_
#define HONE_COMPILER_IR_TYPING_H_

#include <optional>
#include <span>

#include "compiler/ir/expr.h"

namespace hone::ir {

std::optional<Type> UnaryType(UnaryOp op, Type a);
std::optional<Type> BinaryType(BinaryOp op, Type a, Type b);
std::optional<Type> SelectType(Type condition, Type on_true, Type on_false);
std::optional<Type> CastType(Type to, Type from);
// `type` is the wanted result. kReinterpret takes it; for the other intrinsics it must be the type they yield.
std::optional<Type> CallType(Type type, Intrinsic function, std::span<const Expr> args);
// Indices are kIndexType, all scalar but the last; the mask (if defined) is bool with the width of the last.
std::optional<Type> AccessType(const BufferNode& buffer, std::span<const Expr> indices, const Expr& mask);
std::optional<Type> RampType(Type base, Type stride, int width);
std::optional<Type> BroadcastType(Type value, int width);

bool IsCompare(BinaryOp op);
// Whether the type is only for memory and casts (float16, bfloat16).
bool IsStorageOnly(DType dtype);
int ArgCount(Intrinsic function);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_TYPING_H_
