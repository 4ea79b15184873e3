// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

constexpr int64_t kPadElementsMax = 64;  // elements; more than one row of memory banks

}  // namespace

absl::Status Apply(const StoreIn& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("no stage {}", step.stage));
  if (state.IsOutput(nest->stage.buffer.get()) || nest->prepared) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is {}", step.stage, nest->prepared ? "computed before the kernel runs" : "an output"));
  }
  if (nest->has_loop_steps || !nest->IsTopLevel()) {
    return absl::FailedPreconditionError(fmt::format("stage {} has been scheduled already", step.stage));
  }
  if (step.pad < 0 || step.pad > kPadElementsMax) {
    return absl::FailedPreconditionError(
        fmt::format("padding of {} elements; 0 to {} make sense", step.pad, kPadElementsMax));
  }
  if (step.scope == ir::Scope::kSwizzled && step.pad > 0) {
    return absl::FailedPreconditionError("swizzled rows follow one another: they have no padding");
  }
  const size_t rank = nest->stage.axes.size();
  if (step.dims != 1 && (step.dims < 1 || static_cast<size_t>(step.dims) > rank)) {
    return absl::FailedPreconditionError(
        fmt::format("a row of {} dimensions, where stage {} has {}", step.dims, step.stage, rank));
  }
  nest->storage.scope = step.scope;
  nest->storage.pad = step.pad;
  nest->storage.pad_dims = step.dims;
  return absl::OkStatus();
}

}  // namespace hone::schedule
