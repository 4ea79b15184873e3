// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "compiler/schedule/apply.h"

namespace hone::schedule {

// t[.., i, ..] = v(i)  ==>  t[.., ix, iy, ..] = v(ix * factor + iy), and readers of t[.., e, ..] read
// t[.., e / factor, e % factor, ..]. If the factor does not divide the axis, the last group has extra elements. They
// are computed but never read.
absl::Status Apply(const SplitAxis& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  if (absl::Status status = CheckUnscheduled(state, *nest); !status.ok()) return status;
  if (state.IsOutput(nest->stage.buffer.get())) {
    return absl::FailedPreconditionError(fmt::format("stage {} is an output; its axes cannot be split", step.stage));
  }
  ir::Stage stage = nest->stage;
  const auto axis = std::ranges::find(stage.axes, step.axis, &ir::Axis::name);
  if (axis == stage.axes.end()) {
    return absl::NotFoundError(fmt::format("{} is not an axis of stage {}", step.axis, step.stage));
  }
  if (step.factor < 1) return absl::FailedPreconditionError(fmt::format("factor {} is less than 1", step.factor));
  if (step.factor > std::max(axis->extent.max(), kPaddedTileElementsMax)) {
    return absl::FailedPreconditionError(
        fmt::format("groups of {} are too large for axis {} of {}", step.factor, step.axis, axis->extent));
  }
  const auto place = axis - stage.axes.begin();
  const ir::Size extent = axis->extent, groups = CeilDiv(extent, step.factor);
  const ir::Axis outer{step.axis + "x", groups}, inner{step.axis + "y", step.factor};
  const ir::Expr factor(step.factor);
  std::vector<ir::Expr> ends = nest->conditions.tail_guards;
  if (!Divides(step.factor, extent)) {
    ir::Ranges ranges = AxisRanges(stage);
    ranges[step.axis] = {0, groups.max() * step.factor - 1};
    ends.push_back(ir::MakeVar(step.axis) < ir::Expr(extent));
    stage.value = ProtectLoads(stage.value, {{step.axis, ends.back()}}, ranges);
  }
  const ir::VarMap divided_axis = {{step.axis, ir::MakeVar(outer.name) * factor + ir::MakeVar(inner.name)}};
  stage.value = ir::Substitute(stage.value, divided_axis);
  for (ir::Expr& end : ends) end = ir::Substitute(end, divided_axis);
  *axis = inner;
  stage.axes.insert(stage.axes.begin() + place, outer);
  ir::Shape shape;
  for (const ir::Axis& a : stage.axes) shape.push_back(a.extent);
  const ir::Buffer old = stage.buffer;
  stage.buffer = ir::MakeBuffer(old->name, old->dtype, std::move(shape));
  const ir::Buffer divided = stage.buffer;
  const ir::Scope scope = nest->storage.scope;
  *nest = MakeNest(std::move(stage));
  nest->storage.scope = scope;
  nest->conditions.tail_guards = std::move(ends);
  for (Nest& reader : state.nests) {
    reader.stage.value = ReplaceLoads(reader.stage.value, old.get(), [&](std::vector<ir::Expr> indices) {
      const ir::Expr index = indices[static_cast<size_t>(place)];
      indices[static_cast<size_t>(place)] = ir::FloorMod(index, factor);
      indices.insert(indices.begin() + place, ir::FloorDiv(index, factor));
      return ir::MakeLoad(divided, std::move(indices));
    });
  }
  return absl::OkStatus();
}

}  // namespace hone::schedule
