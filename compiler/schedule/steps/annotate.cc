// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <bit>

#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

constexpr int64_t kUnrolledIterationsMax = 512;
constexpr int64_t kVectorizedIterationsMax = 64;

absl::Status CheckParallel(const Nest& nest, size_t position) {
  if (nest.loops[position].reduce) {
    return absl::FailedPreconditionError(
        fmt::format("loop {} is a reduction: its iterations depend on each other", nest.loops[position].name));
  }
  if (!nest.IsTopLevel()) {
    return absl::FailedPreconditionError(fmt::format(
        "stage {} is computed inside another; only a top-level stage can run in parallel", nest.stage.buffer->name));
  }
  for (const Loop& loop : nest.loops) {
    if (loop.kind == ir::LoopKind::kParallel) {
      return absl::FailedPreconditionError(fmt::format("loop {} of the same stage is parallel already", loop.name));
    }
  }
  return absl::OkStatus();
}

// Lanes may share a reduction loop (lane reduction) only if it is the innermost loop, so that its lanes are
// consecutive.
absl::Status CheckLaneReduceLoop(const Nest& nest, size_t position, ir::LoopKind kind) {
  const Loop& loop = nest.loops[position];
  if (kind == ir::LoopKind::kGroup || nest.IsTopLevel()) {
    return absl::FailedPreconditionError(fmt::format(
        "loop {} is a reduction; only lanes can share one, in a stage that is computed inside a loop", loop.name));
  }
  if (loop.extent.As<ir::IntImm>() == nullptr || loop.max_extent < 2 || loop.max_extent > ir::kLaneReducePartsMax ||
      !std::has_single_bit(static_cast<uint64_t>(loop.max_extent))) {
    return absl::FailedPreconditionError(fmt::format(
        "loop {} is a reduction of {} iterations; lanes can share 2 to {}, a constant power of two", loop.name,
        loop.extent.As<ir::IntImm>() == nullptr ? "an unknown number of" : fmt::format("{}", loop.max_extent),
        ir::kLaneReducePartsMax));
  }
  if (position + 1 == nest.loops.size()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("loop {} is inside loop {}, a reduction that lanes share; such a loop must be the innermost",
                  nest.loops[position + 1].name, loop.name));
}

// Group loops are the outermost loops of a top-level stage. Lane loops follow them, or are outermost in a stage that
// fills shared memory. No reduction loop is around either, so that one lane, or one lane reduction, computes each
// element.
absl::Status CheckBound(const State& state, const Nest& nest, size_t position, ir::LoopKind kind) {
  const Loop& loop = nest.loops[position];
  const std::string& stage = nest.stage.buffer->name;
  if (loop.reduce) {
    if (absl::Status status = CheckLaneReduceLoop(nest, position, kind); !status.ok()) return status;
  }
  if (!state.IterationsOf(loop).has_value()) {
    return absl::FailedPreconditionError(fmt::format("loop {} has no constant extent", loop.name));
  }
  const bool shared = !nest.IsTopLevel() && (ir::IsShared(nest.storage.scope) || loop.reduce);
  if (!nest.IsTopLevel() && (!shared || kind == ir::LoopKind::kGroup)) {
    return absl::FailedPreconditionError(fmt::format(
        "stage {} is computed inside another; its loops can only be lanes, and only if it is in shared memory", stage));
  }
  for (size_t i = 0; i < position; ++i) {
    const ir::LoopKind outer = nest.loops[i].kind;
    if (nest.loops[i].max_extent == 1 || outer == kind ||
        (outer == ir::LoopKind::kGroup && kind == ir::LoopKind::kLane))
      continue;
    return absl::FailedPreconditionError(
        fmt::format("loop {} encloses loop {}: reorder bound loops to the front", nest.loops[i].name, loop.name));
  }
  for (const Nest& other : state.nests) {
    if (kind == ir::LoopKind::kLane && nest.IsTopLevel() && other.place.stage == stage &&
        ir::IsShared(other.storage.scope)) {
      return absl::FailedPreconditionError(
          fmt::format("stage {} in shared memory is computed inside this stage already: bind the lanes first",
                      other.stage.buffer->name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Apply(const Annotate& step, State& state) {
  size_t position = 0;
  Nest* nest = state.FindLoop(step.loop, &position);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no loop {}", step.loop));
  Loop& loop = nest->loops[position];
  if (loop.kind != ir::LoopKind::kSerial || loop.buffers > 1) {
    return absl::FailedPreconditionError(
        fmt::format("loop {} is {} already", loop.name, loop.buffers > 1 ? "pipelined" : "annotated"));
  }
  if (absl::Status status = CheckLoopCanChange(*nest, position); !status.ok()) return status;
  if (step.kind == ir::LoopKind::kParallel) {
    if (absl::Status status = CheckParallel(*nest, position); !status.ok()) return status;
  }
  if (step.kind == ir::LoopKind::kGroup || step.kind == ir::LoopKind::kLane) {
    if (absl::Status status = CheckBound(state, *nest, position, step.kind); !status.ok()) return status;
    loop.kind = step.kind;
    nest->has_loop_steps = true;
    return absl::OkStatus();
  }
  if (step.kind == ir::LoopKind::kVectorized && loop.reduce) {
    return absl::FailedPreconditionError(fmt::format("loop {} is a reduction: rfactor it first", loop.name));
  }
  const int64_t limit = step.kind == ir::LoopKind::kVectorized ? kVectorizedIterationsMax : kUnrolledIterationsMax;
  if (step.kind != ir::LoopKind::kParallel && loop.max_extent > limit) {
    return absl::FailedPreconditionError(
        fmt::format("loop {} has {} iterations; at most {} can be {}", loop.name, loop.max_extent, limit,
                    step.kind == ir::LoopKind::kVectorized ? "vectorized" : "unrolled"));
  }
  loop.kind = step.kind;
  nest->has_loop_steps = true;
  return absl::OkStatus();
}

}  // namespace hone::schedule
