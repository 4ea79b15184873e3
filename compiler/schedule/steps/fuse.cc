// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "compiler/schedule/apply.h"

namespace hone::schedule {

// Replaces outer and inner by f, with outer = f / extent(inner) and inner = f % extent(inner).
absl::Status Apply(const Fuse& step, State& state) {
  size_t position = 0;
  Nest* nest = state.FindLoop(step.outer, &position);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no loop {}", step.outer));
  if (position + 1 >= nest->loops.size() || nest->loops[position + 1].name != step.inner) {
    return absl::FailedPreconditionError(fmt::format("loop {} is not directly inside loop {}", step.inner, step.outer));
  }
  const Loop outer = nest->loops[position], inner = nest->loops[position + 1];
  if (outer.kind != ir::LoopKind::kSerial || inner.kind != ir::LoopKind::kSerial) {
    return absl::FailedPreconditionError(fmt::format("loop {} or {} is annotated already", outer.name, inner.name));
  }
  if (outer.reduce != inner.reduce) {
    return absl::FailedPreconditionError(
        fmt::format("one of {} and {} is a reduction, the other is not", outer.name, inner.name));
  }
  const std::optional<ir::Size> outer_size = state.IterationsOf(outer), inner_size = state.IterationsOf(inner);
  if (!outer_size.has_value() || !inner_size.has_value()) {
    return absl::FailedPreconditionError(fmt::format("loop {} or {} has no constant extent", outer.name, inner.name));
  }
  if (absl::Status status = CheckNoStageAtLoop(state, *nest, position); !status.ok()) return status;
  if (absl::Status status = CheckLoopCanChange(*nest, position + 1); !status.ok()) return status;
  const ir::Size extent = *outer_size * *inner_size;
  const int64_t max_extent = std::min(extent.max(), outer.max_extent * inner.max_extent);
  Loop fused{outer.name + "_" + inner.name, ir::Expr(extent), max_extent, ir::LoopKind::kSerial, outer.reduce};
  const ir::Expr f = ir::MakeVar(fused.name);
  const ir::VarMap map{{outer.name, ir::FloorDiv(f, ir::Expr(*inner_size))},
                       {inner.name, ir::FloorMod(f, ir::Expr(*inner_size))}};
  for (auto& [axis, binding] : nest->bindings) binding = ir::Substitute(binding, map);
  for (ir::Expr& guard : nest->conditions.guards) guard = ir::Substitute(guard, map);
  for (Loop& other : nest->loops) other.extent = ir::Substitute(other.extent, map);
  for (std::string& name : nest->overlapping) {
    if (name == outer.name || name == inner.name) name = fused.name;
  }
  nest->loops[position] = std::move(fused);
  nest->loops.erase(nest->loops.begin() + static_cast<std::ptrdiff_t>(position) + 1);
  nest->has_loop_steps = true;
  return absl::OkStatus();
}

}  // namespace hone::schedule
