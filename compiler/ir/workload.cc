#include "compiler/ir/workload.h"

#include <limits>

#include "base/digest.h"
#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/typing.h"

namespace hone::ir {
namespace {

// The highest (or lowest) value of any type.
Expr Extreme(Type type, bool highest) {
  const Type element = type.Element();
  Expr value;
  if (IsFloat(type.dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    value = MakeFloat(element, highest ? infinity : -infinity);
  } else if (type.dtype == DType::kBool) {
    value = MakeBool(highest);
  } else {
    value = MakeInt(element, highest ? HighestInt(type.dtype) : LowestInt(type.dtype));
  }
  return MakeBroadcast(std::move(value), type.width);
}

// Operations of one evaluation of e, all arms included. Addressing is free: inside indices and conditions only
// floating-point operations count.
double OpsOf(const Expr& e, bool addressing) {
  double ops = 0;
  const auto below = [&](const Expr& child, bool child_addressing) { ops += OpsOf(child, child_addressing); };
  const auto one = [&](Type operand) {
    if (!addressing || IsFloat(operand.dtype)) ops += operand.width;
  };
  if (const auto* load = e.As<Load>()) {
    for (const Expr& index : load->indices) below(index, true);
    if (load->mask.defined()) below(load->mask, true);
    return ops;
  }
  if (const auto* select = e.As<Select>()) {
    below(select->condition, true);
    below(select->on_true, addressing);
    below(select->on_false, addressing);
    return ops;
  }
  if (const auto* unary = e.As<Unary>()) one(unary->a.type());
  if (const auto* binary = e.As<Binary>()) one(binary->a.type());
  if (const auto* call = e.As<Call>(); call != nullptr && call->function != Intrinsic::kReinterpret) {
    one(call->args[0].type());
    if (call->function == Intrinsic::kFma) one(call->args[0].type());
  }
  ForEachChild(e, [&](const Expr& child) { below(child, addressing); });
  return ops;
}

}  // namespace

Expr Identity(Reduction reduction, Type type) {
  switch (reduction) {
    case Reduction::kSum:
      return MakeZero(type);
    case Reduction::kProd:
      return MakeConst(type, 1.0);
    case Reduction::kMax:
      return Extreme(type, false);
    case Reduction::kMin:
      return Extreme(type, true);
    case Reduction::kNone:
      break;
  }
  HONE_CHECK(reduction != Reduction::kNone);
  return {};
}

Expr Combine(Reduction reduction, Expr a, Expr b) {
  switch (reduction) {
    case Reduction::kSum:
      return std::move(a) + std::move(b);
    case Reduction::kProd:
      return std::move(a) * std::move(b);
    case Reduction::kMax:
      return Max(std::move(a), std::move(b));
    case Reduction::kMin:
      return Min(std::move(a), std::move(b));
    case Reduction::kNone:
      break;
  }
  HONE_CHECK(reduction != Reduction::kNone);
  return {};
}

const Stage* Workload::FindStage(const BufferNode* buffer) const {
  for (const Stage& stage : stages) {
    if (stage.buffer.get() == buffer) return &stage;
  }
  return nullptr;
}

std::string WorkloadDigest(const Workload& workload) { return Sha256Hex(Print(Canonicalize(workload))); }

double CountFlops(const Workload& workload) {
  double total = 0;
  for (const Stage& stage : workload.stages) {
    double iterations = 1;
    for (const Axis& axis : stage.axes) iterations *= static_cast<double>(axis.extent);
    for (const Axis& axis : stage.reduce_axes) iterations *= static_cast<double>(axis.extent);
    const double combine = stage.reduction == Reduction::kNone ? 0 : 1;
    total += iterations * (OpsOf(stage.value, false) + combine);
  }
  return total;
}

}  // namespace hone::ir
