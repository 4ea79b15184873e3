// SPDX-License-Identifier: Apache-2.0
// Operands of a tiled reduction: where their producers are computed, which are packed, and which are copied per task.
#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/elementwise.h"
#include "compiler/space/sketch/operands.h"
#include "compiler/space/sketch/tiling.h"

namespace hone::space {
namespace {

constexpr double kThroughMemory = 2;      // data of more than so many last-level caches comes from memory
constexpr int64_t kInlinedStepsMax = 64;  // the most steps of a reduction whose padding may be inlined

// Schedules a producer or a copy: in the task loop if for_task is set and there is one, else at the top level.
absl::Status Compute(Tiling& t, const std::string& producer, bool for_task) {
  if (!for_task || t.loops[0].empty()) return ScheduleElementwise(t.sketch, producer);
  HONE_RETURN_IF_ERROR(t.sketch.Do(schedule::ComputeAt{producer, t.loops[0].front().name}));
  return VectorizeCopy(t.sketch, producer);
}

}  // namespace

// Padding and similar producers are computed by a loop nest before, for each task, or inlined.
absl::Status PlaceProducers(Tiling& t) {
  t.producers = OwnProducers(t.sketch.state, t.StageOf(t.stage));
  if (t.producers.empty()) return absl::OkStatus();
  std::vector<int64_t> places = {Tiling::kAtTopLevel, Tiling::kAtTask};
  if (t.steps <= kInlinedStepsMax) places.push_back(Tiling::kInlined);
  // Data from memory is limited by its bandwidth, and a copy would only add traffic to the caches. A reduction other
  // than a sum cannot fill its window with zeros, and the conditions it needs cost more than a copy.
  const bool in_place = t.CachesFilled() > kThroughMemory && t.StageOf(t.stage).reduction == ir::Reduction::kSum;
  t.place = t.Choose("pad", places, in_place ? places.back() : Tiling::kAtTask);
  if (t.place != Tiling::kInlined) return absl::OkStatus();
  for (const std::string& producer : t.producers) HONE_RETURN_IF_ERROR(t.sketch.Do(schedule::Inline{producer}));
  t.producers.clear();
  return absl::OkStatus();
}

absl::Status PackOperands(Tiling& t) {
  if (t.packed.empty()) return absl::OkStatus();
  const bool packs = t.Choose("pack", {0, 1}, 1) == 1;
  if (!packs) {
    t.packed.clear();
    return absl::OkStatus();
  }
  std::set<std::string> done;
  for (const ir::Load& load : LoadsOf(t.StageOf(t.sums))) {
    const std::string source = load.buffer->name;
    if (!t.packed.contains(load.buffer.get()) || !done.insert(source).second) continue;
    const ir::Stage& s = t.StageOf(t.sums);
    const std::string& vector = s.axes[static_cast<size_t>(t.tile.vector)].name;
    const auto order =
        PackedOrder(load, vector, t.tile.sizes[static_cast<size_t>(t.tile.vector)], ReductionOrder(s, vector));
    HONE_ASSIGN_OR_RETURN(const std::string packed, t.sketch.Pack(source, t.sums, order));
    if (!t.sketch.Get(packed).prepared) HONE_RETURN_IF_ERROR(ScheduleElementwise(t.sketch, packed));
    std::erase(t.producers, source);  // its reader is the packing, at the top level
  }
  return absl::OkStatus();
}

// Operands that come from memory as they are may be copied for each task, so that a task reads contiguous memory.
absl::Status CopyOperands(Tiling& t) {
  std::vector<std::string> operands;
  for (const ir::Load& load : LoadsOf(t.StageOf(t.sums))) {
    const bool read_once = std::ranges::find(operands, load.buffer->name) != operands.end();
    if (!read_once && t.sketch.state.FindNest(load.buffer.get()) == nullptr) operands.push_back(load.buffer->name);
  }
  if (operands.empty() || t.TaskBytes(t.Block(), &operands) > CopiedBytesMax(t.sketch.target)) return absl::OkStatus();
  if (t.Choose("copy", {0, 1}, 0) == 0) return absl::OkStatus();
  for (const std::string& operand : operands) {
    HONE_ASSIGN_OR_RETURN(t.copies.emplace_back(), t.sketch.CacheRead(operand, t.sums));
  }
  return absl::OkStatus();
}

absl::Status ComputeProducers(Tiling& t) {
  const bool fits = t.TaskBytes(t.Block(), &t.producers) <= CopiedBytesMax(t.sketch.target);
  for (const std::string& producer : t.producers)
    HONE_RETURN_IF_ERROR(Compute(t, producer, t.place == Tiling::kAtTask && fits));
  for (const std::string& copy : t.copies) HONE_RETURN_IF_ERROR(Compute(t, copy, true));
  return absl::OkStatus();
}

}  // namespace hone::space
