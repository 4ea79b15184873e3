// Rules for targets with lanes: element-wise stages, reductions of a lane each, and rows that all lanes of a group
// share.
#include <algorithm>
#include <bit>

#include "base/status.h"
#include "compiler/space/sketch.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Nest;
using schedule::Split;
using schedule::Tail;

constexpr int64_t kUnrolledWindow = 27;  // steps of a reduction that are written out
constexpr int64_t kFewElements = 4096;   // outputs that do not keep all lanes busy, one each
constexpr int64_t kLongReduction = 64;   // worth taking apart
constexpr int64_t kSecondLevel = 8;      // lanes that take the partial results of all lanes together

int64_t ReduceSteps(const ir::Stage& s) {
  int64_t steps = 1;
  for (const ir::Axis& axis : s.reduce_axes) steps *= axis.extent;
  return steps;
}

// Loops [first, end) of the stage as one; its name.
absl::StatusOr<std::string> FuseFrom(Sketch& sketch, const std::string& stage, size_t first, size_t end) {
  std::vector<std::string> loops;
  for (size_t i = first; i < end; ++i) loops.push_back(sketch.Get(stage).loops[i].name);
  return FuseAll(sketch, loops);
}

// The elements of a row over the lanes, neighbours to neighbours.
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
  HONE_RETURN_IF_ERROR(sketch.Do(Split{row, lanes, Tail::kMask}));
  schedule::Reorder order{before};
  order.loops.push_back(row + "i");
  order.loops.push_back(row + "o");
  order.loops.insert(order.loops.end(), reduce.begin(), reduce.end());
  HONE_RETURN_IF_ERROR(sketch.Do(order));
  return sketch.Do(Annotate{row + "i", ir::LoopKind::kLane});
}

bool IsRows(const schedule::State& state, size_t common, int64_t shared_bytes) {
  if (state.outputs.size() != 1) return false;
  int64_t bytes = 0, longest = 0, rows = 1;
  for (size_t d = 0; d < common; ++d) rows *= state.outputs[0]->shape[d];
  for (const Nest& nest : state.nests) {
    if (nest.prepared) return false;
    if (nest.stage.reduction != ir::Reduction::kNone) longest = std::max(longest, ReduceSteps(nest.stage));
    int64_t elements = 1;
    for (size_t d = common; d < nest.stage.axes.size(); ++d) elements *= nest.stage.axes[d].extent;
    if (!state.IsOutput(nest.stage.buffer.get())) bytes += elements * ir::SizeOf(nest.stage.buffer->dtype);
  }
  if (longest < kLongReduction || 2 * bytes > shared_bytes) return false;
  // A reduction of its own kind per element is a lane's work, unless there are too few elements.
  const bool rows_have_elements = ir::NumElements(*state.outputs[0]) > rows || state.nests.size() > 2;
  return rows_have_elements || rows < kFewElements;
}

// How many elements of one row the stage has.
int64_t RowElements(const ir::Stage& s, size_t common) {
  int64_t elements = 1;
  for (size_t d = common; d < s.axes.size(); ++d) elements *= s.axes[d].extent;
  return elements;
}

const ir::Axis& LongestReduced(const ir::Stage& s) {
  return *std::ranges::max_element(s.reduce_axes,
                                   [](const ir::Axis& a, const ir::Axis& b) { return a.extent < b.extent; });
}

// The reductions to one element of a row.
std::vector<std::string> RowReductions(const Sketch& sketch, size_t common) {
  std::vector<std::string> stages;
  for (const Nest& nest : sketch.state.nests) {
    const bool reduces = nest.stage.reduction != ir::Reduction::kNone;
    if (reduces && RowElements(nest.stage, common) == 1) stages.push_back(nest.stage.buffer->name);
  }
  return stages;
}

// Partial results of all lanes first; then, of two levels, a few lanes take them together, and the first lane what is
// left.
absl::Status SplitReduction(Sketch& sketch, const std::string& stage, int64_t lanes, int64_t levels) {
  const ir::Axis longest = LongestReduced(sketch.Get(stage).stage);
  if (longest.extent < 2) return absl::OkStatus();
  const int64_t partials = std::min(lanes, longest.extent);
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Rfactor{stage, longest.name, partials, true}));
  if (levels == 1 || partials <= kSecondLevel) return absl::OkStatus();
  return sketch.Do(schedule::Rfactor{stage, longest.name + "y", kSecondLevel, true});
}

// A stage that lanes merge: `parts` is what each of them has.
struct Merged {
  std::string stage, parts;
};

// Where lanes merge partial results: as many as shuffle at a time, and every lane takes together what that leaves.
absl::StatusOr<std::vector<Merged>> SplitForMerges(Sketch& sketch, size_t common, int64_t lanes) {
  const int64_t width = sketch.target.hierarchy.shuffle_lanes;
  std::vector<Merged> merged;
  for (const std::string& stage : RowReductions(sketch, common)) {
    const ir::Axis longest = LongestReduced(sketch.Get(stage).stage);
    if (longest.extent < width) {
      HONE_RETURN_IF_ERROR(SplitReduction(sketch, stage, lanes, 1));
      continue;
    }
    const int64_t partials = std::min(lanes, longest.extent) / width * width;
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::Rfactor{stage, longest.name, partials, true}));
    if (partials > width) HONE_RETURN_IF_ERROR(sketch.Do(schedule::Rfactor{stage, longest.name + "y", width, false}));
    merged.push_back({partials > width ? stage + "ff" : stage, stage + "f"});
  }
  return merged;
}

// The lanes that a group has of so many if they shall merge: whole sets of those that shuffle; 0 if there are none.
int64_t MergingLanes(const Sketch& sketch, size_t common, int64_t lanes) {
  const int64_t width = sketch.target.hierarchy.shuffle_lanes;
  if (width == 0) return 0;
  int64_t most = RowElements(sketch.Get(sketch.state.outputs[0]->name).stage, common);
  if (most == 1) {  // then the longest of the stages inside decides
    for (const Nest& nest : sketch.state.nests) most = std::max(most, RowElements(nest.stage, common));
    for (const std::string& stage : RowReductions(sketch, common)) {
      most = std::max(most, LongestReduced(sketch.Get(stage).stage).extent);
    }
  }
  return std::min(lanes, most) / width * width;
}

// Partial results in a launch of their own, where there are too few elements to keep the lanes busy.
absl::Status TakeApart(Sketch& sketch, const std::string& stage) {
  const ir::Stage& s = sketch.Get(stage).stage;
  if (ir::NumElements(*s.buffer) * kLongReduction > kFewElements || ReduceSteps(s) < kFewElements) {
    return absl::OkStatus();
  }
  const auto longest =
      std::ranges::max_element(s.reduce_axes, [](const ir::Axis& a, const ir::Axis& b) { return a.extent < b.extent; });
  const int64_t parts =
      std::min<int64_t>(sketch.chooser.OneOf(stage + ".parts", {64, 256, 1024}, 256), longest->extent);
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Rfactor{stage, longest->name, parts, true}));
  const std::string partial = stage + "f";
  HONE_ASSIGN_OR_RETURN(const std::string all, FuseFrom(sketch, partial, 0, sketch.Get(partial).stage.axes.size()));
  HONE_RETURN_IF_ERROR(sketch.Do(Split{all, 64, Tail::kMask}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{all + "o", ir::LoopKind::kGroup}));
  return sketch.Do(Annotate{all + "i", ir::LoopKind::kLane});
}

// How the rows of a workload are computed, a group each.
struct RowPlan {
  size_t common;  // axes that count rows
  int64_t lanes;
  bool merges;  // lanes merge partial results; else all of these go through shared memory
  std::vector<Merged> merged = {};

  bool IsParts(const std::string& stage) const {
    return std::ranges::find(merged, stage, &Merged::parts) != merged.end();
  }
  const Merged* FindMerged(const std::string& stage) const {
    const auto found = std::ranges::find(merged, stage, &Merged::stage);
    return found == merged.end() ? nullptr : &*found;
  }
};

// The lanes over the parts of a merged stage, and what each of them has at its own.
absl::Status Merge(Sketch& sketch, const Merged& merged, size_t common) {
  const ir::Stage s = sketch.Get(merged.stage).stage;
  if (RowElements(s, common) > 1) HONE_RETURN_IF_ERROR(sketch.Do(Annotate{s.axes.back().name, ir::LoopKind::kLane}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{s.reduce_axes[0].name, ir::LoopKind::kLane}));
  return sketch.Do(schedule::ComputeAt{merged.parts, s.reduce_axes[0].name});
}

// Where lanes merge, each has for itself what is one element of a row, if all of them know it.
absl::Status StoreStages(Sketch& sketch, const std::vector<std::string>& stages, const RowPlan& plan) {
  for (const std::string& stage : stages) {
    const bool all_know = plan.FindMerged(stage) == nullptr || plan.lanes == sketch.target.hierarchy.shuffle_lanes;
    const bool own = plan.merges && all_know && RowElements(sketch.Get(stage).stage, plan.common) == 1;
    if (own || plan.IsParts(stage)) continue;
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::StoreIn{stage, ir::Scope::kShared}));
  }
  return absl::OkStatus();
}

// Inside the loop over groups, the readers first.
absl::Status PlaceStages(Sketch& sketch, const std::vector<std::string>& stages, const RowPlan& plan,
                         const std::string& group) {
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    if (plan.IsParts(*stage)) continue;
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{*stage, group}));
    if (const Merged* merged = plan.FindMerged(*stage)) {
      HONE_RETURN_IF_ERROR(Merge(sketch, *merged, plan.common));
    } else if (ir::IsShared(sketch.Get(*stage).scope)) {
      HONE_RETURN_IF_ERROR(SpreadRow(sketch, *stage, plan.common, plan.lanes));
    }
  }
  return absl::OkStatus();
}

// Lanes for a row: as many as merge at a time, and more for rows so long that each would have more than 64 elements.
int64_t PreferredLanes(const Sketch& sketch, size_t common) {
  constexpr int64_t kLeast = 32, kMost = 256, kElements = 64;
  if (sketch.target.hierarchy.shuffle_lanes == 0) return kLeast;
  int64_t longest = 1;
  for (const std::string& stage : RowReductions(sketch, common)) {
    longest = std::max(longest, LongestReduced(sketch.Get(stage).stage).extent);
  }
  return std::clamp(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(longest / kElements))), kLeast, kMost);
}

absl::StatusOr<RowPlan> SplitReductions(Sketch& sketch, size_t common) {
  const std::vector<int64_t> counts = {8, 16, 32, 64, 128, 256};
  RowPlan plan{.common = common, .lanes = sketch.chooser.OneOf("rows.lanes", counts, PreferredLanes(sketch, common))};
  const int64_t merging = MergingLanes(sketch, common, plan.lanes);
  plan.merges = merging > 0 && sketch.chooser.OneOf("rows.merges", {0, 1}, 1) == 1;
  if (plan.merges) {
    plan.lanes = merging;
    HONE_ASSIGN_OR_RETURN(plan.merged, SplitForMerges(sketch, common, plan.lanes));
    return plan;
  }
  // Where waiting for each other is cheap, a lane alone must not take hundreds of partial results together.
  const bool barriers_are_cheap = sketch.target.memory.shared_gain > 1;
  const int64_t levels =
      plan.lanes > kSecondLevel ? sketch.chooser.OneOf("rows.levels", {1, 2}, barriers_are_cheap ? 2 : 1) : 1;
  for (const std::string& stage : RowReductions(sketch, common)) {
    HONE_RETURN_IF_ERROR(SplitReduction(sketch, stage, plan.lanes, levels));
  }
  return plan;
}

}  // namespace

absl::StatusOr<bool> ScheduleLaneRows(Sketch& sketch) {
  if (sketch.state.outputs.size() != 1) return false;
  const size_t common = CommonAxes(sketch.state);
  if (common == 0 || !IsRows(sketch.state, common, sketch.target.memory.unasked_shared_bytes)) return false;
  const std::string output = sketch.state.outputs[0]->name;
  if (sketch.Get(output).stage.reduction != ir::Reduction::kNone) {
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::CacheWrite{output}));
  }
  HONE_ASSIGN_OR_RETURN(const RowPlan plan, SplitReductions(sketch, common));
  std::vector<std::string> stages;
  for (const Nest& nest : sketch.state.nests) {
    const std::string& name = nest.stage.buffer->name;
    if (name != output) stages.push_back(name);
  }
  HONE_RETURN_IF_ERROR(StoreStages(sketch, stages, plan));
  // One group per row: the rows are the outermost loops of the output.
  for (size_t d = 0; d < common; ++d) {
    HONE_RETURN_IF_ERROR(sketch.Do(Annotate{sketch.Get(output).loops[d].name, ir::LoopKind::kGroup}));
  }
  const std::string group = sketch.Get(output).loops[common - 1].name;
  HONE_RETURN_IF_ERROR(SpreadRow(sketch, output, common, plan.lanes));
  HONE_RETURN_IF_ERROR(PlaceStages(sketch, stages, plan, group));
  return true;
}

absl::Status ScheduleLaneReduction(Sketch& sketch, const std::string& reader, const std::string& stage) {
  HONE_RETURN_IF_ERROR(TakeApart(sketch, stage));
  const int64_t lanes = sketch.chooser.OneOf(reader + ".lanes", {32, 64, 128, 256}, 64);
  const size_t axes = sketch.Get(reader).stage.axes.size();
  if (axes == 0) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::string all, FuseFrom(sketch, reader, 0, axes));
  HONE_RETURN_IF_ERROR(sketch.Do(Split{all, lanes, Tail::kMask}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{all + "o", ir::LoopKind::kGroup}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{all + "i", ir::LoopKind::kLane}));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{stage, all + "i"}));
  const ir::Stage s = sketch.Get(stage).stage;
  if (ReduceSteps(s) > kUnrolledWindow || sketch.chooser.OneOf(reader + ".unroll", {0, 1}, 1) == 0) {
    return absl::OkStatus();
  }
  for (const ir::Axis& axis : s.reduce_axes) {
    HONE_RETURN_IF_ERROR(sketch.Do(Annotate{axis.name, ir::LoopKind::kUnrolled}));
  }
  return absl::OkStatus();
}

absl::Status ScheduleLaneElementwise(Sketch& sketch, const std::string& stage) {
  const ir::Stage s = sketch.Get(stage).stage;
  if (s.axes.empty() || ir::NumElements(*s.buffer) <= 1) return absl::OkStatus();
  const int64_t lanes = sketch.chooser.OneOf(stage + ".lanes", {32, 64, 128, 256}, 64);
  std::vector<int64_t> widths = {1};
  for (const int64_t w : {2, 4, 8}) {
    if (s.axes.back().extent % w == 0) widths.push_back(w);
  }
  const int64_t width = sketch.chooser.OneOf(stage + ".width", widths, 4);
  if (width > 1) {
    HONE_RETURN_IF_ERROR(sketch.Do(Split{s.axes.back().name, width, Tail::kMask}));
    HONE_RETURN_IF_ERROR(sketch.Do(Annotate{s.axes.back().name + "i", ir::LoopKind::kVectorized}));
  }
  HONE_ASSIGN_OR_RETURN(const std::string all, FuseFrom(sketch, stage, 0, s.axes.size()));
  HONE_RETURN_IF_ERROR(sketch.Do(Split{all, lanes, Tail::kMask}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{all + "o", ir::LoopKind::kGroup}));
  return sketch.Do(Annotate{all + "i", ir::LoopKind::kLane});
}

}  // namespace hone::space
