// SPDX-License-Identifier: Apache-2.0
// Stages without reduction on targets with lanes.
#include "compiler/space/sketch/lanes.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Tail;

constexpr int64_t kTransposedExtentMin =
    8;  // the least extent of blocked axes, and the least stride of loads that lie apart

// The axis along which a transposed load is contiguous: a load that lies apart along the last axis. -1: there is none.
int TransposedAxis(const ir::Stage& s) {
  const ir::Ranges ranges = AxisRanges(s);
  for (const ir::Load& load : LoadsOf(s)) {
    const int64_t apart = std::abs(StrideOf(load, s.axes.back().name, ranges).value_or(0));
    if (apart < kTransposedExtentMin) continue;
    for (size_t d = 0; d + 1 < s.axes.size(); ++d) {
      const bool beside = std::abs(StrideOf(load, s.axes[d].name, ranges).value_or(0)) == 1;
      if (beside && s.axes[d].extent.max() >= kTransposedExtentMin) return static_cast<int>(d);
    }
  }
  return -1;
}

// The sizes that a lane's block may have along the axis; they divide its extent.
std::vector<int64_t> BlockSizes(const ir::Axis& axis) {
  std::vector<int64_t> sizes = {1};
  for (const int64_t size : {2, 4}) {
    if (Divides(size, axis.extent)) sizes.push_back(size);
  }
  return sizes;
}

// The loops of one axis: over groups, over lanes, and over the elements of a lane.
struct LaneLoops {
  std::string group, lane, element;
};

absl::StatusOr<LaneLoops> SplitAxis(Sketch& sketch, const std::string& axis, int64_t lanes, int64_t block) {
  HONE_ASSIGN_OR_RETURN(const SplitLoops group, sketch.Split(axis, lanes * block, Tail::kMask));
  HONE_ASSIGN_OR_RETURN(const SplitLoops lane, sketch.Split(group.inner, block, Tail::kMask));
  return LaneLoops{group.outer, lane.outer, lane.inner};
}

// Schedules a stage with a transposed load: each lane computes a block of height * width elements. Consecutive lanes
// (lanes_y of them) have blocks along the axis `transposed`, along which loads are contiguous. Every lanes_y lanes, the
// block moves along the last axis, along which stores are contiguous. Therefore other lanes use the rest of every
// memory segment that a lane touches.
absl::Status ScheduleTransposed(Sketch& sketch, const std::string& stage, const ir::Axis& transposed) {
  const ir::Axis last = sketch.Get(stage).stage.axes.back();
  const int64_t height = sketch.chooser.OneOf(stage + ".height", BlockSizes(transposed), 4);
  const int64_t width = sketch.chooser.OneOf(stage + ".width", BlockSizes(last), 4);
  const int64_t most = sketch.target.hierarchy.max_lanes;
  const int64_t y = ChooseLanes(sketch, stage + ".lanes_y", {4, 8, 16, 32}, 32 / height, most / 2);
  const int64_t x = ChooseLanes(sketch, stage + ".lanes_x", {2, 4, 8}, 8, most / y);
  std::vector<std::string> groups;
  for (const ir::Axis& axis : sketch.Get(stage).stage.axes) {
    if (axis.name != transposed.name && axis.name != last.name) groups.push_back(axis.name);
  }
  HONE_ASSIGN_OR_RETURN(const LaneLoops rows, SplitAxis(sketch, transposed.name, y, height));
  HONE_ASSIGN_OR_RETURN(const LaneLoops columns, SplitAxis(sketch, last.name, x, width));
  groups.insert(groups.end(), {rows.group, columns.group});
  const std::vector<std::string> lanes = {columns.lane, rows.lane};
  schedule::Reorder order{groups};
  order.loops.insert(order.loops.end(), lanes.begin(), lanes.end());
  order.loops.insert(order.loops.end(), {rows.element, columns.element});
  HONE_RETURN_IF_ERROR(sketch.Do(order));
  for (const std::string& loop : groups) HONE_RETURN_IF_ERROR(sketch.Do(Annotate{loop, ir::LoopKind::kGroup}));
  for (const std::string& loop : lanes) HONE_RETURN_IF_ERROR(sketch.Do(Annotate{loop, ir::LoopKind::kLane}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{rows.element, ir::LoopKind::kUnrolled}));
  return sketch.Do(Annotate{columns.element, width > 1 ? ir::LoopKind::kVectorized : ir::LoopKind::kUnrolled});
}

// The preferred number of elements per lane: as many of the widest elements along the last axis as a lane loads or
// stores at once.
int64_t PreferredWidth(const ir::Stage& s) {
  constexpr int64_t kBytesAtOnce = 16, kMost = 8;
  const ir::Ranges ranges = AxisRanges(s);
  int64_t widest = ir::SizeOf(s.buffer->dtype);
  for (const ir::Load& load : LoadsOf(s)) {
    const bool moves = StrideOf(load, s.axes.back().name, ranges) != 0;
    if (moves) widest = std::max<int64_t>(widest, ir::SizeOf(load.buffer->dtype));
  }
  return std::min(kMost, kBytesAtOnce / widest);
}

}  // namespace

int64_t ChooseLanes(Sketch& sketch, const std::string& name, std::vector<int64_t> counts, int64_t preferred,
                    int64_t most) {
  std::erase_if(counts, [&](int64_t count) { return count > most; });
  if (counts.empty()) counts.push_back(most);
  return sketch.chooser.OneOf(name, std::move(counts), preferred);
}

absl::StatusOr<std::string> FuseFrom(Sketch& sketch, const std::string& stage, size_t first, size_t end) {
  std::vector<std::string> loops;
  for (size_t i = first; i < end; ++i) loops.push_back(sketch.Get(stage).loops[i].name);
  return sketch.FuseAll(loops);
}

absl::Status ScheduleLaneElementwise(Sketch& sketch, const std::string& stage) {
  const ir::Stage s = sketch.Get(stage).stage;
  if (s.axes.empty() || ir::NumElements(*s.buffer) <= 1) return absl::OkStatus();
  const int transposed = s.axes.back().extent.max() < kTransposedExtentMin ? -1 : TransposedAxis(s);
  const bool pays = sketch.target.memory.shared_gain > 1;
  if (transposed >= 0 && sketch.chooser.OneOf(stage + ".blocks", {0, 1}, pays ? 1 : 0) == 1) {
    return ScheduleTransposed(sketch, stage, s.axes[static_cast<size_t>(transposed)]);
  }
  const int64_t most = sketch.target.hierarchy.max_lanes;
  const int64_t lanes = ChooseLanes(sketch, stage + ".lanes", {32, 64, 128, 256}, 64, most);
  std::vector<int64_t> widths = {1};
  for (const int64_t w : {2, 4, 8}) {
    if (Divides(w, s.axes.back().extent)) widths.push_back(w);
  }
  const int64_t width = sketch.chooser.OneOf(stage + ".width", widths, PreferredWidth(s));
  if (width > 1) {
    HONE_ASSIGN_OR_RETURN(const SplitLoops vector, sketch.Split(s.axes.back().name, width, Tail::kMask));
    HONE_RETURN_IF_ERROR(sketch.Do(Annotate{vector.inner, ir::LoopKind::kVectorized}));
  }
  HONE_ASSIGN_OR_RETURN(const std::string all, FuseFrom(sketch, stage, 0, s.axes.size()));
  HONE_ASSIGN_OR_RETURN(const SplitLoops split, sketch.Split(all, lanes, Tail::kMask));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{split.outer, ir::LoopKind::kGroup}));
  return sketch.Do(Annotate{split.inner, ir::LoopKind::kLane});
}

}  // namespace hone::space
