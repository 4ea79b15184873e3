// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/expr_checker.h"

#include <optional>

#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/op_names.h"
#include "compiler/ir/text.h"
#include "compiler/ir/typing.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

constexpr size_t kExprQuoteCharsMax = 120;

// The type that the children of the node imply; nullopt if the children do not fit together.
std::optional<Type> DerivedType(const Expr& e) {
  using Result = std::optional<Type>;
  return Match(
      e,
      [](const IntImm& n) {
        const bool ok = n.type.width == 1 && !IsFloat(n.type.dtype) && WrapTo(n.type.dtype, n.value) == n.value;
        return ok ? Result(n.type) : std::nullopt;
      },
      [](const FloatImm& n) { return n.type.width == 1 && IsFloat(n.type.dtype) ? Result(n.type) : std::nullopt; },
      [](const Var& n) { return Result(n.type); }, [](const Cast& n) { return CastType(n.type, n.value.type()); },
      [](const Unary& n) { return UnaryType(n.op, n.a.type()); },
      [](const Binary& n) { return BinaryType(n.op, n.a.type(), n.b.type()); },
      [](const Select& n) { return SelectType(n.condition.type(), n.on_true.type(), n.on_false.type()); },
      [](const Load& n) { return AccessType(*n.buffer, n.indices, n.mask); },
      [](const Call& n) { return CallType(n.type, n.function, n.args); },
      [](const Ramp& n) { return RampType(n.base.type(), n.stride.type(), n.width); },
      [](const Broadcast& n) { return BroadcastType(n.value.type(), n.width); });
}

absl::Status CheckChildrenDefined(const Expr& e) {
  bool defined = true;
  ForEachChild(e, [&](const Expr& child) { defined = defined && child.defined(); });
  if (!defined) return absl::InvalidArgumentError("an operand is missing");
  return absl::OkStatus();
}

}  // namespace

bool ComputesInStorageType(const Expr& e) {
  if (const auto* unary = e.As<Unary>()) return IsStorageOnly(unary->a.type().dtype);
  if (const auto* binary = e.As<Binary>()) return IsStorageOnly(binary->a.type().dtype);
  if (const auto* ramp = e.As<Ramp>()) return IsStorageOnly(ramp->base.type().dtype);
  const auto* call = e.As<Call>();
  return call != nullptr && call->function != Intrinsic::kReinterpret && IsStorageOnly(call->type.dtype);
}

absl::Status IllegalExpr(const Expr& e, std::string_view message) {
  std::string text = Print(e);
  if (text.size() > kExprQuoteCharsMax) text = text.substr(0, kExprQuoteCharsMax) + "...";
  return absl::InvalidArgumentError(fmt::format("in '{}': {}", text, message));
}

absl::Status ExprChecker::CheckAccess(std::string_view what, const Buffer& buffer, const std::vector<Expr>& indices,
                                      const Expr& mask) const {
  if (buffer == nullptr) return absl::InvalidArgumentError(fmt::format("{} without a buffer", what));
  if (!buffers.contains(buffer.get())) {
    return absl::InvalidArgumentError(
        fmt::format("{} of '{}', which is neither a parameter nor allocated here", what, buffer->name));
  }
  const bool flat_allowed = dialect_ == Dialect::kFunc;
  if (indices.size() != buffer->shape.size() && !(flat_allowed && indices.size() == 1)) {
    return absl::InvalidArgumentError(fmt::format("{} of '{}' with {} indices for {} dimensions", what, buffer->name,
                                                  indices.size(), buffer->shape.size()));
  }
  if (!AccessType(*buffer, indices, mask)) {
    return absl::InvalidArgumentError(fmt::format(
        "{} of '{}': indices must be i64; only the last may be a vector; a mask must be bool of the same width", what,
        buffer->name));
  }
  return absl::OkStatus();
}

absl::Status ExprChecker::CheckNode(const Expr& e) const {
  if (const Var* var = e.As<Var>()) {
    const auto found = vars.find(var->name);
    if (found == vars.end()) return IllegalExpr(e, fmt::format("variable '{}' is not bound here", var->name));
    if (found->second == var->type) return absl::OkStatus();
    return IllegalExpr(e, fmt::format("variable '{}' is used as {} but bound as {}", var->name, ToString(var->type),
                                      ToString(found->second)));
  }
  if (const Load* load = e.As<Load>()) {
    const absl::Status status = CheckAccess("load", load->buffer, load->indices, load->mask);
    if (!status.ok()) return load->buffer ? IllegalExpr(e, std::string(status.message())) : status;
    if (dialect_ == Dialect::kWorkload && load->mask.defined())
      return IllegalExpr(e, "loads in a workload must not have masks");
  }
  if (const auto* call = e.As<Call>(); call != nullptr && call->args.empty()) {
    return IllegalExpr(e, "the call has no arguments");
  }
  const auto type = DerivedType(e);
  if (!type || *type != e.type()) {
    return IllegalExpr(
        e, fmt::format("the node has type {}, which does not fit its operands or value", ToString(e.type())));
  }
  if (dialect_ == Dialect::kWorkload && type->width != 1)
    return IllegalExpr(e, "expressions in a workload must be scalars");
  if (ComputesInStorageType(e))
    return IllegalExpr(e, "this computes in a type that is only for storage; cast to f32 first");
  return absl::OkStatus();
}

absl::Status ExprChecker::Check(const Expr& e) const {
  if (!e.defined()) return absl::InvalidArgumentError("an expression is missing");
  HONE_RETURN_IF_ERROR(CheckChildrenDefined(e));
  absl::Status status = absl::OkStatus();
  ForEachChild(e, [&](const Expr& child) {
    if (status.ok()) status = Check(child);
  });
  HONE_RETURN_IF_ERROR(status);
  return CheckNode(e);
}

}  // namespace hone::ir
