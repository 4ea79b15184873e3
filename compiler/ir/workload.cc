// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/workload.h"

#include <algorithm>
#include <limits>

#include "base/digest.h"
#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/typing.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::ir {
namespace {

// The highest or the lowest value of the type.
Expr ExtremeValue(Type type, bool highest) {
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

// The number of operations of one evaluation of e, counting both arms of a select. Addressing is free: inside indices
// and conditions only floating-point operations count.
double CountOps(const Expr& e, bool addressing) {
  double ops = 0;
  const auto below = [&](const Expr& child, bool child_addressing) { ops += CountOps(child, child_addressing); };
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

double Iterations(const Stage& stage) {
  double iterations = 1;
  const size_t places = stage.reduction == Reduction::kOrder ? 1 : 0;  // a sort has each value once, not once per place
  for (size_t d = 0; d + places < stage.axes.size(); ++d) iterations *= static_cast<double>(stage.axes[d].extent.max());
  for (const Axis& axis : stage.reduce_axes) iterations *= static_cast<double>(axis.extent.max());
  return iterations;
}

// The extents as "111x111x64", without those that are 1; "1" if none is left.
std::string Extents(const std::vector<Axis>& axes) {
  std::vector<std::string> extents;
  for (const Axis& axis : axes) {
    if (axis.extent != 1) extents.push_back(Print(axis.extent));
  }
  return extents.empty() ? "1" : fmt::format("{}", fmt::join(extents, "x"));
}

}  // namespace

Expr Identity(Reduction reduction, Type type) {
  switch (reduction) {
    case Reduction::kSum:
      return MakeZero(type);
    case Reduction::kProd:
      return MakeConst(type, 1.0);
    case Reduction::kMax:
      return ExtremeValue(type, false);
    case Reduction::kMin:
      return ExtremeValue(type, true);
    case Reduction::kNone:
    case Reduction::kOrder:
      break;
  }
  HONE_CHECK(Folds(reduction));
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
    case Reduction::kOrder:
      break;
  }
  HONE_CHECK(Folds(reduction));
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
    const double combine = stage.reduction == Reduction::kNone ? 0 : 1;
    total += Iterations(stage) * (CountOps(stage.value, false) + combine);
  }
  return total;
}

std::string Title(const Workload& workload) {
  if (workload.stages.empty()) return workload.op;
  const auto fewer = [](const Stage& a, const Stage& b) { return Iterations(a) < Iterations(b); };
  const Stage& stage = *std::max_element(workload.stages.begin(), workload.stages.end(), fewer);
  std::string title = fmt::format("{} {}", workload.op, Extents(stage.axes));
  return stage.reduce_axes.empty() ? title : fmt::format("{} ({})", title, Extents(stage.reduce_axes));
}

}  // namespace hone::ir
