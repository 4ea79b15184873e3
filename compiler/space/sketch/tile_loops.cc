// SPDX-License-Identifier: Apache-2.0
// The loops of a tiled reduction and of its reader.
#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/operands.h"
#include "compiler/space/sketch/shared_tile.h"
#include "compiler/space/sketch/tile_shape.h"
#include "compiler/space/sketch/tiling.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Tail;

constexpr int64_t kUnrolledOpsMax = 256;  // the most unrolled vector operations of one tile
constexpr int64_t kUnrolledAxisMax = 7;   // an innermost reduction axis of at most so many steps is unrolled by default

// The level of loops inside which the reduction is computed.
size_t PlaceLevel(const Tiling& t) { return t.blocked ? t.first_reduction - 1 : t.levels - 2; }

int64_t ExtentOf(const Tiling& t, const std::string& loop) { return t.sketch.MaxExtent(loop); }

absl::Status Arrange(Tiling& t, const schedule::Reorder& order) {
  return order.loops.size() < 2 ? absl::OkStatus() : t.sketch.Do(order);
}

absl::Status Unroll(Tiling& t, const std::string& loop) {
  return ExtentOf(t, loop) == 1 ? absl::OkStatus() : t.sketch.Do(Annotate{loop, ir::LoopKind::kUnrolled});
}

// Splits an axis into its loops, level by level. *inner becomes the loop inside the tile; it stays empty if the tile
// has one element along the axis.
absl::Status SplitAxis(Tiling& t, size_t axis, std::string* inner) {
  std::string loop = t.out.axes[axis].name;
  int64_t extent = t.Extent(axis);
  const bool masked = t.IsVector(axis) && !t.packed.empty();  // a shifted tile would straddle two packed tiles
  for (size_t level = 0; level + 1 < t.levels; ++level) {
    const int64_t size = t.sizes[level][axis];
    if (size >= extent) continue;
    if (size == 1) {
      t.loops[level].push_back({axis, loop});
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(const SplitLoops split, t.sketch.Split(loop, size, masked ? Tail::kMask : Tail::kShift));
    t.loops[level].push_back({axis, split.outer});
    loop = split.inner;
    extent = size;
  }
  *inner = loop;
  return absl::OkStatus();
}

// Adds a task loop of one iteration, so that there is a loop to compute the reduction in.
absl::Status AddLoop(Tiling& t, std::vector<std::string>& inner) {
  const size_t axis = t.along_reduction() ? 0 : static_cast<size_t>(t.tile.vector);
  const bool whole = !inner[axis].empty();
  const std::string loop = whole ? inner[axis] : t.loops.back().front().name;
  HONE_ASSIGN_OR_RETURN(const SplitLoops split, t.sketch.Split(loop, ExtentOf(t, loop), Tail::kMask));
  t.loops[0].push_back({axis, split.outer});
  (whole ? inner[axis] : t.loops.back().front().name) = split.inner;
  return absl::OkStatus();
}

// The loops along the vectors of a tile. outer: over several vectors; empty: there is one. inner: over the elements of
// a vector; empty: no loop of the stage lies along vectors. Adds them to the order.
absl::StatusOr<SplitLoops> AddVectors(Tiling& t, const std::string& loop, schedule::Reorder* order) {
  SplitLoops vectors{"", loop};
  if (loop.empty()) return vectors;
  if (ExtentOf(t, loop) > t.tile.width) {
    HONE_ASSIGN_OR_RETURN(vectors, t.sketch.Split(loop, t.tile.width, Tail::kMask));
    order->loops.push_back(vectors.outer);
  }
  order->loops.push_back(vectors.inner);
  return vectors;
}

absl::Status AnnotateVectors(Tiling& t, const SplitLoops& vectors) {
  if (vectors.inner.empty() || t.tile.width == 1) return absl::OkStatus();
  if (!vectors.outer.empty()) HONE_RETURN_IF_ERROR(Unroll(t, vectors.outer));
  return t.sketch.Do(Annotate{vectors.inner, ir::LoopKind::kVectorized});
}

// Fuses the loops of the outermost level into one, which threads share if that is chosen.
absl::Status Parallelize(Tiling& t) {
  auto& loops = t.loops[0];
  for (size_t i = 1; i < loops.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(loops[0].name, t.sketch.Fuse(loops[0].name, loops[i].name));
  }
  if (loops.empty()) return absl::OkStatus();
  loops.resize(1);
  if (t.Choose("parallel", {0, 1}, t.WorthThreads() ? 1 : 0) == 0) return absl::OkStatus();
  return t.sketch.Do(Annotate{loops[0].name, ir::LoopKind::kParallel});
}

// The innermost loop of the levels up to this one.
std::string LastLoop(const Tiling& t, size_t level) {
  while (t.loops[level].empty()) --level;
  return t.loops[level].back().name;
}

// The loops that add the sums of every block of the reduction to the block of results, one tile at a time.
absl::Status AddUpBlocks(Tiling& t) {
  const ir::Stage s = t.StageOf(t.stage);
  schedule::Reorder order;
  for (const ir::Axis& axis : s.reduce_axes) order.loops.push_back(axis.name);
  std::vector<Tiling::AxisLoop> tiles, inner;
  for (size_t d = 0; d < t.rank(); ++d) {
    const std::string& loop = s.axes[d].name;
    const int64_t size = t.TileSize(d);
    if (size >= ExtentOf(t, loop)) {
      inner.push_back({d, loop});
    } else if (size == 1) {
      tiles.push_back({d, loop});
    } else {
      HONE_ASSIGN_OR_RETURN(const SplitLoops split, t.sketch.Split(loop, size, Tail::kMask));
      tiles.push_back({d, split.outer});
      inner.push_back({d, split.inner});
    }
  }
  std::stable_partition(tiles.begin(), tiles.end(),
                        [&](const Tiling::AxisLoop& loop) { return t.IsVector(loop.axis); });
  for (const Tiling::AxisLoop& loop : tiles) order.loops.push_back(loop.name);
  const std::string place = order.loops.back();
  std::string vector;
  for (const Tiling::AxisLoop& loop : inner) (t.IsVector(loop.axis) ? vector : order.loops.emplace_back()) = loop.name;
  HONE_ASSIGN_OR_RETURN(const SplitLoops vectors, AddVectors(t, vector, &order));
  HONE_RETURN_IF_ERROR(Arrange(t, order));
  for (const Tiling::AxisLoop& loop : inner) {
    if (!t.IsVector(loop.axis)) HONE_RETURN_IF_ERROR(Unroll(t, loop.name));
  }
  HONE_RETURN_IF_ERROR(AnnotateVectors(t, vectors));
  return t.sketch.Do(schedule::ComputeAt{t.sums, place});
}

// Unrolls the reduction of the partial results, so that they never leave registers.
absl::Status UnrollPartials(Tiling& t) {
  const ir::Stage s = t.StageOf(t.stage);
  if (t.tile.rows() * s.reduce_axes.back().extent.max() > kUnrolledOpsMax) return absl::OkStatus();
  for (const auto* axes : {&s.axes, &s.reduce_axes}) {
    for (const ir::Axis& axis : *axes) HONE_RETURN_IF_ERROR(Unroll(t, axis.name));
  }
  return absl::OkStatus();
}

// Chooses how many innermost steps of the reduction are unrolled: whole axes, then a part of the next axis. Updates the
// order of loops, and appends the loops to unroll.
absl::Status UnrollReduction(Tiling& t, schedule::Reorder* order, std::vector<std::string>* unrolled) {
  if (order->loops.empty()) return absl::OkStatus();
  const int64_t limit = kUnrolledOpsMax / (t.tile.rows() * t.tile.vectors());
  std::vector<int64_t> options = {1};
  for (int64_t u = 2; u <= std::min<int64_t>(limit, 64); u *= 2) options.push_back(u);
  const int64_t innermost = ExtentOf(t, order->loops.back());
  const int64_t preferred = t.steps <= kUnrolledWindowStepsMax ? t.steps
                            : innermost <= kUnrolledAxisMax    ? innermost
                                                               : 1;
  int64_t left = t.Choose("unroll", options, PowerOf2Ceil(preferred));
  for (size_t i = order->loops.size(); i-- > 0 && left > 1;) {
    const std::string loop = order->loops[i];
    const int64_t extent = ExtentOf(t, loop);
    if (extent <= left) {
      unrolled->push_back(loop);
      left /= extent;
      continue;
    }
    if (extent % left != 0) break;
    HONE_ASSIGN_OR_RETURN(const SplitLoops split, t.sketch.Split(loop, left, Tail::kMask));
    order->loops[i] = split.outer;
    order->loops.insert(order->loops.begin() + static_cast<std::ptrdiff_t>(i) + 1, split.inner);
    unrolled->push_back(split.inner);
    break;
  }
  return absl::OkStatus();
}

}  // namespace

// Splits the longest axis of the reduction into blocks, if there is a second R. Each block has sums of its own, which
// are added to the block of results when they are complete. A single block only fuses the reader further out.
absl::Status SplitReduction(Tiling& t) {
  if (t.along_reduction() || std::ranges::count(t.letters, 'R') < 2) return absl::OkStatus();
  const ir::Stage& s = t.StageOf(t.stage);
  const auto longest =
      std::ranges::max_element(s.reduce_axes, {}, [](const ir::Axis& axis) { return axis.extent.max(); });
  std::vector<int64_t> options = {0};
  for (int64_t block = 8; block <= 512 && block < longest->extent.max(); ++block) {
    if (Divides(block, longest->extent)) options.push_back(block);
  }
  options.push_back(longest->extent.max());
  const int64_t block = t.Choose("r1", options, 0);
  if (block == 0) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const Partials partials, t.sketch.Rfactor({t.stage, longest->name, block, false}));
  t.sums = partials.stage;
  t.blocked = true;
  return absl::OkStatus();
}

namespace {

// Whether tiles of different rows read different elements. Then nothing is gained by one vector of columns for several
// rows, and the loop over vectors goes inside, along memory.
bool RowsShareNothing(const Tiling& t) {
  if (!t.packed.empty() || t.along_reduction()) return false;
  const ir::Stage s = t.StageOf(t.sums);
  const ir::Ranges ranges = AxisRanges(s);
  if (HasWindow(s)) return false;
  return std::ranges::all_of(LoadsOf(s), [&](const ir::Load& load) {
    for (size_t d = 0; d < t.rank(); ++d) {
      const auto stride = StrideOf(load, s.axes[d].name, ranges);
      const bool moves = stride.has_value() && *stride != 0;
      if (!t.IsVector(d) && t.Extent(d) > t.TileSize(d) && !moves) return false;
    }
    return true;
  });
}

}  // namespace

absl::Status TileReader(Tiling& t) {
  t.loops.assign(t.levels - 1, {});
  std::vector<std::string> inner(t.rank());
  for (size_t d = 0; d < t.rank(); ++d) {
    HONE_RETURN_IF_ERROR(SplitAxis(t, d, &inner[d]));
  }
  if (std::all_of(t.loops.begin(), t.loops.begin() + static_cast<std::ptrdiff_t>(PlaceLevel(t)) + 1,
                  [](const auto& level) { return level.empty(); })) {
    HONE_RETURN_IF_ERROR(AddLoop(t, inner));
  }
  schedule::Reorder order;
  const bool vector_outside = t.Choose("order", {0, 1}, 0) == 1, vector_inside = RowsShareNothing(t);
  for (size_t level = 0; level + 1 < t.levels; ++level) {
    auto& loops = t.loops[level];
    if (level > 0 ? !vector_inside : vector_outside) {
      std::stable_partition(loops.begin(), loops.end(),
                            [&](const Tiling::AxisLoop& loop) { return t.IsVector(loop.axis); });
    }
    for (const Tiling::AxisLoop& loop : loops) order.loops.push_back(loop.name);
  }
  std::vector<std::string> tile;
  for (size_t d = 0; d < t.rank(); ++d) {
    if (!t.IsVector(d) && !inner[d].empty()) tile.push_back(inner[d]);
  }
  order.loops.insert(order.loops.end(), tile.begin(), tile.end());
  const std::string vector = t.along_reduction() ? "" : inner[static_cast<size_t>(t.tile.vector)];
  HONE_ASSIGN_OR_RETURN(const SplitLoops vectors, AddVectors(t, vector, &order));
  HONE_RETURN_IF_ERROR(Arrange(t, order));
  for (const std::string& loop : tile) HONE_RETURN_IF_ERROR(Unroll(t, loop));
  HONE_RETURN_IF_ERROR(AnnotateVectors(t, vectors));
  return Parallelize(t);
}

absl::Status ComputeSums(Tiling& t) {
  const std::string place = LastLoop(t, PlaceLevel(t));
  HONE_RETURN_IF_ERROR(t.sketch.Do(schedule::ComputeAt{t.stage, place}));
  if (t.blocked) HONE_RETURN_IF_ERROR(AddUpBlocks(t));
  if (t.along_reduction()) {
    HONE_RETURN_IF_ERROR(t.sketch.Do(schedule::ComputeAt{t.sums, place}));
    HONE_RETURN_IF_ERROR(UnrollPartials(t));
  }
  return TileSums(t);
}

// The innermost R and S: the reduction around the tile.
absl::Status TileSums(Tiling& t) {
  const ir::Stage s = t.StageOf(t.sums);
  const std::string vector = s.axes[static_cast<size_t>(t.tile.vector)].name;
  schedule::Reorder order{ReductionOrder(s, vector)};
  std::vector<std::string> unrolled;
  HONE_RETURN_IF_ERROR(UnrollReduction(t, &order, &unrolled));
  for (size_t d = 0; d < s.axes.size(); ++d) {
    if (t.IsVector(d)) continue;
    order.loops.push_back(s.axes[d].name);
    unrolled.push_back(s.axes[d].name);
  }
  HONE_ASSIGN_OR_RETURN(const SplitLoops vectors, AddVectors(t, vector, &order));
  HONE_RETURN_IF_ERROR(Arrange(t, order));
  for (const std::string& loop : unrolled) HONE_RETURN_IF_ERROR(Unroll(t, loop));
  return AnnotateVectors(t, vectors);
}

}  // namespace hone::space
