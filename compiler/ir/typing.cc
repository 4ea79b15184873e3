// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/typing.h"

namespace hone::ir {

bool IsCompare(BinaryOp op) { return op >= BinaryOp::kEq; }

bool IsStorageOnly(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

int ArgCount(Intrinsic function) {
  switch (function) {
    case Intrinsic::kPow:
      return 2;
    case Intrinsic::kFma:
      return 3;
    default:
      return 1;
  }
}

std::optional<Type> UnaryType(UnaryOp op, Type a) {
  bool ok = false;
  switch (op) {
    case UnaryOp::kNeg:
    case UnaryOp::kAbs:
      ok = a.dtype != DType::kBool;
      break;
    case UnaryOp::kNot:
      ok = !IsFloat(a.dtype);
      break;
    case UnaryOp::kFloor:
    case UnaryOp::kCeil:
    case UnaryOp::kRound:
    case UnaryOp::kTrunc:
    case UnaryOp::kSqrt:
      ok = IsFloat(a.dtype);
      break;
  }
  return ok ? std::optional(a) : std::nullopt;
}

std::optional<Type> BinaryType(BinaryOp op, Type a, Type b) {
  if (a != b) return std::nullopt;
  bool ok = false;
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
      ok = a.dtype != DType::kBool;
      break;
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
    case BinaryOp::kShl:
    case BinaryOp::kShr:
      ok = IsInt(a.dtype);
      break;
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kXor:
      ok = !IsFloat(a.dtype);
      break;
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      ok = true;
      break;
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
      return Type{DType::kBool, a.width};
  }
  return ok ? std::optional(a) : std::nullopt;
}

std::optional<Type> SelectType(Type condition, Type on_true, Type on_false) {
  if (on_true != on_false || condition != Type{DType::kBool, on_true.width}) return std::nullopt;
  return on_true;
}

std::optional<Type> CastType(Type to, Type from) { return to.width == from.width ? std::optional(to) : std::nullopt; }

std::optional<Type> CallType(Type type, Intrinsic function, std::span<const Expr> args) {
  if (args.size() != static_cast<size_t>(ArgCount(function))) return std::nullopt;
  const Type first = args[0].type();
  if (first.width != type.width) return std::nullopt;
  switch (function) {
    case Intrinsic::kReinterpret: {
      const bool ok = SizeOf(first.dtype) == SizeOf(type.dtype) && type.dtype != DType::kBool;
      return ok ? std::optional(type) : std::nullopt;
    }
    case Intrinsic::kIsNan:
    case Intrinsic::kIsInf: {
      const bool ok = IsFloat(first.dtype) && type.dtype == DType::kBool;
      return ok ? std::optional(type) : std::nullopt;
    }
    default:
      break;
  }
  if (!IsFloat(type.dtype)) return std::nullopt;
  for (const Expr& arg : args) {
    if (arg.type() != type) return std::nullopt;
  }
  return type;
}

std::optional<Type> AccessType(const BufferNode& buffer, std::span<const Expr> indices, const Expr& mask) {
  if (indices.size() != buffer.shape.size() && indices.size() != 1) return std::nullopt;
  int width = 1;
  for (size_t i = 0; i < indices.size(); ++i) {
    const Type type = indices[i].type();
    if (type.dtype != kIndexType.dtype) return std::nullopt;
    if (i + 1 == indices.size()) {
      width = type.width;
    } else if (type.width != 1) {
      return std::nullopt;
    }
  }
  if (mask.defined() && mask.type() != Type{DType::kBool, width}) return std::nullopt;
  return Type{buffer.dtype, width};
}

std::optional<Type> RampType(Type base, Type stride, int width) {
  if (width < 2 || base != stride || base.width != 1 || base.dtype == DType::kBool) return std::nullopt;
  return base.WithWidth(width);
}

std::optional<Type> BroadcastType(Type value, int width) {
  if (width < 1 || value.width != 1) return std::nullopt;
  return value.WithWidth(width);
}

}  // namespace hone::ir
