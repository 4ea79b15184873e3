// SPDX-License-Identifier: Apache-2.0
// Reductions on targets with lanes: how the lanes of a group, and several groups, share one. lane_rows.cc has the
// workloads in which every group computes a whole row.
#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/lanes.h"
#include "compiler/space/sketch/operands.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Tail;

constexpr int64_t kFewElementsMax = 4096;      // with fewer results, one lane each does not keep the device busy
constexpr int64_t kSharedColumnStepsMin = 32;  // the fewest steps for which lanes share columns
constexpr int64_t kSharedColumnsMin = 8;       // the fewest neighbouring results for which lanes share columns
constexpr int64_t kUnitResults = 128;          // lanes of a unit, one result each, that hide each other's latency
constexpr int64_t kGroupStepsMax = 2048;       // a reduction of at most so many steps is not split into parts
// The fewest steps of one part: for loads along the reduction, and for loads along the result.
constexpr int64_t kPartOfRow = 8192, kPartOfColumns = 256;

// How the lanes of a group share a reduction. Decisions store these numbers.
//   kNone: every lane computes one result alone.
//   kRow: all lanes of a group share the reduction of one result.
//   kColumns: lanes along x have neighbouring results, lanes along y share the reduction of each.
enum Sharing : int64_t { kNone = 0, kRow = 1, kColumns = 2 };

// The load that reads the most elements.
std::optional<ir::Load> LargestLoad(const ir::Stage& s) {
  AxisExtents extents;
  for (const auto* axes : {&s.axes, &s.reduce_axes}) {
    for (const ir::Axis& axis : *axes) extents[axis.name] = axis.extent.max();
  }
  std::optional<ir::Load> largest;
  int64_t most = 0;
  for (const ir::Load& load : LoadsOf(s)) {
    const int64_t bytes = RegionBytes(load, AxisRanges(s), extents);
    if (bytes <= most) continue;
    most = bytes;
    largest = load;
  }
  return largest;
}

bool LiesAlong(const ir::Load& load, const ir::Axis& axis, const ir::Stage& s) {
  const auto stride = StrideOf(load, axis.name, AxisRanges(s));
  return axis.extent.max() > 1 && stride.has_value() && std::abs(*stride) == 1;
}

// The last axis that has more than one element; null if none has.
const ir::Axis* LastAxis(const ir::Stage& s) {
  const auto found = std::find_if(s.axes.rbegin(), s.axes.rend(), [](const ir::Axis& a) { return a.extent.max() > 1; });
  return found == s.axes.rend() ? nullptr : &*found;
}

int64_t Results(const ir::Stage& s) { return ir::NumElements(*s.buffer); }

// Whether there are too few results to keep all units busy with one lane per result.
bool HasFewResults(const Sketch& sketch, const ir::Stage& s) {
  return Results(s) < kUnitResults * sketch.target.hierarchy.units;
}

Sharing PreferredSharing(const Sketch& sketch, const ir::Stage& s) {
  const bool cheap = sketch.target.memory.shared_gain > 1;
  if (ReduceSteps(s) >= kLaneSharedStepsMin && (ReadsAlongReduction(s) || IsVectorProduct(sketch.state, s))) {
    return cheap || Results(s) < kFewElementsMax ? kRow : kNone;
  }
  const ir::Axis* last = LastAxis(s);
  const bool columns =
      cheap && last != nullptr && last->extent.max() >= kSharedColumnsMin && ReduceSteps(s) >= kSharedColumnStepsMin;
  return columns && ReadsAlongResult(s) && HasFewResults(sketch, s) ? kColumns : kNone;
}

std::vector<int64_t> Sharings(const ir::Stage& s) {
  std::vector<int64_t> sharings = {kNone};
  if (ReduceSteps(s) >= kLaneSharedStepsMin) sharings.push_back(kRow);
  const ir::Axis* last = LastAxis(s);
  if (last != nullptr && last->extent.max() >= kSharedColumnsMin && ReduceSteps(s) >= kSharedColumnStepsMin)
    sharings.push_back(kColumns);
  return sharings;
}

std::vector<std::string> LoopsOf(const Sketch& sketch, const std::string& stage, const std::string& but) {
  std::vector<std::string> loops;
  for (const schedule::Loop& loop : sketch.Get(stage).loops) {
    if (loop.name != but) loops.push_back(loop.name);
  }
  return loops;
}

// Schedules Sharing::kColumns. lanes_x lanes lie along the last axis of the result, so that they load and store
// neighbours together. There are lanes_y such rows of lanes, and each row has a part of the reduction. The partial
// results go through shared memory.
absl::Status ShareColumns(Sketch& sketch, const std::string& reader, const std::string& stage) {
  const ir::Axis longest = LongestReduceAxis(sketch.Get(stage).stage);
  const int64_t most = sketch.target.hierarchy.max_lanes;
  const int64_t x = ChooseLanes(sketch, reader + ".lanes_x", {8, 16, 32, 64}, 32, most / 2);
  const int64_t y = ChooseLanes(sketch, reader + ".lanes_y", {2, 4, 8, 16}, 8, most / x);
  const std::string column = LastAxis(sketch.Get(reader).stage)->name;
  HONE_ASSIGN_OR_RETURN(const Partials partials,
                        sketch.Rfactor({stage, longest.name, std::min(y, longest.extent.max()), true, true}));
  const std::string& parts = partials.stage;
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::StoreIn{parts, ir::Scope::kShared}));
  // The axes of the partial results are those of the reader behind the axis over parts, so the column is one further.
  const ir::Stage made = sketch.Get(parts).stage;
  const std::vector<ir::Axis>& axes = sketch.Get(reader).stage.axes;
  const auto at = std::ranges::find(axes, column, &ir::Axis::name) - axes.begin();
  const std::string part = made.axes[0].name, part_column = made.axes[static_cast<size_t>(at) + 1].name;

  schedule::Reorder order{LoopsOf(sketch, reader, column)};
  const std::vector<std::string> others = order.loops;
  HONE_ASSIGN_OR_RETURN(const SplitLoops columns, sketch.Split(column, x, Tail::kMask));
  order.loops.insert(order.loops.end(), {columns.outer, columns.inner});
  HONE_RETURN_IF_ERROR(sketch.Do(order));
  for (const std::string& loop : others) HONE_RETURN_IF_ERROR(sketch.Do(Annotate{loop, ir::LoopKind::kGroup}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{columns.outer, ir::LoopKind::kGroup}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{columns.inner, ir::LoopKind::kLane}));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{stage, columns.inner}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{partials.axis, ir::LoopKind::kUnrolled}));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{parts, columns.outer}));
  schedule::Reorder inner{{part, part_column}};
  for (const std::string& loop : LoopsOf(sketch, parts, part_column)) {
    if (loop != part) inner.loops.push_back(loop);
  }
  HONE_RETURN_IF_ERROR(sketch.Do(inner));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{part, ir::LoopKind::kLane}));
  return sketch.Do(Annotate{part_column, ir::LoopKind::kLane});
}

// Schedules Sharing::kNone: one lane computes each element of the reader.
absl::Status ReduceAlone(Sketch& sketch, const std::string& reader, const std::string& stage) {
  const int64_t most = sketch.target.hierarchy.max_lanes;
  const int64_t lanes = ChooseLanes(sketch, reader + ".lanes", {32, 64, 128, 256}, 64, most);
  const size_t axes = sketch.Get(reader).stage.axes.size();
  if (axes == 0) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::string all, FuseFrom(sketch, reader, 0, axes));
  HONE_ASSIGN_OR_RETURN(const SplitLoops split, sketch.Split(all, lanes, Tail::kMask));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{split.outer, ir::LoopKind::kGroup}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{split.inner, ir::LoopKind::kLane}));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{stage, split.inner}));
  const ir::Stage s = sketch.Get(stage).stage;
  if (ReduceSteps(s) > kUnrolledStepsMax || sketch.chooser.OneOf(reader + ".unroll", {0, 1}, 1) == 0) {
    return absl::OkStatus();
  }
  for (const ir::Axis& axis : s.reduce_axes) {
    HONE_RETURN_IF_ERROR(sketch.Do(Annotate{axis.name, ir::LoopKind::kUnrolled}));
  }
  return absl::OkStatus();
}

absl::Status Reduce(Sketch& sketch, const std::string& reader, const std::string& stage) {
  const ir::Stage s = sketch.Get(stage).stage;
  const std::vector<int64_t> sharings = Sharings(s);
  const int64_t sharing = sharings.size() == 1 || s.axes.empty()
                              ? kNone
                              : sketch.chooser.OneOf(reader + ".sharing", sharings, PreferredSharing(sketch, s));
  switch (sharing) {
    case kRow:
      return ShareRow(sketch, reader, stage);
    case kColumns:
      return ShareColumns(sketch, reader, stage);
    default:
      return ReduceAlone(sketch, reader, stage);
  }
}

// The preferred number of parts of the longest axis. Different groups reduce different parts; 1: no split.
int64_t PreferredParts(const Sketch& sketch, const ir::Stage& s) {
  const int64_t units = sketch.target.hierarchy.units, steps = ReduceSteps(s);
  int64_t groups = Results(s), least = kPartOfRow;
  if (!ReadsAlongReduction(s) && ReadsAlongResult(s)) {
    constexpr int64_t kColumnLanes = 32;
    const int64_t columns = LastAxis(s)->extent.max();
    groups = groups / columns * ((columns + kColumnLanes - 1) / kColumnLanes), least = kPartOfColumns;
  } else if (steps < kSplitRowStepsMin) {
    return 1;
  }
  if (2 * groups > units) return 1;
  return PowerOf2Ceil(std::max<int64_t>(1, std::min(2 * units / groups, steps / least)));
}

// Splits a long reduction into parts if there are too few results to keep the units busy. A launch of its own computes
// the partial results.
absl::Status SplitIntoParts(Sketch& sketch, const std::string& stage) {
  const ir::Stage& s = sketch.Get(stage).stage;
  const ir::Axis longest = LongestReduceAxis(s);
  if (!HasFewResults(sketch, s) || ReduceSteps(s) < kGroupStepsMax) return absl::OkStatus();
  std::vector<int64_t> counts;
  for (int64_t parts = 1; parts <= std::min<int64_t>(1024, longest.extent.max() / 2); parts *= 2)
    counts.push_back(parts);
  if (counts.size() < 2) return absl::OkStatus();
  const bool along = ReadsAlongReduction(s);
  const int64_t parts =
      sketch.chooser.OneOf(stage + ".parts", counts, std::min(PreferredParts(sketch, s), counts.back()));
  if (parts == 1) return absl::OkStatus();
  const int64_t steps = (longest.extent.max() + parts - 1) / parts;
  HONE_ASSIGN_OR_RETURN(const Partials partials, sketch.Rfactor({stage, longest.name, steps, false, !along}));
  HONE_ASSIGN_OR_RETURN(const std::string sums, sketch.CacheWrite(partials.stage));
  return Reduce(sketch, partials.stage, sums);
}

}  // namespace

int64_t ReduceSteps(const ir::Stage& s) {
  int64_t steps = 1;
  for (const ir::Axis& axis : s.reduce_axes) steps *= axis.extent.max();
  return steps;
}

const ir::Axis& LongestReduceAxis(const ir::Stage& s) {
  return *std::ranges::max_element(s.reduce_axes, {}, [](const ir::Axis& axis) { return axis.extent.max(); });
}

std::string PartialResultsOf(const Sketch& sketch, const std::string& stage) {
  return LoadsOf(sketch.Get(stage).stage)[0].buffer->name;
}

bool ReadsAlongReduction(const ir::Stage& s) {
  const std::optional<ir::Load> load = LargestLoad(s);
  return load.has_value() &&
         std::ranges::any_of(s.reduce_axes, [&](const ir::Axis& axis) { return LiesAlong(*load, axis, s); });
}

bool ReadsAlongResult(const ir::Stage& s) {
  const std::optional<ir::Load> load = LargestLoad(s);
  const ir::Axis* last = LastAxis(s);
  return load.has_value() && last != nullptr && LiesAlong(*load, *last, s);
}

bool IsVectorProduct(const schedule::State& state, const ir::Stage& s) {
  if (!IsContraction(s) || HasWindow(s) || ReduceSteps(s) < kLaneSharedStepsMin) return false;
  const std::optional<ir::Load> matrix = LargestLoad(s);
  const bool is_matrix = matrix.has_value() && std::ranges::all_of(s.axes, [&](const ir::Axis& axis) {
                           return axis.extent == 1 || StrideOf(*matrix, axis.name, AxisRanges(s)).value_or(0) != 0;
                         });
  return is_matrix && (ReadsAlongReduction(s) || schedule::IsFixed(state, matrix->buffer.get()));
}

absl::Status ScheduleLaneReduction(Sketch& sketch, const std::string& reader, const std::string& stage) {
  HONE_RETURN_IF_ERROR(SplitIntoParts(sketch, stage));
  return Reduce(sketch, reader, stage);
}

}  // namespace hone::space
