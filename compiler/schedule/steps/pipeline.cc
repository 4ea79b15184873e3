#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "compiler/schedule/apply.h"
#include "compiler/schedule/copy.h"

namespace hone::schedule {
namespace {

constexpr int64_t kMostBuffers = 8;

bool IsCopiedAt(const Nest& nest, const Nest& reader, const Loop& loop) {
  return nest.copy > 0 && nest.at_stage == reader.stage.buffer->name && nest.at_loop == loop.name;
}

}  // namespace

absl::Status Apply(const Pipeline& step, State& state) {
  size_t position = 0;
  Nest* nest = state.FindLoop(step.loop, &position);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("no loop {}", step.loop));
  Loop& loop = nest->loops[position];
  HONE_RETURN_IF_ERROR(CheckNoStatement(*nest, position));
  if (loop.kind != ir::LoopKind::kSerial) {
    return absl::FailedPreconditionError(fmt::format("loop {} is annotated", step.loop));
  }
  if (loop.buffers != 1) return absl::FailedPreconditionError(fmt::format("loop {} is pipelined already", step.loop));
  if (step.buffers < 2 || step.buffers > kMostBuffers) {
    return absl::FailedPreconditionError(fmt::format("{} buffers; 2 to {} make sense", step.buffers, kMostBuffers));
  }
  const bool copies =
      std::ranges::any_of(state.nests, [&](const Nest& other) { return IsCopiedAt(other, *nest, loop); });
  if (!copies) {
    return absl::FailedPreconditionError(fmt::format("no stage is copied at loop {}: copy_async first", step.loop));
  }
  loop.buffers = step.buffers;
  // A buffer begins where the one before it ends, which need not be where a copy may begin.
  for (const Nest& other : state.nests) {
    if (IsCopiedAt(other, *nest, loop)) HONE_RETURN_IF_ERROR(CheckCopy(state, other));
  }
  return absl::OkStatus();
}

}  // namespace hone::schedule
