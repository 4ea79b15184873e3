// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/status.h"
#include "compiler/schedule/apply.h"
#include "compiler/schedule/copy.h"

namespace hone::schedule {
namespace {

absl::Status CheckStage(const CopyAsync& step, const Nest& nest) {
  if (nest.copy.elements > 0 || nest.instruction.has_value()) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is copied asynchronously or tensorized already", step.stage));
  }
  if (nest.IsTopLevel() || !ir::IsShared(nest.storage.scope)) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} must be computed inside a loop and stored in shared memory", step.stage));
  }
  const int64_t bytes = step.count * ir::SizeOf(nest.stage.buffer->dtype);
  const bool of_lane = step.groups == 1 && std::ranges::find(ir::kCopyBytes, bytes) != std::end(ir::kCopyBytes);
  if (of_lane) return absl::OkStatus();
  const bool is_bulk = step.groups > 0 && bytes > std::ranges::max(ir::kCopyBytes) && bytes <= ir::kBulkCopyBytesMax &&
                       bytes % (ir::kBulkCopyAlignmentBytes * step.groups) == 0;
  if (!is_bulk) {
    return absl::FailedPreconditionError(fmt::format(
        "one copy of {} elements has {} bytes; a copy by one lane must have {} bytes, a bulk copy a multiple of {} "
        "bytes for each group, up to {}",
        step.count, bytes, fmt::join(ir::kCopyBytes, ", "), ir::kBulkCopyAlignmentBytes, ir::kBulkCopyBytesMax));
  }
  if (nest.storage.scope == ir::Scope::kSwizzled) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is swizzled; a bulk copy cannot write swizzled memory", step.stage));
  }
  if (!nest.HasLoop(ir::LoopKind::kLane)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("loops of stage {} are bound to lanes; a bulk copy is issued by one lane", step.stage));
}

// The copy replaces the innermost loop, which must have exactly `count` iterations.
absl::Status CheckCopiedLoop(const Nest& nest, int64_t count) {
  const Loop* last = nest.loops.empty() ? nullptr : &nest.loops.back();
  const ir::IntImm* extent = last == nullptr ? nullptr : last->extent.As<ir::IntImm>();
  if (extent != nullptr && extent->value == count && last->kind == ir::LoopKind::kSerial) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "the innermost loop of stage {} must have {} iterations and no annotation", nest.stage.buffer->name, count));
}

}  // namespace

absl::Status Apply(const CopyAsync& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  HONE_RETURN_IF_ERROR(CheckStage(step, *nest));
  if (step.count > 1) {
    HONE_RETURN_IF_ERROR(CheckCopiedLoop(*nest, step.count));
    HONE_RETURN_IF_ERROR(CheckNoStageAtLoop(state, *nest, nest->loops.size() - 1));
    for (ir::Expr& guard : nest->conditions.guards) {
      HONE_ASSIGN_OR_RETURN(guard, HoistCondition(guard, nest->loops.back().name, step.count, state.LoopRanges()));
    }
  }
  nest->copy.elements = step.count;
  nest->copy.groups = step.groups;
  nest->has_loop_steps = true;
  return CheckCopy(state, *nest);
}

}  // namespace hone::schedule
