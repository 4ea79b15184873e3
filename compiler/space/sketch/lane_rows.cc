// SPDX-License-Identifier: Apache-2.0
// The rule for softmax, normalizations and reductions along memory on targets with lanes: every group computes one row,
// and its lanes share the row's reductions.
#include <algorithm>
#include <set>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/lanes.h"
#include "compiler/space/sketch/operands.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Nest;
using schedule::Tail;

constexpr int64_t kFewRowsMax = 4096;  // with fewer rows, one lane each does not keep the device busy
constexpr int64_t kUnitLanes = 1024;   // lanes of a unit that hide each other's memory latency
constexpr int64_t kSecondLevel = 8;    // lanes that combine the partial results of all lanes, if there are two levels

// The rows that groups compute: one for each value of the first `common` axes of the stage `output`. A row includes
// everything that other stages compute for it alone.
struct Rows {
  std::string output;
  size_t common;
  std::string prefix;             // of the names of decisions
  std::set<std::string> outside;  // stages that are computed elsewhere
};

// The stages that a row includes, except the output; producers come first.
std::vector<std::string> StagesIn(const Sketch& sketch, const Rows& rows) {
  std::vector<std::string> stages;
  for (const Nest& nest : sketch.state.nests) {
    const std::string& name = nest.stage.buffer->name;
    if (name != rows.output && !nest.prepared && !rows.outside.contains(name)) stages.push_back(name);
  }
  return stages;
}

// Distributes the elements of a row of the stage over the lanes; neighbouring lanes have neighbouring elements.
absl::Status SpreadRow(Sketch& sketch, const std::string& stage, size_t common, int64_t lanes) {
  const Nest& nest = sketch.Get(stage);
  const size_t axes = nest.stage.axes.size();
  if (axes <= common) return absl::OkStatus();
  std::vector<std::string> before, reduce;
  for (size_t i = 0; i < common; ++i) before.push_back(nest.loops[i].name);
  for (const schedule::Loop& loop : nest.loops) {
    if (loop.reduce) reduce.push_back(loop.name);
  }
  HONE_ASSIGN_OR_RETURN(const std::string row, FuseFrom(sketch, stage, common, axes));
  HONE_ASSIGN_OR_RETURN(const SplitLoops split, sketch.Split(row, lanes, Tail::kMask));
  schedule::Reorder order{before};
  order.loops.push_back(split.inner);
  order.loops.push_back(split.outer);
  order.loops.insert(order.loops.end(), reduce.begin(), reduce.end());
  HONE_RETURN_IF_ERROR(sketch.Do(order));
  return sketch.Do(Annotate{split.inner, ir::LoopKind::kLane});
}

// The number of elements that the stage has in one row.
int64_t RowElements(const ir::Stage& s, size_t common) {
  int64_t elements = 1;
  for (size_t d = common; d < s.axes.size(); ++d) elements *= s.axes[d].extent.max();
  return elements;
}

bool IsRows(const Sketch& sketch, size_t common) {
  const schedule::State& state = sketch.state;
  int64_t bytes = 0, longest = 0, rows = 1;
  bool along = false, across = true;
  for (size_t d = 0; d < common; ++d) rows *= state.outputs[0]->shape[d].max();
  for (const Nest& nest : state.nests) {
    if (nest.prepared) return false;
    if (nest.stage.reduction != ir::Reduction::kNone) {
      longest = std::max(longest, ReduceSteps(nest.stage));
      along |= ReadsAlongReduction(nest.stage) || IsVectorProduct(state, nest.stage);
      across &= ReadsAlongResult(nest.stage);
    }
    if (!state.IsOutput(nest.stage.buffer.get())) bytes += RowBytes(nest.stage, common);
  }
  if (longest < kLaneSharedStepsMin || 2 * bytes > sketch.target.memory.default_shared_bytes) return false;
  if (longest >= kSplitRowStepsMin && 2 * rows <= sketch.target.hierarchy.units) return false;
  // One lane per element would do for a workload that is one reduction per element. Rows are better if these lanes
  // would load elements that lie apart, or if there are too few of them.
  const bool rows_have_elements = ir::NumElements(*state.outputs[0]) > rows || state.nests.size() > 2;
  const bool loads_cost = sketch.target.memory.shared_gain > 1;
  if (rows_have_elements || (loads_cost && along)) return true;
  return rows < kFewRowsMax && !(loads_cost && across);
}

// The stages that reduce to a single element per row.
std::vector<std::string> RowReductions(const Sketch& sketch, const Rows& rows) {
  std::vector<std::string> stages;
  for (const std::string& name : StagesIn(sketch, rows)) {
    const ir::Stage& s = sketch.Get(name).stage;
    if (s.reduction != ir::Reduction::kNone && RowElements(s, rows.common) == 1) stages.push_back(name);
  }
  return stages;
}

// Splits the reduction into one partial result per lane. With one level, a single lane combines all of them. With two
// levels, kSecondLevel lanes combine them first, and a single lane combines the rest.
absl::Status SplitReduction(Sketch& sketch, const std::string& stage, int64_t lanes, int64_t levels) {
  const ir::Axis longest = LongestReduceAxis(sketch.Get(stage).stage);
  if (longest.extent.max() < 2) return absl::OkStatus();
  const int64_t count = std::min(lanes, longest.extent.max());
  HONE_ASSIGN_OR_RETURN(const Partials partials, sketch.Rfactor({stage, longest.name, count, true}));
  if (levels == 1 || count <= kSecondLevel) return absl::OkStatus();
  return sketch.Rfactor({stage, partials.axis, kSecondLevel, true}).status();
}

// A stage whose result comes from a lane reduction (shuffles). `parts` is the stage of the partial results, one per
// lane.
struct LaneReduced {
  std::string stage, parts;
};

// Splits each reduction for lane reductions, which combine the lanes of one warp by shuffles. If the group has several
// warps, every lane then combines the results of all warps.
absl::StatusOr<std::vector<LaneReduced>> SplitForLaneReductions(Sketch& sketch, const Rows& rows, int64_t lanes) {
  const int64_t width = sketch.target.hierarchy.shuffle_lanes;
  std::vector<LaneReduced> lane_reduced;
  for (const std::string& stage : RowReductions(sketch, rows)) {
    const ir::Axis longest = LongestReduceAxis(sketch.Get(stage).stage);
    if (longest.extent.max() < width) {
      HONE_RETURN_IF_ERROR(SplitReduction(sketch, stage, lanes, 1));
      continue;
    }
    const int64_t count = std::min(lanes, longest.extent.max()) / width * width;
    HONE_ASSIGN_OR_RETURN(const Partials lane_partials, sketch.Rfactor({stage, longest.name, count, true}));
    std::string reduced = stage;
    if (count > width) {
      HONE_ASSIGN_OR_RETURN(const Partials warp_partials, sketch.Rfactor({stage, lane_partials.axis, width, false}));
      reduced = warp_partials.stage;
    }
    lane_reduced.push_back({std::move(reduced), lane_partials.stage});
  }
  return lane_reduced;
}

// The number of lanes of a group that reduces by shuffles: `lanes`, or the longest row if that is less, rounded down to
// whole warps. 0: the target has no shuffles, or the row is shorter than a warp.
int64_t MergingLanes(const Sketch& sketch, const Rows& rows, int64_t lanes) {
  const int64_t width = sketch.target.hierarchy.shuffle_lanes;
  if (width == 0) return 0;
  int64_t most = RowElements(sketch.Get(rows.output).stage, rows.common);
  if (most == 1) {  // then the longest of the stages inside decides
    for (const std::string& stage : StagesIn(sketch, rows)) {
      most = std::max(most, RowElements(sketch.Get(stage).stage, rows.common));
    }
    for (const std::string& stage : RowReductions(sketch, rows)) {
      most = std::max(most, LongestReduceAxis(sketch.Get(stage).stage).extent.max());
    }
  }
  return std::min(lanes, most) / width * width;
}

// How a group computes one row.
struct RowPlan {
  size_t common;
  int64_t lanes;
  bool uses_lane_reductions =
      false;  // partial results are combined by lane reductions; else they go through shared memory
  std::vector<LaneReduced> lane_reduced = {};

  bool IsParts(const std::string& stage) const {
    return std::ranges::find(lane_reduced, stage, &LaneReduced::parts) != lane_reduced.end();
  }
  const LaneReduced* FindLaneReduced(const std::string& stage) const {
    const auto found = std::ranges::find(lane_reduced, stage, &LaneReduced::stage);
    return found == lane_reduced.end() ? nullptr : &*found;
  }
};

// Makes the reduction axis of the stage a loop over lanes, and computes each lane's partial result inside it.
absl::Status ReduceAcrossLanes(Sketch& sketch, const LaneReduced& lane_reduced, size_t common) {
  const ir::Stage s = sketch.Get(lane_reduced.stage).stage;
  if (RowElements(s, common) > 1) HONE_RETURN_IF_ERROR(sketch.Do(Annotate{s.axes.back().name, ir::LoopKind::kLane}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{s.reduce_axes[0].name, ir::LoopKind::kLane}));
  return sketch.Do(schedule::ComputeAt{lane_reduced.parts, s.reduce_axes[0].name});
}

// Puts stages into shared memory. A stage with one element per row stays in every lane's registers instead, if lanes
// reduce by shuffles and all lanes of the group get the result.
absl::Status StoreStages(Sketch& sketch, const std::vector<std::string>& stages, const RowPlan& plan) {
  for (const std::string& stage : stages) {
    const bool all_know = plan.FindLaneReduced(stage) == nullptr || plan.lanes == sketch.target.hierarchy.shuffle_lanes;
    const bool own = plan.uses_lane_reductions && all_know && RowElements(sketch.Get(stage).stage, plan.common) == 1;
    if (own || plan.IsParts(stage)) continue;
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::StoreIn{stage, ir::Scope::kShared}));
  }
  return absl::OkStatus();
}

// Computes the stages inside the loop over groups. Readers come first, because a stage needs a placed reader.
absl::Status PlaceStages(Sketch& sketch, const std::vector<std::string>& stages, const RowPlan& plan,
                         const std::string& group) {
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    if (plan.IsParts(*stage)) continue;
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{*stage, group}));
    if (const LaneReduced* lane_reduced = plan.FindLaneReduced(*stage)) {
      HONE_RETURN_IF_ERROR(ReduceAcrossLanes(sketch, *lane_reduced, plan.common));
    } else if (ir::IsShared(sketch.Get(*stage).storage.scope)) {
      HONE_RETURN_IF_ERROR(SpreadRow(sketch, *stage, plan.common, plan.lanes));
    }
  }
  return absl::OkStatus();
}

// The preferred number of lanes for a row: 32, doubled while each lane would have too many elements. A few elements per
// lane are too many if there are not enough rows to hide memory latency.
int64_t PreferredLanes(const Sketch& sketch, const Rows& rows) {
  constexpr int64_t kLeast = 32, kMost = 256, kFew = 8, kMany = 64;
  if (sketch.target.hierarchy.shuffle_lanes == 0) return kLeast;
  int64_t longest = 1, count = 1;
  for (const std::string& stage : RowReductions(sketch, rows)) {
    longest = std::max(longest, LongestReduceAxis(sketch.Get(stage).stage).extent.max());
  }
  for (size_t d = 0; d < rows.common; ++d) count *= sketch.Get(rows.output).stage.axes[d].extent.max();
  int64_t lanes = kLeast;
  while (lanes < kMost) {
    const bool idle = count * lanes < kUnitLanes * sketch.target.hierarchy.units;
    if (longest <= lanes * (idle ? kFew : kMany)) break;
    lanes *= 2;
  }
  return lanes;
}

absl::StatusOr<RowPlan> SplitReductions(Sketch& sketch, const Rows& rows) {
  const int64_t preferred = PreferredLanes(sketch, rows), most = sketch.target.hierarchy.max_lanes;
  RowPlan plan{rows.common, ChooseLanes(sketch, rows.prefix + "lanes", {8, 16, 32, 64, 128, 256}, preferred, most)};
  const int64_t merging = MergingLanes(sketch, rows, plan.lanes);
  plan.uses_lane_reductions = merging > 0 && sketch.chooser.OneOf(rows.prefix + "merges", {0, 1}, 1) == 1;
  if (plan.uses_lane_reductions) {
    plan.lanes = merging;
    HONE_ASSIGN_OR_RETURN(plan.lane_reduced, SplitForLaneReductions(sketch, rows, plan.lanes));
    return plan;
  }
  // If barriers are cheap, two levels are better than a single lane that combines hundreds of partial results.
  const bool barriers_are_cheap = sketch.target.memory.shared_gain > 1;
  const int64_t levels =
      plan.lanes > kSecondLevel ? sketch.chooser.OneOf(rows.prefix + "levels", {1, 2}, barriers_are_cheap ? 2 : 1) : 1;
  for (const std::string& stage : RowReductions(sketch, rows)) {
    HONE_RETURN_IF_ERROR(SplitReduction(sketch, stage, plan.lanes, levels));
  }
  return plan;
}

// Packs matrices of constants so that neighbouring lanes, which share the reduction of a row, read neighbours in
// memory.
absl::Status PackMatrices(Sketch& sketch, const Rows& rows) {
  for (const std::string& stage : RowReductions(sketch, rows)) {
    const ir::Stage s = sketch.Get(stage).stage;
    if (!IsVectorProduct(sketch.state, s) || ReadsAlongReduction(s)) continue;
    for (const ir::Load& load : LoadsOf(s)) {
      if (!schedule::IsFixed(sketch.state, load.buffer.get()) || load.indices.size() < 2) continue;
      HONE_RETURN_IF_ERROR(PackLast(sketch, stage, load, LongestReduceAxis(s).name));
    }
  }
  return absl::OkStatus();
}

absl::Status ScheduleRowsOf(Sketch& sketch, const Rows& rows) {
  HONE_RETURN_IF_ERROR(PackMatrices(sketch, rows));
  HONE_ASSIGN_OR_RETURN(const RowPlan plan, SplitReductions(sketch, rows));
  const std::vector<std::string> stages = StagesIn(sketch, rows);
  HONE_RETURN_IF_ERROR(StoreStages(sketch, stages, plan));
  // One group per row: the rows are the outermost loops of the output.
  for (size_t d = 0; d < rows.common; ++d) {
    HONE_RETURN_IF_ERROR(sketch.Do(Annotate{sketch.Get(rows.output).loops[d].name, ir::LoopKind::kGroup}));
  }
  const std::string group = sketch.Get(rows.output).loops[rows.common - 1].name;
  HONE_RETURN_IF_ERROR(SpreadRow(sketch, rows.output, rows.common, plan.lanes));
  return PlaceStages(sketch, stages, plan, group);
}

}  // namespace

absl::StatusOr<bool> ScheduleLaneRows(Sketch& sketch) {
  if (sketch.state.outputs.size() != 1) return false;
  const size_t common = CommonAxes(sketch.state);
  if (common == 0 || !IsRows(sketch, common)) return false;
  const std::string output = sketch.state.outputs[0]->name;
  if (sketch.Get(output).stage.reduction != ir::Reduction::kNone) {
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::CacheWrite{output}));
  }
  HONE_RETURN_IF_ERROR(ScheduleRowsOf(sketch, {output, common, "rows.", {}}));
  return true;
}

absl::Status ShareRow(Sketch& sketch, const std::string& reader, const std::string& stage) {
  Rows rows{reader, sketch.Get(reader).stage.axes.size(), reader + ".", {}};
  for (const std::string& other : StagesOf(sketch.state)) {
    if (other != stage) rows.outside.insert(other);
  }
  return ScheduleRowsOf(sketch, rows);
}

}  // namespace hone::space
