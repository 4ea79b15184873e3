// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "compiler/schedule/apply.h"
#include "compiler/schedule/copy.h"

namespace hone::schedule {
namespace {

constexpr int64_t kPipelineBuffersMax = 8;

bool IsCopiedAt(const Nest& nest, const Nest& reader, const Loop& loop) {
  return nest.copy.elements > 0 && nest.place.stage == reader.stage.buffer->name && nest.place.loop == loop.name;
}

// Instructions may outlast their iteration only if nothing but copies fills what they read, and if their accumulators
// stay in registers for the whole reduction.
absl::Status CheckAsyncIterations(const Pipeline& step, const State& state, const Nest& nest, size_t position) {
  if (step.async_iterations == 0) return absl::OkStatus();
  if (!nest.instruction.has_value() || !ir::EntryOf(*nest.instruction).is_async) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} has no asynchronous tensor instruction: tensorize first", nest.stage.buffer->name));
  }
  if (step.async_iterations < 0 || step.async_iterations > step.buffers - 2) {
    return absl::FailedPreconditionError(
        fmt::format("{} iterations cannot stay in flight with {} buffers; the number must be from 0 to {}",
                    step.async_iterations, step.buffers, step.buffers - 2));
  }
  const Loop& loop = nest.loops[position];
  const bool loads = ir::EntryOf(*nest.instruction).loads_a;
  bool registers = loop.reduce && nest.conditions.guards.empty() && nest.conditions.contributes.empty(), steps = false;
  for (size_t i = position + 1; i < nest.loops.size() - nest.StatementLoops(); ++i) {
    const Loop& inside = nest.loops[i];
    registers &= (inside.reduce && !loads) || inside.kind == ir::LoopKind::kUnrolled;
    steps |= inside.reduce && inside.max_extent > 1;
  }
  if (loads && (!steps || step.async_iterations > 1)) {
    return absl::FailedPreconditionError(fmt::format(
        "{} iterations of stage {} cannot stay in flight: its lanes would overwrite factors that are still read",
        step.async_iterations, nest.stage.buffer->name));
  }
  if (!registers) {
    return absl::FailedPreconditionError(fmt::format(
        "instructions of stage {} cannot stay in flight: loop {} is not a whole reduction with sums in registers",
        nest.stage.buffer->name, loop.name));
  }
  for (const Nest& other : state.nests) {
    if (other.place.stage != nest.stage.buffer->name || IsCopiedAt(other, nest, loop)) continue;
    for (size_t i = position; i < nest.loops.size(); ++i) {
      if (nest.loops[i].name != other.place.loop) continue;
      return absl::FailedPreconditionError(fmt::format(
          "instructions of stage {} cannot stay in flight while stage {} is computed, because they may read it",
          nest.stage.buffer->name, other.stage.buffer->name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Apply(const Pipeline& step, State& state) {
  size_t position = 0;
  Nest* nest = state.FindLoop(step.loop, &position);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no loop {}", step.loop));
  Loop& loop = nest->loops[position];
  HONE_RETURN_IF_ERROR(CheckLoopCanChange(*nest, position));
  if (loop.kind != ir::LoopKind::kSerial) {
    return absl::FailedPreconditionError(fmt::format("loop {} is annotated already", step.loop));
  }
  if (loop.buffers != 1) return absl::FailedPreconditionError(fmt::format("loop {} is pipelined already", step.loop));
  if (step.buffers < 2 || step.buffers > kPipelineBuffersMax) {
    return absl::FailedPreconditionError(
        fmt::format("{} buffers; the number must be from 2 to {}", step.buffers, kPipelineBuffersMax));
  }
  const bool copies =
      std::ranges::any_of(state.nests, [&](const Nest& other) { return IsCopiedAt(other, *nest, loop); });
  if (!copies) {
    return absl::FailedPreconditionError(
        fmt::format("no stage is copied asynchronously at loop {}: apply copy_async first", step.loop));
  }
  HONE_RETURN_IF_ERROR(CheckAsyncIterations(step, state, *nest, position));
  loop.buffers = step.buffers;
  loop.async_iterations = step.async_iterations;
  // Consecutive buffers lie directly behind one another, so the second may start at an unaligned address.
  for (const Nest& other : state.nests) {
    if (IsCopiedAt(other, *nest, loop)) HONE_RETURN_IF_ERROR(CheckCopy(state, other));
  }
  return absl::OkStatus();
}

}  // namespace hone::schedule
