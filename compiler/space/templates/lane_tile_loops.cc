// SPDX-License-Identifier: Apache-2.0
// The loops of a lane tile: over groups, lanes and a lane's elements, over the reduction, and to fill shared memory.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>

#include "base/status.h"
#include "compiler/schedule/grid.h"
#include "compiler/space/templates/lane_tile.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Split;
using schedule::Tail;

constexpr int64_t kMostUnrolled = 512;  // products of steps of the reduction that are written out

}  // namespace

absl::Status LaneTile::TileOutput() {
  schedule::Reorder order;
  std::vector<std::string> groups, lanes, inner;
  for (int d = 0; d < static_cast<int>(out_.axes.size()); ++d) {
    if (d != vector_ && d != row_ && d != second_) groups.push_back(NameOf(d));
  }
  const bool stripes =
      instruction_.has_value() || (sketch_.target.memory.shared_gain > 1 && Choose("stripes", {0, 1}, 1) == 1);
  const std::tuple<int, int64_t, int64_t, int64_t> tiles[] = {
      {second_, lanes_z_, more_rows_, 1}, {row_, lanes_y_, rows_, 1}, {vector_, lanes_x_, width_, Vector()}};
  for (const auto& [axis, axis_lanes, tile, together] : tiles) {
    if (axis < 0) continue;
    const bool striped = stripes && axis_lanes > 1 && tile > together;
    if (HasBlocks() && axis == row_) {
      HONE_RETURN_IF_ERROR(TileInBlocks(&groups, &lanes, &inner));
      continue;
    }
    HONE_RETURN_IF_ERROR(striped ? TileInStripes(axis, axis_lanes, tile, together, &groups, &lanes, &inner)
                                 : TileAxis(NameOf(axis), axis_lanes, tile, &groups, &lanes, &inner));
  }
  if (instruction_.has_value() && !HasBlocks()) HONE_RETURN_IF_ERROR(GatherWarps(&lanes));
  // Groups that share copies follow one another.
  sharing_ = std::gcd(sharing_, Extent(row_) / (lanes_y_ * rows_));
  if (sharing_ > 1) {
    const auto rows = std::ranges::find(groups, NameOf(row_) + "o");
    std::rotate(rows, rows + 1, groups.end());
  }
  for (const auto* part : {&groups, &lanes, &inner}) {
    order.loops.insert(order.loops.end(), part->begin(), part->end());
  }
  HONE_RETURN_IF_ERROR(sketch_.Do(order));
  for (const std::string& loop : groups) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, ir::LoopKind::kGroup}));
  for (const std::string& loop : lanes) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, ir::LoopKind::kLane}));
  HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{inner.back(), VectorKind(width_)}));
  inner.pop_back();
  for (const std::string& loop : inner) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, ir::LoopKind::kUnrolled}));
  return sketch_.Do(schedule::ComputeAt{stage_, lanes.back()});
}

int64_t LaneTile::Vector() const {
  const int64_t most = instruction_.has_value() ? ir::EntryOf(*instruction_).n : sketch_.target.VectorWidth(4);
  return std::min(width_, most);
}

absl::Status LaneTile::TileInStripes(int axis, int64_t lanes, int64_t tile, int64_t together,
                                     std::vector<std::string>* groups, std::vector<std::string>* lane_loops,
                                     std::vector<std::string>* inner) {
  const std::string name = NameOf(axis);
  HONE_RETURN_IF_ERROR(sketch_.Do(schedule::SplitAxis{stage_, ReducedName(axis), lanes * together}));
  HONE_RETURN_IF_ERROR(sketch_.Do(Split{name, lanes * tile, Tail::kMask}));
  HONE_RETURN_IF_ERROR(sketch_.Do(Split{name + "i", lanes * together, Tail::kMask}));
  groups->push_back(name + "o");
  inner->push_back(name + "io");
  lane_loops->push_back(name + "ii");
  if (together == 1) return absl::OkStatus();
  HONE_RETURN_IF_ERROR(sketch_.Do(Split{name + "ii", together, Tail::kMask}));
  lane_loops->back() = name + "iio";
  inner->push_back(name + "iii");
  return absl::OkStatus();
}

ir::LoopKind LaneTile::VectorKind(int64_t width) {
  return width > 1 ? ir::LoopKind::kVectorized : ir::LoopKind::kUnrolled;
}

absl::Status LaneTile::TileAxis(const std::string& axis, int64_t lanes, int64_t tile, std::vector<std::string>* groups,
                                std::vector<std::string>* lane_loops, std::vector<std::string>* inner) {
  HONE_RETURN_IF_ERROR(sketch_.Do(Split{axis, lanes * tile, Tail::kMask}));
  HONE_RETURN_IF_ERROR(sketch_.Do(Split{axis + "i", tile, Tail::kMask}));
  groups->push_back(axis + "o");
  lane_loops->push_back(axis + "io");
  inner->push_back(axis + "ii");
  return absl::OkStatus();
}

std::string LaneTile::TileLoop(int axis, bool inside) const {
  const std::string& name = ReducedName(axis);
  const std::vector<ir::Axis>& axes = reduction().axes;
  const bool striped = std::ranges::find(axes, name + "x", &ir::Axis::name) != axes.end();
  if (!striped) return name;
  return name + (inside ? "y" : "x");
}

absl::Status LaneTile::TileReduction() {
  if (instruction_.has_value()) return TileInstruction();
  const ir::Stage s = reduction();
  HONE_RETURN_IF_ERROR(sketch_.Do(Split{step_axis_, step_, Tail::kMask}));
  // Some steps are written out at once: their operands lie side by side.
  std::vector<std::string> steps = {step_axis_ + "i"};
  const int64_t unrolled = ChooseUnrolled();
  if (unrolled > 1 && unrolled < step_) {
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{steps[0], unrolled, Tail::kMask}));
    steps = {steps[0] + "o", steps[0] + "i"};
  }
  schedule::Reorder order{{step_axis_ + "o"}};
  order.loops.insert(order.loops.end(), inner_reduce_.begin(), inner_reduce_.end());
  order.loops.insert(order.loops.end(), steps.begin(), steps.end());
  for (const ir::Axis& axis : s.axes) order.loops.push_back(axis.name);
  HONE_RETURN_IF_ERROR(sketch_.Do(order));
  for (const std::string& name : shared_) {
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{name, step_axis_ + "o"}));
  }
  for (const ir::Axis& axis : s.axes) {
    const bool vector = axis.name == ReducedName(vector_) || axis.name == ReducedName(vector_) + "y";
    HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{axis.name, vector ? VectorKind(width_) : ir::LoopKind::kUnrolled}));
  }
  return unrolled > 1 ? sketch_.Do(Annotate{steps.back(), ir::LoopKind::kUnrolled}) : absl::OkStatus();
}

int64_t LaneTile::ChooseUnrolled() {
  std::vector<int64_t> counts = {1};
  for (int64_t n = 2; n <= step_; n *= 2) {
    if (step_ % n == 0 && rows_ * more_rows_ * width_ * n <= kMostUnrolled) counts.push_back(n);
  }
  const int64_t preferred = StepsWrittenOut({width_, rows_, more_rows_}, steps_ * window_);
  return Choose("unrolled", counts, std::min(preferred, counts.back()));
}

absl::Status LaneTile::FillShared() {
  const int64_t buffers = ChooseBuffers();
  bool copies = false;
  for (const std::string& name : shared_) {
    const schedule::Schedule together = buffers > 0 && name == columns_ ? FillTogether(name) : schedule::Schedule();
    if (!together.empty() && (sharing_ > 1 || Choose("together", {0, 1}, 0) == 1)) {
      HONE_RETURN_IF_ERROR(Do(together));
      copies = true;
      continue;
    }
    const std::vector<int64_t> counts = buffers > 0 ? CopyCounts(name, buffers) : std::vector<int64_t>();
    if (counts.empty()) {
      HONE_RETURN_IF_ERROR(Do(FillSteps(name, Choose(name + ".width", Widths(name), 4), false)));
    } else {
      HONE_RETURN_IF_ERROR(Do(FillSteps(name, Choose(name + ".copy", counts, counts.back()), true)));
      copies = true;
    }
  }
  if (!copies) return absl::OkStatus();
  schedule::Pipeline pipeline{step_axis_ + "o", buffers, 1};
  if (!CanDo({pipeline}) || Choose("running", {0, 1}, 1) == 0) pipeline.running = 0;
  return sketch_.Do(pipeline);
}

int64_t LaneTile::ChooseBuffers() {
  if (sketch_.target.memory.async_copy_bytes == 0 || shared_.empty()) return 0;
  int64_t bytes = 1, once = 0, groups = 1;
  for (const schedule::Grid& grid : schedule::Grids(sketch_.state)) {
    if (grid.shared_bytes > bytes) std::tie(bytes, groups) = std::pair(grid.shared_bytes, grid.groups);
  }
  for (const auto& [rounded, source] : rounded_) {
    once += ir::SharedRoom(schedule::StoredBytes(sketch_.state, sketch_.Get(rounded)));
  }
  const int64_t fit = (SharedBytes() - once) / (bytes - once);
  // What reads shared memory itself leaves little else to wait for than copies. A group that has a unit for itself may
  // have all of its memory.
  const int64_t preferred = !HasBlocks() ? 3 : groups > sketch_.target.hierarchy.units ? 4 : 6;
  const std::vector<int64_t> counts = {0, 2, 3, 4, 5, 6, 8};
  return Choose("buffers", counts, *std::prev(std::ranges::upper_bound(counts, std::min(fit, preferred))));
}

std::vector<int64_t> LaneTile::Widths(const std::string& name) const {
  std::vector<int64_t> widths;
  for (const int64_t w : {1, 2, 4}) {
    if (sketch_.Get(name).loops.back().max_extent % w == 0) widths.push_back(w);
  }
  return widths;
}

std::vector<int64_t> LaneTile::CopyCounts(const std::string& name, int64_t buffers) const {
  std::vector<int64_t> counts;
  const int64_t size = ir::SizeOf(sketch_.Get(name).stage.buffer->dtype);
  for (const int64_t bytes : ir::kCopyBytes) {
    const int64_t count = bytes / size;
    if (bytes > sketch_.target.memory.async_copy_bytes || bytes % size != 0 ||
        sketch_.Get(name).loops.back().max_extent % count != 0) {
      continue;
    }
    schedule::Schedule steps = FillSteps(name, count, true);
    steps.push_back(schedule::Pipeline{step_axis_ + "o", buffers});
    if (CanDo(steps)) counts.push_back(count);
  }
  return counts;
}

schedule::Schedule LaneTile::FillSteps(const std::string& name, int64_t width, bool copy) const {
  schedule::Schedule steps;
  std::vector<std::string> loops;
  for (const schedule::Loop& loop : sketch_.Get(name).loops) loops.push_back(loop.name);
  if (const auto chunks = rows_first_.find(name); chunks != rows_first_.end()) {
    const auto first = loops.begin() + static_cast<std::ptrdiff_t>(chunks->second.first);
    std::rotate(first, first + 1, loops.end() - 1);
    steps.push_back(schedule::Reorder{loops});
  }
  const std::string last = loops.back();
  if (width > 1) {
    steps.push_back(Split{last, width, Tail::kMask});
    loops.back() = last + "o";
  }
  std::string fused = loops[0];
  for (size_t i = 1; i < loops.size(); ++i) {
    steps.push_back(schedule::Fuse{fused, loops[i]});
    fused += "_" + loops[i];
  }
  steps.push_back(Annotate{fused, ir::LoopKind::kLane});
  if (copy) {
    steps.push_back(schedule::CopyAsync{name, width});
  } else if (width > 1) {
    steps.push_back(Annotate{last + "i", ir::LoopKind::kVectorized});
  }
  return steps;
}

// As much at once as lies side by side.
schedule::Schedule LaneTile::FillTogether(const std::string& name) const {
  if (sketch_.target.hierarchy.sharing_groups == 0) return {};
  const std::vector<schedule::Loop>& loops = sketch_.Get(name).loops;
  for (size_t first = 0; first + 1 < loops.size(); ++first) {
    schedule::Schedule steps;
    std::string fused = loops[first].name;
    int64_t count = loops[first].max_extent;
    for (const schedule::Loop& loop : std::span(loops).subspan(first + 1)) {
      steps.push_back(schedule::Fuse{fused, loop.name});
      fused += "_" + loop.name;
      count *= loop.max_extent;
    }
    steps.push_back(schedule::CopyAsync{name, count, sharing_});
    if (CanDo(steps)) return steps;
  }
  return {};
}

bool LaneTile::CanDo(const schedule::Schedule& steps) const {
  schedule::State state = sketch_.state;
  return std::ranges::all_of(steps, [&](const schedule::Step& step) { return schedule::Apply(step, state).ok(); });
}

absl::Status LaneTile::Do(const schedule::Schedule& steps) {
  for (const schedule::Step& step : steps) HONE_RETURN_IF_ERROR(sketch_.Do(step));
  return absl::OkStatus();
}

}  // namespace hone::space
