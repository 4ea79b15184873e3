#include <fmt/format.h>

#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

constexpr int64_t kMaxPad = 64;  // a row of banks, and more

}  // namespace

absl::Status Apply(const StoreIn& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("no stage {}", step.stage));
  if (state.IsOutput(nest->stage.buffer.get()) || nest->prepared) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is {}", step.stage, nest->prepared ? "computed before the kernel runs" : "an output"));
  }
  if (nest->touched || !nest->AtRoot()) {
    return absl::FailedPreconditionError(fmt::format("stage {} has been scheduled already", step.stage));
  }
  if (step.pad < 0 || step.pad > kMaxPad) {
    return absl::FailedPreconditionError(fmt::format("padding of {} elements; 0 to {} make sense", step.pad, kMaxPad));
  }
  nest->scope = step.scope;
  nest->pad = step.pad;
  return absl::OkStatus();
}

}  // namespace hone::schedule
