// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "compiler/ir/float_casts.h"
#include "compiler/schedule/apply.h"

namespace hone::schedule {

absl::Status Apply(const Inline& step, State& state) {
  const Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  if (nest->stage.reduction != ir::Reduction::kNone) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is a reduction: it would be repeated for every element", step.stage));
  }
  if (IsScan(nest->stage)) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is a scan: every element needs the one before it", step.stage));
  }
  if (state.IsOutput(nest->stage.buffer.get())) {
    return absl::FailedPreconditionError(fmt::format("stage {} is an output; it cannot be inlined", step.stage));
  }
  for (const Nest& other : state.nests) {
    // The inferred regions of producers inside this stage do not cover the reads that move elsewhere.
    if (other.place.stage == step.stage) {
      return absl::FailedPreconditionError(
          fmt::format("stage {} is computed inside stage {} already", other.stage.buffer->name, step.stage));
    }
    if (!other.IsTopLevel() && Reads(nest->stage, other.stage.buffer.get())) {
      return absl::FailedPreconditionError(fmt::format("stage {}, which {} reads, is computed inside a loop already",
                                                       other.stage.buffer->name, step.stage));
    }
  }
  const ir::Stage inlined = nest->stage;
  for (Nest& consumer : state.nests) {
    if (!Reads(consumer.stage, inlined.buffer.get())) continue;
    const ir::Expr value =
        ReplaceLoads(consumer.stage.value, inlined.buffer.get(), [&](const std::vector<ir::Expr>& indices) {
          ir::VarMap map;
          for (size_t i = 0; i < indices.size(); ++i) map[inlined.axes[i].name] = indices[i];
          return ir::Substitute(inlined.value, map);
        });
    consumer.stage.value = ir::DropRoundTrips(value);
  }
  std::erase_if(state.nests, [&](const Nest& n) { return n.stage.buffer == inlined.buffer; });
  return absl::OkStatus();
}

}  // namespace hone::schedule
