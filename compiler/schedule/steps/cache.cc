// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/status.h"
#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

std::vector<ir::Axis> Renamed(const std::vector<ir::Axis>& axes, const std::string& suffix, ir::VarMap* map) {
  std::vector<ir::Axis> renamed;
  for (const ir::Axis& axis : axes) {
    renamed.push_back({axis.name + suffix, axis.extent});
    (*map)[axis.name] = ir::MakeVar(renamed.back().name);
  }
  return renamed;
}

}  // namespace

// t = reduce(...)  ==>  tc = reduce(...); t = tc
absl::Status Apply(const CacheWrite& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  if (absl::Status status = CheckUnscheduled(state, *nest); !status.ok()) return status;
  ir::VarMap map;
  ir::Stage reduced;
  reduced.axes = Renamed(nest->stage.axes, "c", &map);
  reduced.reduce_axes = Renamed(nest->stage.reduce_axes, "c", &map);
  reduced.reduction = nest->stage.reduction;
  reduced.value = ir::Substitute(nest->stage.value, map);
  reduced.buffer = ir::MakeBuffer(step.stage + "c", nest->stage.buffer->dtype, nest->stage.buffer->shape);
  ir::Stage copy = nest->stage;
  copy.reduce_axes.clear();
  copy.reduction = ir::Reduction::kNone;
  copy.value = ir::MakeLoad(reduced.buffer, Vars(copy.axes));
  const auto place = nest - state.nests.data();
  *nest = MakeNest(std::move(copy));
  state.nests.insert(state.nests.begin() + place, MakeNest(std::move(reduced)));
  return absl::OkStatus();
}

absl::Status Apply(const CacheRead& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  HONE_ASSIGN_OR_RETURN(const ir::Buffer source, FindCopySource(state, *nest, step.buffer));
  ir::Stage copy = CopyStage(step.buffer + "r" + step.stage, source);
  nest->stage.value = ReplaceLoads(nest->stage.value, source.get(), [&](const std::vector<ir::Expr>& indices) {
    return ir::MakeLoad(copy.buffer, indices);
  });
  state.nests.insert(state.nests.begin() + (nest - state.nests.data()), MakeNest(std::move(copy)));
  return absl::OkStatus();
}

}  // namespace hone::schedule
