// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

// Splits the factors of a product into those that vary along the reduction and those that do not.
struct Factors {
  std::vector<ir::Expr> varying, constant;

  void Add(const ir::Expr& e, const std::vector<ir::Axis>& reduced) {
    const ir::Binary* product = e.As<ir::Binary>();
    if (product != nullptr && product->op == ir::BinaryOp::kMul) {
      Add(product->a, reduced);
      Add(product->b, reduced);
      return;
    }
    const bool varies = std::ranges::any_of(reduced, [&](const ir::Axis& a) { return ir::UsesVar(e, a.name); });
    (varies ? varying : constant).push_back(e);
  }
};

ir::Expr ProductOf(const std::vector<ir::Expr>& factors) {
  ir::Expr product = factors[0];
  for (size_t i = 1; i < factors.size(); ++i) product = product * factors[i];
  return product;
}

// The stage that sums the varying factors, with all axes of the original.
ir::Stage VaryingSum(const ir::Stage& whole, const ir::Expr& value) {
  ir::Stage stage = whole;
  ir::VarMap map;
  for (auto* axes : {&stage.axes, &stage.reduce_axes}) {
    for (ir::Axis& axis : *axes) {
      map[axis.name] = ir::MakeVar(axis.name + "u");
      axis.name += "u";
    }
  }
  stage.value = ir::Substitute(value, map);
  stage.buffer = ir::MakeBuffer(whole.buffer->name + "u", whole.buffer->dtype, whole.buffer->shape);
  return stage;
}

}  // namespace

// t = sum f * g, where g is the same all along the reduction  ==>  tu = sum f; t = tu * g. Likewise for
// t = sum select(c, f * g, 0).
absl::Status Apply(const FactorOut& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  if (absl::Status status = CheckUnscheduled(state, *nest); !status.ok()) return status;
  ir::Stage stage = nest->stage;
  if (stage.reduction != ir::Reduction::kSum) {
    return absl::FailedPreconditionError(fmt::format("stage {} is not a sum", step.stage));
  }
  // An index such as (ko * 32 + ki) / 32 depends on ko alone.
  stage.value = ir::Simplify(stage.value, AxisRanges(stage));
  const ir::Select* select = stage.value.As<ir::Select>();
  if (select != nullptr && !ir::IsZero(select->on_false)) select = nullptr;
  Factors factors;
  factors.Add(select != nullptr ? select->on_true : stage.value, stage.reduce_axes);
  if (factors.constant.empty() || factors.varying.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is not a sum of products with a factor that is the same all along it", step.stage));
  }
  ir::Expr varying = ProductOf(factors.varying);
  if (select != nullptr) varying = ir::MakeSelect(select->condition, varying, select->on_false);
  ir::Stage sum = VaryingSum(stage, varying);
  stage.value = ir::MakeLoad(sum.buffer, Vars(stage.axes)) * ProductOf(factors.constant);
  stage.reduce_axes.clear();
  stage.reduction = ir::Reduction::kNone;
  const auto place = nest - state.nests.data();
  *nest = MakeNest(std::move(stage));
  state.nests.insert(state.nests.begin() + place, MakeNest(std::move(sum)));
  return absl::OkStatus();
}

}  // namespace hone::schedule
