// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/match.h"
#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

// The condition under which the factor is no padding: that of a select with 0 in its other arm. The select is the
// factor itself or the value of the stage it is loaded from. Undefined if there is no such select.
ir::Expr NotPaddingCondition(const State& state, const ir::Expr& factor) {
  ir::Expr value = factor;
  ir::VarMap at;
  if (const ir::Load* load = factor.As<ir::Load>()) {
    const Nest* nest = state.FindNest(load->buffer.get());
    if (nest == nullptr || nest->stage.reduction != ir::Reduction::kNone) return {};
    for (size_t d = 0; d < load->indices.size(); ++d) at[nest->stage.axes[d].name] = load->indices[d];
    value = nest->stage.value;
  }
  const ir::Select* select = value.As<ir::Select>();
  if (select == nullptr || !ir::IsZero(select->on_false)) return {};
  return ir::Substitute(select->condition, at);
}

}  // namespace

absl::Status Apply(const SkipPadding& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  const ir::Binary* product = nest->stage.value.As<ir::Binary>();
  if (nest->stage.reduction != ir::Reduction::kSum || product == nullptr || product->op != ir::BinaryOp::kMul)
    return absl::FailedPreconditionError(fmt::format("stage {} is not a sum of products", step.stage));
  std::vector<ir::Expr> conditions;
  for (const ir::Expr& factor : {product->a, product->b}) {
    if (const ir::Expr inside = NotPaddingCondition(state, factor); inside.defined())
      CollectConditions(inside, &conditions);
  }
  // Conditions on loaded values are not padding and are dropped.
  std::erase_if(conditions, [&](const ir::Expr& c) {
    return ir::HasLoad(c) ||
           std::ranges::none_of(nest->stage.reduce_axes, [&](const ir::Axis& a) { return ir::UsesVar(c, a.name); });
  });
  if (conditions.empty())
    return absl::FailedPreconditionError(fmt::format("stage {} has no factor that is padded with 0", step.stage));
  nest->conditions.contributes = std::move(conditions);
  nest->has_loop_steps = true;  // region steps would replace the axes that the conditions name
  return absl::OkStatus();
}

}  // namespace hone::schedule
