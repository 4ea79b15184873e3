// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "compiler/schedule/apply.h"

namespace hone::schedule {

// t[..] = reduce k: v(k)  ==>  tf[.., a] = reduce b: v(ko * factor + ki); t[..] = reduce a: tf[.., a]
// (a, b) is (ko, ki), or (ki, ko) with keep_inner. With `first` the partial results are tf[a, ..].
absl::Status Apply(const Rfactor& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  if (absl::Status status = CheckUnscheduled(state, *nest); !status.ok()) return status;
  ir::Stage stage = nest->stage;
  const auto axis = std::find_if(stage.reduce_axes.begin(), stage.reduce_axes.end(),
                                 [&](const ir::Axis& a) { return a.name == step.axis; });
  if (axis == stage.reduce_axes.end()) {
    return absl::NotFoundError(fmt::format("{} is not a reduction axis of stage {}", step.axis, step.stage));
  }
  if (step.factor < 1 || step.factor > axis->extent.max()) {
    return absl::FailedPreconditionError(
        fmt::format("factor {} for axis {} must be from 1 to {}", step.factor, step.axis, axis->extent));
  }
  const ir::Size groups = CeilDiv(axis->extent, step.factor);
  const ir::Axis outer{step.axis + "x", groups}, inner{step.axis + "y", step.factor};
  const ir::Axis& kept = step.keep_inner ? inner : outer;
  const ir::Axis& gone = step.keep_inner ? outer : inner;

  std::string suffix = "f";  // partial results may be split again, which adds another "f"
  while (state.FindNest(step.stage + suffix) != nullptr) suffix += "f";
  ir::Stage partial;
  ir::VarMap map;
  for (const ir::Axis& a : stage.axes) {
    partial.axes.push_back({a.name + suffix, a.extent});
    map[a.name] = ir::MakeVar(a.name + suffix);
  }
  partial.axes.insert(step.first ? partial.axes.begin() : partial.axes.end(), {kept.name + suffix, kept.extent});
  for (const ir::Axis& a : stage.reduce_axes) {
    partial.reduce_axes.push_back(a.name == step.axis ? gone : ir::Axis{a.name + suffix, a.extent});
    if (a.name != step.axis) map[a.name] = ir::MakeVar(a.name + suffix);
  }
  const ir::Expr ko = ir::MakeVar(step.keep_inner ? outer.name : outer.name + suffix);
  const ir::Expr ki = ir::MakeVar(step.keep_inner ? inner.name + suffix : inner.name);
  const ir::Expr k = ko * ir::Expr(step.factor) + ki;
  map[step.axis] = k;
  partial.reduction = stage.reduction;
  partial.value = ir::Substitute(stage.value, map);
  if (!Divides(step.factor, axis->extent)) {
    partial.value =
        ir::MakeSelect(k < ir::Expr(axis->extent), partial.value, ir::Identity(stage.reduction, partial.value.type()));
  }
  ir::Shape shape = stage.buffer->shape;
  shape.insert(step.first ? shape.begin() : shape.end(), kept.extent);
  partial.buffer = ir::MakeBuffer(step.stage + suffix, stage.buffer->dtype, std::move(shape));

  std::vector<ir::Expr> indices;
  for (const ir::Axis& a : stage.axes) indices.push_back(ir::MakeVar(a.name));
  indices.insert(step.first ? indices.begin() : indices.end(), ir::MakeVar(kept.name));
  stage.reduce_axes = {kept};
  stage.value = ir::MakeLoad(partial.buffer, std::move(indices));
  const auto place = nest - state.nests.data();
  *nest = MakeNest(std::move(stage));
  state.nests.insert(state.nests.begin() + place, MakeNest(std::move(partial)));
  return absl::OkStatus();
}

}  // namespace hone::schedule
