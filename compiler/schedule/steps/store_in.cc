// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

constexpr int64_t kPadElementsMax = 64;  // elements; more than one row of memory banks

}  // namespace

absl::Status Apply(const StoreIn& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  if (state.IsOutput(nest->stage.buffer.get()) || nest->prepared) {
    return absl::FailedPreconditionError(fmt::format("stage {} is {}; its memory cannot be chosen", step.stage,
                                                     nest->prepared ? "computed before the kernel runs" : "an output"));
  }
  if (nest->has_loop_steps || !nest->IsTopLevel()) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is scheduled already; put this step before the other steps on it", step.stage));
  }
  if (step.pad < 0 || step.pad > kPadElementsMax) {
    return absl::FailedPreconditionError(
        fmt::format("padding of {} elements; the number must be from 0 to {}", step.pad, kPadElementsMax));
  }
  if (step.scope == ir::Scope::kSwizzled && step.pad > 0) {
    return absl::FailedPreconditionError("swizzled memory cannot have padding, because its rows must be adjacent");
  }
  const size_t rank = nest->stage.axes.size();
  if (step.dims != 1 && (step.dims < 1 || static_cast<size_t>(step.dims) > rank)) {
    return absl::FailedPreconditionError(fmt::format(
        "a row of {} dimensions; for stage {} the number must be from 1 to {}", step.dims, step.stage, rank));
  }
  nest->storage.scope = step.scope;
  nest->storage.pad = step.pad;
  nest->storage.pad_dims = step.dims;
  return absl::OkStatus();
}

}  // namespace hone::schedule
