#include <fmt/format.h>

#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

constexpr int64_t kMaxUnroll = 512;
constexpr int64_t kMaxLanes = 64;

absl::Status CheckParallel(const Nest& nest, size_t position) {
  if (nest.loops[position].reduce) {
    return absl::FailedPreconditionError(
        fmt::format("loop {} is a reduction: its iterations depend on each other", nest.loops[position].name));
  }
  if (!nest.AtRoot()) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is inside another: only a root stage runs in parallel", nest.stage.buffer->name));
  }
  for (const Loop& loop : nest.loops) {
    if (loop.kind == ir::LoopKind::kParallel) {
      return absl::FailedPreconditionError(fmt::format("loop {} of the same stage is parallel already", loop.name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Apply(const Annotate& step, State& state) {
  size_t position = 0;
  Nest* nest = state.FindLoop(step.loop, &position);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("no loop {}", step.loop));
  Loop& loop = nest->loops[position];
  if (loop.kind != ir::LoopKind::kSerial) {
    return absl::FailedPreconditionError(fmt::format("loop {} is annotated already", loop.name));
  }
  if (step.kind == ir::LoopKind::kParallel) {
    if (absl::Status status = CheckParallel(*nest, position); !status.ok()) return status;
  }
  if (step.kind == ir::LoopKind::kVectorized && loop.reduce) {
    return absl::FailedPreconditionError(fmt::format("loop {} is a reduction: rfactor it first", loop.name));
  }
  const int64_t limit = step.kind == ir::LoopKind::kVectorized ? kMaxLanes : kMaxUnroll;
  if (step.kind != ir::LoopKind::kParallel && loop.max_extent > limit) {
    return absl::FailedPreconditionError(
        fmt::format("loop {} of {} iterations is longer than the {} that can be {}", loop.name, loop.max_extent, limit,
                    step.kind == ir::LoopKind::kVectorized ? "vectorized" : "unrolled"));
  }
  loop.kind = step.kind;
  nest->touched = true;
  return absl::OkStatus();
}

}  // namespace hone::schedule
