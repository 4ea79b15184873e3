// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/random_ir.h"

#include <cmath>
#include <limits>

#include "compiler/ir/typing.h"

namespace hone::ir {
std::string RandomIr::NewName(const char* prefix) {
  // One name in ten must be quoted.
  const char* suffix = random_.Below(10) == 0 ? "/odd name`\\" : "";
  return prefix + std::to_string(names_++) + suffix;
}

DType RandomIr::AnyDType() { return kDTypeRows[random_.Below(kDTypeRows.size())].dtype; }

DType RandomIr::ComputableDType() {
  while (true) {
    const DType dtype = AnyDType();
    if (dtype != DType::kFloat16 && dtype != DType::kBFloat16) return dtype;
  }
}

Expr RandomIr::Constant(Type type) {
  if (indices_ == Indices::kSmall && type == kIndexType) return Expr(random_.Below(17) - 8);
  if (!IsFloat(type.dtype)) return MakeInt(type, static_cast<int64_t>(random_.Next() >> random_.Below(64)));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double kSpecial[] = {0.0, -0.0, kInfinity, -kInfinity, std::nan(""), 5e-324, 1e-45, 1e300};
  const int64_t pick = random_.Below(16);
  if (pick < 8) return MakeFloat(type, kSpecial[pick]);
  return MakeFloat(type, std::ldexp(random_.Uniform() - 0.5, static_cast<int>(random_.Below(40)) - 20));
}

Expr RandomIr::Leaf(Type type) {
  std::vector<Expr> fitting;
  for (const Expr& var : vars_) {
    if (var.type() == type) fitting.push_back(var);
  }
  if (!fitting.empty() && random_.Below(3) != 0) {
    return fitting[static_cast<size_t>(random_.Below(static_cast<int64_t>(fitting.size())))];
  }
  if (type.width > 1 && type.dtype != DType::kBool && !IsStorageOnly(type.dtype) && random_.Below(2) == 0) {
    return MakeRamp(Constant(type.Element()), Constant(type.Element()), type.width);
  }
  return MakeBroadcast(Constant(type.Element()), type.width);
}

Expr RandomIr::UnaryOf(Type type, int depth) {
  static constexpr UnaryOp kFloatOps[] = {UnaryOp::kNeg,   UnaryOp::kAbs,   UnaryOp::kFloor, UnaryOp::kCeil,
                                          UnaryOp::kRound, UnaryOp::kTrunc, UnaryOp::kSqrt};
  static constexpr UnaryOp kIntOps[] = {UnaryOp::kNeg, UnaryOp::kAbs, UnaryOp::kNot};
  UnaryOp op = UnaryOp::kNot;
  if (IsFloat(type.dtype)) op = kFloatOps[random_.Below(7)];
  if (IsInt(type.dtype)) op = kIntOps[random_.Below(3)];
  return MakeUnary(op, MakeExpr(type, depth - 1));
}

Expr RandomIr::BinaryOf(Type type, int depth) {
  using B = BinaryOp;
  static constexpr B kFloatOps[] = {B::kAdd, B::kSub, B::kMul, B::kDiv, B::kMod, B::kMin, B::kMax};
  static constexpr B kBoolOps[] = {B::kAnd, B::kOr, B::kXor, B::kMin, B::kMax};
  Type operand = type;
  B op;
  if (IsFloat(type.dtype)) {
    op = kFloatOps[random_.Below(7)];
  } else if (IsInt(type.dtype)) {
    op = static_cast<B>(random_.Below(static_cast<int64_t>(B::kEq)));
  } else if (random_.Below(2) == 0) {
    op = kBoolOps[random_.Below(5)];
  } else {
    op = static_cast<B>(static_cast<int64_t>(B::kEq) + random_.Below(6));
    operand = AnyOperand(type.width);
  }
  Expr a = MakeExpr(operand, depth - 1);
  return MakeBinary(op, std::move(a), MakeExpr(operand, depth - 1));
}

Expr RandomIr::CallOf(Type type, int depth) {
  if (type.dtype == DType::kBool) {
    const Type operand{random_.Below(2) ? DType::kFloat32 : DType::kFloat16, type.width};
    const Intrinsic function = random_.Below(2) ? Intrinsic::kIsNan : Intrinsic::kIsInf;
    return MakeCall(type, function, {MakeExpr(operand, depth - 1)});
  }
  if (type.dtype != DType::kFloat32 && type.dtype != DType::kFloat64) {
    DType from = ComputableDType();
    while (SizeOf(from) != SizeOf(type.dtype)) from = AnyDType();
    return MakeCall(type, Intrinsic::kReinterpret, {MakeExpr({from, type.width}, depth - 1)});
  }
  const auto function = static_cast<Intrinsic>(random_.Below(static_cast<int64_t>(Intrinsic::kIsNan)));
  if (random_.Below(8) == 0) {
    Expr a = MakeExpr(type, depth - 1), b = MakeExpr(type, depth - 1);
    return MakeCall(type, Intrinsic::kFma, {std::move(a), std::move(b), MakeExpr(type, depth - 1)});
  }
  std::vector<Expr> args = {MakeExpr(type, depth - 1)};
  if (function == Intrinsic::kPow) args.push_back(MakeExpr(type, depth - 1));
  return MakeCall(type, function, std::move(args));
}

std::vector<Expr> RandomIr::IndicesOf(const Buffer& buffer, int width, int depth) {
  std::vector<int64_t> extents = Values(buffer->shape);
  if (extents.empty() ? width > 1 : random_.Below(4) == 0) extents = {NumElements(*buffer)};
  std::vector<Expr> indices;
  for (size_t i = 0; i < extents.size(); ++i) {
    const int own = i + 1 == extents.size() ? width : 1;
    indices.push_back(FloorMod(MakeExpr(kIndexType.WithWidth(own), depth - 1), MakeBroadcast(extents[i], own)));
  }
  return indices;
}

Expr RandomIr::LoadOf(Type type, int depth) {
  std::vector<Buffer> fitting;
  for (const Buffer& buffer : buffers_) {
    if (buffer->dtype == type.dtype) fitting.push_back(buffer);
  }
  if (fitting.empty()) return Leaf(type);
  const Buffer& buffer = fitting[static_cast<size_t>(random_.Below(static_cast<int64_t>(fitting.size())))];
  std::vector<Expr> indices = IndicesOf(buffer, type.width, depth);
  Expr mask = random_.Below(3) == 0 && !indices.empty() ? MakeExpr({DType::kBool, type.width}, depth - 1) : Expr();
  return MakeLoad(buffer, std::move(indices), std::move(mask));
}

Expr RandomIr::MakeExpr(Type type, int depth) {
  if (depth <= 0) return Leaf(type);
  const bool computable = type.dtype != DType::kFloat16 && type.dtype != DType::kBFloat16;
  switch (random_.Below(computable ? 9 : 4)) {
    case 0:
      return MakeCast(type, MakeExpr({AnyDType(), type.width}, depth - 1));
    case 1: {
      Expr condition = MakeExpr({DType::kBool, type.width}, depth - 1);
      Expr on_true = MakeExpr(type, depth - 1);
      return MakeSelect(std::move(condition), std::move(on_true), MakeExpr(type, depth - 1));
    }
    case 2:
      return LoadOf(type, depth);
    case 3:
      return type.width > 1 ? MakeBroadcast(MakeExpr(type.Element(), depth - 1), type.width) : Leaf(type);
    case 4:
      return UnaryOf(type, depth);
    case 5:
      return CallOf(type, depth);
    default:
      return BinaryOf(type, depth);
  }
}

Stmt RandomIr::MakeStoreTo(const Buffer& buffer, int depth) {
  const int width = random_.Below(3) == 0 ? 4 : 1;
  std::vector<Expr> indices = IndicesOf(buffer, width, depth);
  Expr value = MakeExpr({buffer->dtype, width}, depth);
  Expr mask = random_.Below(3) == 0 && !indices.empty() ? MakeExpr({DType::kBool, width}, 1) : Expr();
  return MakeStore(buffer, std::move(indices), std::move(value), std::move(mask));
}

Stmt RandomIr::MakeLoop(int depth) {
  auto kind = static_cast<LoopKind>(random_.Below(4));
  if (in_parallel_ && kind == LoopKind::kParallel) kind = LoopKind::kSerial;
  const bool constant = kind == LoopKind::kVectorized || kind == LoopKind::kUnrolled;
  Expr extent = constant ? Expr(random_.Below(4)) : Min(MakeExpr(kIndexType, 1), Expr(3));
  const Expr var = MakeVar(NewName("i"));
  const bool outer = in_parallel_;
  in_parallel_ = outer || kind == LoopKind::kParallel;
  vars_.push_back(var);
  Stmt body = MakeStmt(depth - 1);
  vars_.pop_back();
  in_parallel_ = outer;
  return MakeFor(var.As<Var>()->name, std::move(extent), kind, std::move(body));
}

Stmt RandomIr::MakeStmt(int depth) {
  const int64_t pick = depth <= 0 ? 0 : random_.Below(7);
  if (pick <= 1) {
    return MakeStoreTo(buffers_[static_cast<size_t>(random_.Below(static_cast<int64_t>(buffers_.size())))], 3);
  }
  if (pick == 2) return MakeLoop(depth);
  if (pick == 3) {
    std::vector<Stmt> stmts;
    for (int64_t n = random_.Below(4); n > 0; --n) stmts.push_back(MakeStmt(depth - 1));
    return MakeBlock(std::move(stmts), random_.Below(2) ? NewName("stage") : "");
  }
  if (pick == 4) {
    Expr condition = MakeExpr(kBoolType, 2);
    Stmt then_case = MakeStmt(depth - 1);
    return MakeIf(std::move(condition), std::move(then_case), random_.Below(2) ? MakeStmt(depth - 1) : Stmt());
  }
  if (pick == 5) {
    const Scope scope = !in_parallel_ && random_.Below(2) ? Scope::kWorkspace : Scope::kLocal;
    const Buffer buffer = MakeBuffer(NewName("t"), AnyDType(), {random_.Below(4) + 1}, scope);
    buffers_.push_back(buffer);
    Stmt body = MakeStmt(depth - 1);
    buffers_.pop_back();
    return MakeAlloc(buffer, std::move(body));
  }
  const Type type{AnyDType(), random_.Below(2) ? 4 : 1};
  Expr value = MakeExpr(type, 2);
  const Expr var = MakeVar(NewName("x"), type);
  vars_.push_back(var);
  Stmt body = MakeStmt(depth - 1);
  vars_.pop_back();
  return MakeLet(var.As<Var>()->name, std::move(value), std::move(body));
}

Func RandomIr::MakeFunc() {
  Func func{NewName("f").substr(0, 2), {}, {}};
  const std::vector<int64_t> kShapes[] = {{}, {5}, {2, 3}, {2, 1, 4}};
  for (const DTypeRow& row : kDTypeRows) {
    func.params.push_back(MakeBuffer(NewName("p"), row.dtype, kShapes[random_.Below(4)]));
  }
  buffers_ = func.params;
  func.body = MakeStmt(5);
  return func;
}

}  // namespace hone::ir
