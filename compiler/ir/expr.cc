// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/expr.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/status.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/op_names.h"
#include "compiler/ir/typing.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

template <typename Node>
Expr Make(Node node, Type type) {
  return Expr(std::make_shared<const ExprNode>(ExprNode{std::move(node), type}));
}

// Reports an operator and the operand types it was given, then aborts. Only a bug of the compiler gets here.
[[noreturn]] void IllTyped(std::string_view what, std::initializer_list<Type> types) {
  std::string text = fmt::format("internal error: ill-typed {}:", what);
  for (const Type& type : types) text += " " + ToString(type);
  std::fprintf(stderr, "%s\n", text.c_str());
  std::abort();
}

bool EqualExprs(const IntImm& a, const IntImm& b) { return a.type == b.type && a.value == b.value; }
bool EqualExprs(const FloatImm& a, const FloatImm& b) {
  return a.type == b.type && std::bit_cast<uint64_t>(a.value) == std::bit_cast<uint64_t>(b.value);
}
bool EqualExprs(const Var& a, const Var& b) { return a.type == b.type && a.name == b.name; }
bool EqualExprs(const Cast& a, const Cast& b) { return a.type == b.type && Equal(a.value, b.value); }
bool EqualExprs(const Unary& a, const Unary& b) { return a.op == b.op && Equal(a.a, b.a); }
bool EqualExprs(const Binary& a, const Binary& b) { return a.op == b.op && Equal(a.a, b.a) && Equal(a.b, b.b); }
bool EqualExprs(const Select& a, const Select& b) {
  return Equal(a.condition, b.condition) && Equal(a.on_true, b.on_true) && Equal(a.on_false, b.on_false);
}
bool EqualExprs(const Load& a, const Load& b) {
  return a.buffer == b.buffer && Equal(a.indices, b.indices) && Equal(a.mask, b.mask);
}
bool EqualExprs(const Call& a, const Call& b) {
  return a.type == b.type && a.function == b.function && Equal(a.args, b.args);
}
bool EqualExprs(const Ramp& a, const Ramp& b) {
  return a.width == b.width && Equal(a.base, b.base) && Equal(a.stride, b.stride);
}
bool EqualExprs(const Broadcast& a, const Broadcast& b) { return a.width == b.width && Equal(a.value, b.value); }

}  // namespace

Expr::Expr(int64_t value) : node_(std::make_shared<const ExprNode>(ExprNode{IntImm{kIndexType, value}, kIndexType})) {}

Type Expr::type() const {
  HONE_CHECK(node_ != nullptr);
  return node_->type;
}

bool Equal(const Expr& a, const Expr& b) {
  if (a.SameHandle(b)) return true;
  if (!a.defined() || !b.defined() || a.type() != b.type()) return false;
  return std::visit(
      [&](const auto& node) {
        const auto* other = b.As<std::decay_t<decltype(node)>>();
        return other != nullptr && EqualExprs(node, *other);
      },
      a.node().value);
}

bool Equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Expr& x, const Expr& y) { return Equal(x, y); });
}

Buffer MakeBuffer(std::string name, DType dtype, Shape shape, Scope scope) {
  for (const Size& extent : shape) HONE_CHECK(extent.max() >= 0);
  return std::make_shared<const BufferNode>(BufferNode{std::move(name), dtype, std::move(shape), scope});
}

int64_t NumElements(const BufferNode& buffer) {
  int64_t count = 1;
  for (const Size& extent : buffer.shape) count *= extent.max();
  return count;
}

Expr MakeInt(Type type, int64_t value) {
  if (type.width != 1 || IsFloat(type.dtype)) IllTyped("integer constant", {type});
  return Make(IntImm{type, WrapTo(type.dtype, value)}, type);
}

Expr MakeFloat(Type type, double value) {
  if (type.width != 1 || !IsFloat(type.dtype)) IllTyped("float constant", {type});
  return Make(FloatImm{type, RoundTo(type.dtype, value)}, type);
}

Expr MakeBool(bool value) { return MakeInt(kBoolType, value ? 1 : 0); }

Expr MakeZero(Type type) { return MakeConst(type, 0.0); }

bool IsZero(const Expr& e) {
  const IntImm* i = e.As<IntImm>();
  const FloatImm* f = e.As<FloatImm>();
  return (i != nullptr && i->value == 0) || (f != nullptr && f->value == 0 && !std::signbit(f->value));
}

Expr MakeConst(Type type, double value) {
  const Type element = type.Element();
  Expr scalar = IsFloat(type.dtype) ? MakeFloat(element, value) : MakeInt(element, FloatToInt(type.dtype, value));
  return MakeBroadcast(std::move(scalar), type.width);
}

Expr MakeVar(std::string name, Type type) { return Make(Var{type, std::move(name)}, type); }

Expr MakeCast(Type type, Expr value) {
  if (value.type() == type) return value;
  if (!CastType(type, value.type())) IllTyped("cast", {type, value.type()});
  return Make(Cast{type, std::move(value)}, type);
}

Expr MakeUnary(UnaryOp op, Expr a) {
  const auto type = UnaryType(op, a.type());
  if (!type) IllTyped(Name(op), {a.type()});
  return Make(Unary{op, std::move(a)}, *type);
}

Expr MakeBinary(BinaryOp op, Expr a, Expr b) {
  const auto type = BinaryType(op, a.type(), b.type());
  if (!type) IllTyped(Name(op), {a.type(), b.type()});
  return Make(Binary{op, std::move(a), std::move(b)}, *type);
}

Expr MakeSelect(Expr condition, Expr on_true, Expr on_false) {
  const auto type = SelectType(condition.type(), on_true.type(), on_false.type());
  if (!type) IllTyped("select", {condition.type(), on_true.type(), on_false.type()});
  return Make(Select{std::move(condition), std::move(on_true), std::move(on_false)}, *type);
}

Expr MakeLoad(Buffer buffer, std::vector<Expr> indices, Expr mask) {
  HONE_CHECK(buffer != nullptr);
  const auto type = AccessType(*buffer, indices, mask);
  if (!type) {
    const Type last = indices.empty() ? kIndexType : indices.back().type();
    IllTyped(fmt::format("load of {} with {} indices for {} dimensions (last index, mask)", buffer->name,
                         indices.size(), buffer->shape.size()),
             {last, mask.defined() ? mask.type() : kBoolType});
  }
  return Make(Load{std::move(buffer), std::move(indices), std::move(mask)}, *type);
}

Expr MakeCall(Type type, Intrinsic function, std::vector<Expr> args) {
  const auto checked = CallType(type, function, args);
  if (!checked) IllTyped(Name(function), {type, args.empty() ? type : args[0].type()});
  return Make(Call{type, function, std::move(args)}, *checked);
}

Expr MakeRamp(Expr base, Expr stride, int width) {
  const auto type = RampType(base.type(), stride.type(), width);
  if (!type) IllTyped("ramp", {base.type(), stride.type()});
  return Make(Ramp{std::move(base), std::move(stride), width}, *type);
}

Expr MakeBroadcast(Expr value, int width) {
  if (width == 1) return value;
  const auto type = BroadcastType(value.type(), width);
  if (!type) IllTyped("broadcast", {value.type()});
  return Make(Broadcast{std::move(value), width}, *type);
}

}  // namespace hone::ir
