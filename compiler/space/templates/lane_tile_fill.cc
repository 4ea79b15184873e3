// SPDX-License-Identifier: Apache-2.0
// Decisions about how the lanes of a group fill shared memory. Neighbouring lanes take neighbouring vectors. If the
// target has asynchronous copies, the copies of later steps may run while lanes compute.
#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/status.h"
#include "compiler/schedule/grid.h"
#include "compiler/space/sketch.h"
#include "compiler/space/templates/lane_tile_choice.h"

namespace hone::space {
namespace {

using schedule::Annotate;

// Whether all steps of the rule are legal.
template <typename Rule>
bool IsLegal(const Sketch& sketch, const Rule& rule) {
  Sketch trial = sketch;
  return rule(trial).ok();
}

std::vector<std::string> LoopsOf(const Sketch& sketch, const std::string& stage) {
  std::vector<std::string> names;
  for (const schedule::Loop& loop : sketch.Get(stage).loops) names.push_back(loop.name);
  return names;
}

// Each lane copies `width` elements at a time: by an asynchronous copy, or else by a vector load and store.
absl::Status FillByLanes(Sketch& sketch, const SharedStage& shared, int64_t width, bool asynchronous) {
  std::vector<std::string> loops = LoopsOf(sketch, shared.stage);
  if (shared.chunk_loop.has_value()) {
    const auto first = loops.begin() + static_cast<std::ptrdiff_t>(*shared.chunk_loop);
    std::rotate(first, first + 1, loops.end() - 1);
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::Reorder{loops}));
  }
  std::string elements;  // the loop over the elements that a lane copies at once
  if (width > 1) {
    HONE_ASSIGN_OR_RETURN(const SplitLoops split, sketch.Split(loops.back(), width, schedule::Tail::kMask));
    loops.back() = split.outer;
    elements = split.inner;
  }
  HONE_ASSIGN_OR_RETURN(const std::string fused, sketch.FuseAll(loops));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{fused, ir::LoopKind::kLane}));
  if (asynchronous) return sketch.Do(schedule::CopyAsync{shared.stage, width});
  return width > 1 ? sketch.Do(Annotate{elements, ir::LoopKind::kVectorized}) : absl::OkStatus();
}

// Fills the stage by one bulk copy of the whole group, which replaces the loops from `first` on. `sharing` groups share
// it.
absl::Status FillByGroup(Sketch& sketch, const std::string& stage, size_t first, int64_t sharing) {
  const std::vector<schedule::Loop> loops = sketch.Get(stage).loops;
  std::vector<std::string> inner;
  int64_t count = 1;
  for (size_t i = first; i < loops.size(); ++i) {
    inner.push_back(loops[i].name);
    count *= loops[i].max_extent;
  }
  HONE_RETURN_IF_ERROR(sketch.FuseAll(inner).status());
  return sketch.Do(schedule::CopyAsync{stage, count, sharing});
}

// The outermost loop that one bulk copy of a group can replace with everything inside; nullopt if there is none.
std::optional<size_t> FindBulkCopy(const Sketch& trial, const std::string& stage, int64_t sharing) {
  if (trial.target.hierarchy.sharing_groups == 0) return std::nullopt;
  for (size_t first = 0; first + 1 < trial.Get(stage).loops.size(); ++first) {
    if (IsLegal(trial, [&](Sketch& sketch) { return FillByGroup(sketch, stage, first, sharing); })) return first;
  }
  return std::nullopt;
}

// The possible numbers of elements of a lane's vector.
std::vector<int64_t> VectorWidths(const Sketch& trial, const std::string& stage) {
  std::vector<int64_t> widths;
  for (const int64_t width : {1, 2, 4}) {
    if (trial.Get(stage).loops.back().max_extent % width == 0) widths.push_back(width);
  }
  return widths;
}

// The possible numbers of elements of a lane's asynchronous copy, ascending; empty if the stage is no plain copy.
std::vector<int64_t> CopyCounts(const Sketch& trial, const SharedStage& shared, const std::string& steps,
                                int64_t buffers) {
  std::vector<int64_t> counts;
  const int64_t size = ir::SizeOf(trial.Get(shared.stage).stage.buffer->dtype);
  for (const int64_t bytes : ir::kCopyBytes) {
    const int64_t count = bytes / size;
    if (bytes > trial.target.memory.async_copy_bytes || bytes % size != 0 ||
        trial.Get(shared.stage).loops.back().max_extent % count != 0) {
      continue;
    }
    const auto fill = [&](Sketch& sketch) -> absl::Status {
      HONE_RETURN_IF_ERROR(FillByLanes(sketch, shared, count, true));
      return sketch.Do(schedule::Pipeline{steps, buffers});
    };
    if (IsLegal(trial, fill)) counts.push_back(count);
  }
  return counts;
}

// Chooses the number of buffers in shared memory. Stages that the tile rounds there always have one buffer.
int64_t ChooseBuffers(const LaneProblem& p, const Sketch& trial, const LaneTilePlan& plan) {
  if (p.target.memory.async_copy_bytes == 0 || plan.shared.empty()) return 0;
  int64_t bytes = 1, once = 0, groups = 1;
  for (const schedule::Grid& grid : schedule::Grids(trial.state)) {
    if (grid.shared_bytes > bytes) std::tie(bytes, groups) = std::pair(grid.shared_bytes, grid.groups);
  }
  for (const SharedStage& shared : plan.shared) {
    if (shared.rounds.empty()) continue;
    once += ir::PaddedSharedBytes(schedule::StoredBytes(trial.state, trial.Get(shared.stage)));
  }
  const int64_t fit = (GroupSharedBytesMax(p.target, plan) - once) / (bytes - once);
  // With instructions that read shared memory themselves, lanes mostly wait for copies, so more buffers pay. A group
  // that has a unit for itself may use all of the unit's shared memory.
  const int64_t preferred = !plan.ReadsSharedMemory() ? 3 : groups > p.target.hierarchy.units ? 4 : 6;
  const std::vector<int64_t> counts = {0, 2, 3, 4, 5, 6, 8};
  return p.Choose("buffers", counts, *std::prev(std::ranges::upper_bound(counts, std::min(fit, preferred))));
}

// Chooses how the stage is filled, and does it on the trial. Returns whether asynchronous copies fill it.
absl::StatusOr<bool> ChooseFill(const LaneProblem& p, const std::string& steps, const LaneTilePlan& plan,
                                const SharedStage& shared, Sketch& trial) {
  const std::string& name = shared.stage;
  const bool may_group = plan.buffers > 0 && shared.group_copies;
  const std::optional<size_t> group = may_group ? FindBulkCopy(trial, name, plan.sharing) : std::nullopt;
  if (group.has_value() && (plan.sharing > 1 || p.Choose("together", {0, 1}, 0) == 1)) {
    HONE_RETURN_IF_ERROR(FillByGroup(trial, name, *group, plan.sharing));
    return true;
  }
  const std::vector<int64_t> counts =
      plan.buffers > 0 ? CopyCounts(trial, shared, steps, plan.buffers) : std::vector<int64_t>();
  const bool asynchronous = !counts.empty();
  const int64_t width = asynchronous ? p.Choose(name + ".copy", counts, counts.back())
                                     : p.Choose(name + ".width", VectorWidths(trial, name), 4);
  HONE_RETURN_IF_ERROR(FillByLanes(trial, shared, width, asynchronous));
  return asynchronous;
}

}  // namespace

absl::Status ChooseFilling(const LaneProblem& p, const std::string& steps, Sketch& trial, LaneTilePlan* plan) {
  plan->buffers = ChooseBuffers(p, trial, *plan);
  for (SharedStage& shared : plan->shared) {
    const auto fill = [&](Sketch& sketch) -> absl::Status {
      HONE_ASSIGN_OR_RETURN(const bool asynchronous, ChooseFill(p, steps, *plan, shared, sketch));
      plan->pipelined |= asynchronous;
      return absl::OkStatus();
    };
    HONE_ASSIGN_OR_RETURN(shared.fill, StepsTaken(trial, fill));
  }
  if (!plan->pipelined) return absl::OkStatus();
  const auto overlap = [&](Sketch& sketch) { return sketch.Do(schedule::Pipeline{steps, plan->buffers, 1}); };
  plan->overlaps_instructions = IsLegal(trial, overlap) && p.Choose("running", {0, 1}, 1) == 1;
  return trial.Do(schedule::Pipeline{steps, plan->buffers, plan->overlaps_instructions ? 1 : 0});
}

}  // namespace hone::space
