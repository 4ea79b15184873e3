// SPDX-License-Identifier: Apache-2.0
// Choices of a tiling: the axis along vectors, the tile that stays in registers, and the sizes of the levels around it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/lanes.h"
#include "compiler/space/sketch/operands.h"
#include "compiler/space/sketch/reduction.h"
#include "compiler/space/sketch/tile_shape.h"
#include "compiler/space/sketch/tiling.h"

namespace hone::space {
namespace {

constexpr int64_t kTasksPerThread = 4;  // several, so that threads finish at about the same time
constexpr int64_t kPackedReuseMin = 8;  // the fewest uses of an element that pay for packing it

// How often each element of the load is read: the product of the extents of all axes that do not move it.
int64_t Reuse(const ir::Stage& s, const ir::Load& load) {
  int64_t reuse = 1;
  for (const ir::Axis& axis : s.axes) {
    if (StrideOf(load, axis.name, AxisRanges(s)) == 0) reuse *= axis.extent.max();
  }
  return reuse;
}

// The operands that should and can be packed in the order of tiles along this axis.
std::set<const ir::BufferNode*> Packable(const Tiling& t, const ir::Stage& s, size_t axis) {
  std::set<const ir::BufferNode*> packable, others;
  const ir::Ranges ranges = AxisRanges(s);
  for (const ir::Load& load : LoadsOf(s)) {
    const std::string& vector = s.axes[axis].name;
    const auto stride = StrideOf(load, vector, ranges);
    const bool constant = schedule::IsFixed(t.sketch.state, load.buffer.get());
    const bool wanted =
        stride.has_value() && *stride != 0 && (constant || (*stride != 1 && Reuse(s, load) >= kPackedReuseMin));
    const bool can = wanted && !PackedOrder(load, vector, 1, ReductionOrder(s, vector)).empty();
    (can ? packable : others).insert(load.buffer.get());
  }
  std::erase_if(packable, [&](const ir::BufferNode* b) { return others.contains(b); });
  return packable;
}

// The best tile for one axis along vectors.
struct Shape {
  InnerTile tile;
  std::set<const ir::BufferNode*> packed;  // operands that are packed for the tile
  double cycles = 0;                       // estimated cycles of the whole stage
};

Shape ShapeAlong(const Tiling& t, const ir::Stage& s, size_t axis) {
  Shape shape{.packed = Packable(t, s, axis)};
  const TileModel model(s, t.sketch.target, shape.packed);
  shape.tile = model.Cheapest(static_cast<int>(axis));
  shape.cycles = model.Cycles(shape.tile);
  for (const ir::Axis& r : s.reduce_axes) shape.cycles *= static_cast<double>(r.extent.max());
  return shape;
}

int64_t PreferredPartials(const Tiling& t, const ir::Stage& s) {
  const int64_t width = t.sketch.target.VectorWidth(std::max(4, ir::SizeOf(s.buffer->dtype)));
  return s.reduce_axes.back().extent.max() >= 8 * width ? 4 * width : width;
}

// Whether vectors along the last axis of the results would be less than half full.
bool HasShortResults(const Sketch& sketch, const ir::Stage& s) {
  const auto last = std::find_if(s.axes.rbegin(), s.axes.rend(), [](const ir::Axis& a) { return a.extent.max() > 1; });
  return last == s.axes.rend() ||
         2 * last->extent.max() < sketch.target.VectorWidth(std::max(4, ir::SizeOf(s.buffer->dtype)));
}

}  // namespace

absl::Status LayAlongReduction(Sketch& sketch, const std::string& stage) {
  const ir::Stage s = sketch.Get(stage).stage;
  if (!IsContraction(s) || !HasShortResults(sketch, s)) return absl::OkStatus();
  const std::string& axis = s.reduce_axes.back().name;
  for (const ir::Load& load : LoadsOf(s)) {
    const bool across = StrideOf(load, axis, AxisRanges(s)).value_or(0) > 1;
    if (!across || !schedule::IsFixed(sketch.state, load.buffer.get())) continue;
    HONE_RETURN_IF_ERROR(PackLast(sketch, stage, load, axis));
  }
  return absl::OkStatus();
}

namespace {

// The shape if vectors hold partial results along the last axis of the reduction; nullopt if vectors cannot lie there.
std::optional<Shape> ShapeOfPartials(const Tiling& t) {
  if (!FitsVectors(t.sketch, t.StageOf(t.stage)) && !HasShortResults(t.sketch, t.StageOf(t.stage))) return std::nullopt;
  Sketch probe{t.sketch.state, t.sketch.target, t.sketch.chooser, {}};
  HONE_CHECK(LayAlongReduction(probe, t.stage).ok());
  const ir::Stage s = probe.Get(t.stage).stage;
  if (!FitsVectors(probe, s)) return std::nullopt;
  HONE_CHECK(probe.Do(schedule::Rfactor{t.stage, s.reduce_axes.back().name, PreferredPartials(t, s), true}).ok());
  const ir::Stage& partial = probe.Get(PartialResultsOf(probe, t.stage)).stage;
  Shape shape = ShapeAlong(t, partial, t.rank());
  // A last step combines the partial results. It goes one number after the other if results do not fill vectors
  // (measured, decision 0229).
  const double together = IsContraction(s) && HasShortResults(t.sketch, t.StageOf(t.stage)) ? 2.0 : 0.5;
  shape.cycles += together * static_cast<double>(ir::NumElements(*partial.buffer));
  return shape;
}

// The candidates, by the axis along vectors: the last axis longer than 1, other axes along which all loads are vectors,
// and, under the number of axes as its key, partial results along the reduction.
using Shapes = std::map<int64_t, Shape>;
Shapes ShapesOf(const Tiling& t) {
  const ir::Stage& s = t.StageOf(t.stage);
  Shapes shapes;
  for (size_t d = t.rank(); d-- > 0;) {
    if (t.Extent(d) == 1) continue;
    const TileModel model(s, t.sketch.target, Packable(t, s, d));
    if (shapes.empty() || model.IsContiguous(static_cast<int>(d)))
      shapes[static_cast<int64_t>(d)] = ShapeAlong(t, s, d);
  }
  if (auto partials = ShapeOfPartials(t)) shapes[static_cast<int64_t>(t.rank())] = *std::move(partials);
  return shapes;
}

int64_t CheapestOf(const Shapes& shapes) {
  return std::ranges::min_element(shapes, {}, [](const auto& shape) { return shape.second.cycles; })->first;
}

int64_t ChoosePartials(Tiling& t, const ir::Stage& s) {
  const int64_t width = t.sketch.target.VectorWidth(std::max(4, ir::SizeOf(s.buffer->dtype)));
  std::vector<int64_t> options;
  for (const int64_t v : {1, 2, 4}) {
    if (v * width <= s.reduce_axes.back().extent.max()) options.push_back(v * width);
  }
  // Records contain the name "lanes", so it must not change.
  const int64_t chosen = t.Choose("lanes", options, PreferredPartials(t, s));
  t.tile.sizes.back() = chosen;
  return chosen;
}

int64_t WantedTasks(const Tiling& t) { return t.WorthThreads() ? kTasksPerThread * t.sketch.target.threads : 1; }

// Shrinks the tile until there are enough tiles to keep the threads busy, or until only the vectors are left.
void ShrinkTileForThreads(Tiling& t) {
  const auto tiles = [&] {
    int64_t count = 1;
    for (size_t d = 0; d < t.rank(); ++d) count *= (t.Extent(d) + t.TileSize(d) - 1) / t.TileSize(d);
    return count;
  };
  while (tiles() < WantedTasks(t)) {
    size_t largest = t.rank();
    for (size_t d = 0; d < t.rank(); ++d) {
      if (!t.IsVector(d) && t.TileSize(d) > 1 && (largest == t.rank() || t.TileSize(d) > t.TileSize(largest)))
        largest = d;
    }
    if (largest == t.rank()) return;
    t.tile.sizes[largest] = (t.TileSize(largest) + 1) / 2;
  }
}

std::string Name(size_t level, size_t axis) { return fmt::format("s{}.{}", level, axis); }

// Chooses the sizes of the tile. The axes with the largest preferred sizes come first; each choice limits the registers
// that are left for the next axis.
void ChooseSizes(Tiling& t) {
  ShrinkTileForThreads(t);
  const ir::Stage s = t.StageOf(t.sums);
  const TileModel model(s, t.sketch.target, t.packed);
  const size_t vector = static_cast<size_t>(t.tile.vector);
  const std::vector<int64_t> extents = ExtentsOf(s);
  for (size_t d = 0; d < t.rank(); ++d) t.tile.sizes[d] = t.sketch.chooser.Hinted(extents, d, t.tile.sizes[d]);
  if (!t.along_reduction()) {
    t.tile.sizes[vector] = std::max(t.tile.width, t.tile.sizes[vector] / t.tile.width * t.tile.width);
    std::vector<int64_t> options;
    for (int64_t v = 1; v <= model.VectorsMax(t.tile.vector, t.tile.width); ++v) options.push_back(v);
    t.tile.sizes[vector] = t.tile.width * t.Choose("vectors", options, t.tile.vectors());
  }
  std::vector<size_t> order;
  for (size_t d = 0; d < t.rank(); ++d) {
    // Axes inside the vector axis are not tiled: they would tear the vectors apart.
    if (t.Extent(d) > 1 && static_cast<int>(d) < t.tile.vector) order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return t.tile.sizes[a] > t.tile.sizes[b]; });
  int64_t limit = model.RowLimit(t.tile.vectors());
  for (const size_t d : order) {
    t.tile.sizes[d] =
        t.sketch.chooser.Tile(t.prefix + Name(t.levels - 1, d), t.Extent(d), limit, std::min(t.tile.sizes[d], limit));
    limit /= t.tile.sizes[d];
  }
}

int64_t Tasks(const Tiling& t, const std::vector<int64_t>& block) {
  int64_t tasks = 1;
  for (size_t d = 0; d < t.rank(); ++d)
    tasks *= (t.Extent(d) + block[d] * t.TileSize(d) - 1) / (block[d] * t.TileSize(d));
  return tasks;
}

// The estimated bytes that all tasks move, if a task is a block of so many tiles. Short pieces of rows that are read in
// place cost more, because hardware prefetching stops at the end of each piece.
double Traffic(const Tiling& t, const std::vector<int64_t>& block) {
  constexpr double kPieceBytes = 256;
  const double bytes = static_cast<double>(Tasks(t, block)) * static_cast<double>(t.TaskBytes(block));
  if (!t.packed.empty() || t.along_reduction()) return bytes;
  const size_t vector = static_cast<size_t>(t.tile.vector);
  return bytes * (1 + kPieceBytes / static_cast<double>(4 * block[vector] * t.TileSize(vector)));
}

// The most bytes that a task may read. Half the second cache is the rule. If a task mostly reads a copy that it has
// made itself (a small window over padding), the copy should still be in the first cache: half the first cache.
// A maximum over data from memory keeps the second cache. It does not wait for its copy as a sum does, and memory
// delivers one long row of lines sooner than many short ones.
int64_t TaskBytesMax(const Tiling& t) {
  const target::Memory& memory = t.sketch.target.memory;
  const bool sums = t.StageOf(t.sums).reduction == ir::Reduction::kSum;
  if (!sums && t.CachesFilled() > 1) return memory.l2_bytes / 2;
  const std::vector<ir::Load> loads = LoadsOf(t.StageOf(t.sums));
  const auto own = [&](const ir::Load& load) {
    return std::ranges::find(t.producers, load.buffer->name) != t.producers.end();
  };
  const bool little =
      t.steps <= kUnrolledWindowStepsMax ? std::ranges::any_of(loads, own) : std::ranges::all_of(loads, own);
  return (t.place == Tiling::kAtTask && little ? memory.l1_bytes : memory.l2_bytes) / 2;
}

// The preferred size of a task, in tiles by axis. It starts with everything. The axis whose halving costs least traffic
// is halved until there are enough tasks for the threads and a task's bytes fit the cache.
std::vector<int64_t> PreferredBlock(const Tiling& t) {
  std::vector<int64_t> block(t.rank());
  for (size_t d = 0; d < t.rank(); ++d) block[d] = (t.Extent(d) + t.TileSize(d) - 1) / t.TileSize(d);
  while (Tasks(t, block) < WantedTasks(t) || t.TaskBytes(block) > TaskBytesMax(t)) {
    std::vector<int64_t> best;
    double least = 0;
    for (size_t d = 0; d < t.rank(); ++d) {
      if (block[d] == 1) continue;
      std::vector<int64_t> halved = block;
      halved[d] = (block[d] + 1) / 2;
      const double traffic = Traffic(t, halved);
      if (!best.empty() && traffic >= least) continue;
      best = std::move(halved);
      least = traffic;
    }
    if (best.empty()) break;
    block = std::move(best);
  }
  return block;
}

}  // namespace

bool PrefersPartialResults(const schedule::State& state, const ir::Stage& stage, const target::Target& target) {
  Chooser none;
  Sketch sketch{state, target, none, {}};
  if (!IsContraction(stage) || !HasShortResults(sketch, stage)) return false;
  const std::string& name = stage.buffer->name;
  const Tiling t(sketch, name, name, "");
  const Shapes shapes = ShapesOf(t);
  return !shapes.empty() && CheapestOf(shapes) == static_cast<int64_t>(t.rank());
}

absl::StatusOr<bool> ChooseTile(Tiling& t) {
  Shapes shapes = ShapesOf(t);
  if (shapes.empty()) return false;
  std::vector<int64_t> options;
  for (const auto& [axis, shape] : shapes) options.push_back(axis);
  const Shape& shape = shapes[t.Choose("along", options, CheapestOf(shapes))];
  t.tile = shape.tile;
  t.packed = shape.packed;
  if (t.along_reduction()) {
    HONE_RETURN_IF_ERROR(LayAlongReduction(t.sketch, t.stage));
    const ir::Stage s = t.StageOf(t.stage);
    HONE_RETURN_IF_ERROR(
        t.sketch.Do(schedule::Rfactor{t.stage, s.reduce_axes.back().name, ChoosePartials(t, s), true}));
    t.sums = PartialResultsOf(t.sketch, t.stage);
  }
  ChooseSizes(t);
  return true;
}

void ChooseLevels(Tiling& t) {
  const std::vector<int64_t> block = PreferredBlock(t);
  t.sizes.assign(t.levels - 1, std::vector<int64_t>(t.rank(), 1));
  for (size_t d = 0; d < t.rank(); ++d) {
    int64_t size = t.TileSize(d), tiles = (t.Extent(d) + size - 1) / size;
    t.sizes[t.levels - 2][d] = size;
    for (size_t level = t.levels - 2; level-- > 0;) {
      if (tiles > 1) {
        const int64_t preferred = level == 0 ? std::max<int64_t>(1, block[d] / (size / t.TileSize(d))) : 1;
        const int64_t factor = t.sketch.chooser.Tile(t.prefix + Name(level + 1, d), tiles, tiles, preferred);
        size *= factor;
        tiles = (tiles + factor - 1) / factor;
      }
      t.sizes[level][d] = size;
    }
  }
}

}  // namespace hone::space
