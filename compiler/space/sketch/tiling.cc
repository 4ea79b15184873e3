// Multi-level tiling of any reduction by the target's tile string, as S S R S R S.
//
// Every S splits all axes of the result, every R those that are summed over. The loops of the first S are tasks for
// threads; those up to the first R are the reader's, around the place where the reduction is computed; the last S is
// the tile that stays in registers, with vectors along the axis of which the loads make most. Between two R's lie the
// partial sums of one block of the reduction: then what is accumulated is a block in the cache, to which every block of
// the reduction adds a tile. Nothing here knows an operator. Source: Zheng et al., "Ansor", OSDI 2020, section 4.
#include "compiler/target/tiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/tile_shape.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Split;
using schedule::Tail;

constexpr double kSerialFlops = 100e3;
constexpr int64_t kTasksPerThread = 4;  // so that threads end together
constexpr int64_t kMostUnrolled = 256;  // vector operations of one tile's code
constexpr int64_t kWindow = 7;          // a short axis of a reduction is written out,
constexpr int64_t kWindowSteps = 16;    // or all of them, if there are few steps
constexpr int64_t kInlinedSteps = 64;   // of a reduction that may compute what it reads each time anew
constexpr int64_t kPackedReuse = 8;     // uses of an element that pay for copying it into the order of the tiles

class Tiling {
 public:
  Tiling(Sketch& sketch, std::string reader, std::string stage, std::string prefix)
      : sketch_(sketch),
        reader_(std::move(reader)),
        stage_(std::move(stage)),
        sums_(stage_),
        prefix_(std::move(prefix)),
        out_(sketch.Get(reader_).stage),
        tiling_(target::TilingOf(sketch.target)),
        levels_(static_cast<size_t>(std::ranges::count(tiling_, 'S'))),
        first_reduction_(tiling_.find('R')) {
    HONE_CHECK(levels_ >= 2 && first_reduction_ >= 1 && tiling_.ends_with("RS"));
    for (const ir::Axis& axis : StageOf(stage_).reduce_axes) steps_ *= axis.extent;
  }

  absl::Status Run() {
    HONE_RETURN_IF_ERROR(PlaceProducers());
    HONE_ASSIGN_OR_RETURN(const bool tiled, ChooseTile());
    if (!tiled) return absl::OkStatus();
    if (rank() == 0) return TileSums();  // one number: there are no loops to compute it in
    ChooseLevels();
    HONE_RETURN_IF_ERROR(PackOperands());
    HONE_RETURN_IF_ERROR(SplitReduction());
    HONE_RETURN_IF_ERROR(CopyOperands());
    HONE_RETURN_IF_ERROR(TileReader());
    HONE_RETURN_IF_ERROR(ComputeSums());
    return ComputeProducers();
  }

 private:
  enum Place : int64_t { kAtRoot = 0, kAtTask = 1, kInlined = 2 };

  const ir::Stage& StageOf(const std::string& name) const { return sketch_.Get(name).stage; }
  size_t rank() const { return out_.axes.size(); }
  int64_t Extent(size_t axis) const { return out_.axes[axis].extent; }
  // The axis along vectors is one that the partial results of lanes have been given.
  bool along_reduction() const { return tile_.vector == static_cast<int>(rank()); }
  bool IsVector(size_t axis) const { return static_cast<int>(axis) == tile_.vector; }
  int64_t TileSize(size_t axis) const { return tile_.sizes[axis]; }
  int64_t Choose(const std::string& name, std::vector<int64_t> options, int64_t preferred) {
    return sketch_.chooser.OneOf(prefix_ + name, std::move(options), preferred);
  }
  bool WorthThreads() const {
    double flops = 2.0 * static_cast<double>(steps_);
    for (const ir::Axis& axis : out_.axes) flops *= static_cast<double>(axis.extent);
    return flops > kSerialFlops && sketch_.target.threads > 1;
  }

  // Padding and the like: copied before, copied for each task, or computed where it is read.
  absl::Status PlaceProducers() {
    producers_ = OwnProducers(sketch_.state, StageOf(stage_));
    if (producers_.empty()) return absl::OkStatus();
    std::vector<int64_t> places = {kAtRoot, kAtTask};
    if (steps_ <= kInlinedSteps) places.push_back(kInlined);
    place_ = Choose("pad", places, kAtTask);
    if (place_ != kInlined) return absl::OkStatus();
    for (const std::string& producer : producers_) HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Inline{producer}));
    producers_.clear();
    return absl::OkStatus();
  }

  // Operands that can be copied into the order of tiles along this axis.
  std::set<const ir::BufferNode*> Packable(const ir::Stage& s, size_t axis) const {
    std::set<const ir::BufferNode*> packable, others;
    const ir::Ranges ranges = AxisRanges(s);
    for (const ir::Load& load : LoadsOf(s)) {
      const std::string& vector = s.axes[axis].name;
      const auto stride = StrideOf(load, vector, ranges);
      const bool constant = IsConstant(sketch_.state, load.buffer.get());
      const bool wanted =
          stride.has_value() && *stride != 0 && (constant || (*stride != 1 && Reuse(s, load) >= kPackedReuse));
      const bool can = wanted && !PackedOrder(load, vector, 1, ReductionOrder(s, vector)).empty();
      (can ? packable : others).insert(load.buffer.get());
    }
    std::erase_if(packable, [&](const ir::BufferNode* b) { return others.contains(b); });
    return packable;
  }

  // How often each element of the load is read, because axes do not move it.
  static int64_t Reuse(const ir::Stage& s, const ir::Load& load) {
    int64_t reuse = 1;
    for (const ir::Axis& axis : s.axes) {
      if (StrideOf(load, axis.name, AxisRanges(s)) == 0) reuse *= axis.extent;
    }
    return reuse;
  }

  struct Shape {
    InnerTile tile;
    std::set<const ir::BufferNode*> packed;
    double cycles = 0;  // of the whole stage
  };

  Shape ShapeAlong(const ir::Stage& s, size_t axis) const {
    Shape shape{.packed = Packable(s, axis)};
    const TileModel model(s, sketch_.target, shape.packed);
    shape.tile = model.Cheapest(static_cast<int>(axis));
    shape.cycles = model.Cycles(shape.tile);
    for (const ir::Axis& r : s.reduce_axes) shape.cycles *= static_cast<double>(r.extent);
    return shape;
  }

  // Candidates: the last axis, others along which all loads are vectors, and lanes of the reduction itself.
  absl::StatusOr<bool> ChooseTile() {
    const ir::Stage s = StageOf(stage_);
    std::map<int64_t, Shape> shapes;
    for (size_t d = rank(); d-- > 0;) {
      if (Extent(d) == 1) continue;
      const TileModel model(s, sketch_.target, Packable(s, d));
      if (shapes.empty() || model.IsContiguous(static_cast<int>(d))) shapes[static_cast<int64_t>(d)] = ShapeAlong(s, d);
    }
    const auto lanes = static_cast<int64_t>(rank());
    if (FitsLanes(sketch_, s)) {
      const ir::Stage partial = LanesOf(s);
      shapes[lanes] = ShapeAlong(partial, rank());
      // The lanes of every result are taken together in the end.
      shapes[lanes].cycles += 0.5 * static_cast<double>(ir::NumElements(*partial.buffer));
    }
    if (shapes.empty()) return false;
    std::vector<int64_t> options;
    int64_t preferred = shapes.begin()->first;
    for (const auto& [axis, shape] : shapes) {
      options.push_back(axis);
      if (shape.cycles < shapes[preferred].cycles) preferred = axis;
    }
    const Shape& shape = shapes[Choose("along", options, preferred)];
    tile_ = shape.tile;
    packed_ = shape.packed;
    if (along_reduction()) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Rfactor{stage_, s.reduce_axes.back().name, ChooseLanes(s), true}));
      sums_ = stage_ + "f";
    }
    ChooseSizes();
    return true;
  }

  // The stage with partial results for each lane of the reduction's last axis.
  ir::Stage LanesOf(const ir::Stage& s) const {
    schedule::State probe = sketch_.state;
    const schedule::Rfactor step{stage_, s.reduce_axes.back().name, MostLanes(s), true};
    HONE_CHECK(schedule::Apply(step, probe).ok());
    return probe.FindNest(stage_ + "f")->stage;
  }
  int64_t MostLanes(const ir::Stage& s) const {
    const int64_t lanes = sketch_.target.Lanes(std::max(4, ir::SizeOf(s.buffer->dtype)));
    return s.reduce_axes.back().extent >= 8 * lanes ? 4 * lanes : lanes;
  }
  int64_t ChooseLanes(const ir::Stage& s) {
    const int64_t lanes = sketch_.target.Lanes(std::max(4, ir::SizeOf(s.buffer->dtype)));
    std::vector<int64_t> options;
    for (const int64_t v : {1, 2, 4}) {
      if (v * lanes <= s.reduce_axes.back().extent) options.push_back(v * lanes);
    }
    const int64_t chosen = Choose("lanes", options, MostLanes(s));
    tile_.sizes.back() = chosen;
    return chosen;
  }

  int64_t WantedTasks() const { return WorthThreads() ? kTasksPerThread * sketch_.target.threads : 1; }

  // Where there are few results, registers give way to threads.
  void LeaveTasks() {
    const auto tiles = [&] {
      int64_t count = 1;
      for (size_t d = 0; d < rank(); ++d) count *= (Extent(d) + TileSize(d) - 1) / TileSize(d);
      return count;
    };
    while (tiles() < WantedTasks()) {
      size_t largest = rank();
      for (size_t d = 0; d < rank(); ++d) {
        if (!IsVector(d) && TileSize(d) > 1 && (largest == rank() || TileSize(d) > TileSize(largest))) largest = d;
      }
      if (largest == rank()) return;
      tile_.sizes[largest] = (TileSize(largest) + 1) / 2;
    }
  }

  // The sizes of the tile, the preferred ones first: they leave the others what is left of the registers.
  void ChooseSizes() {
    LeaveTasks();
    const ir::Stage s = StageOf(sums_);
    const TileModel model(s, sketch_.target, packed_);
    const size_t vector = static_cast<size_t>(tile_.vector);
    if (!along_reduction()) {
      std::vector<int64_t> options;
      for (int64_t v = 1; v <= model.MostVectors(tile_.vector, tile_.lanes); ++v) options.push_back(v);
      tile_.sizes[vector] = tile_.lanes * Choose("vectors", options, tile_.vectors());
    }
    std::vector<size_t> order;
    for (size_t d = 0; d < rank(); ++d) {
      // What lies inside of the vectors would tear them apart.
      if (Extent(d) > 1 && static_cast<int>(d) < tile_.vector) order.push_back(d);
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return tile_.sizes[a] > tile_.sizes[b]; });
    int64_t limit = model.RowLimit(tile_.vectors());
    for (const size_t d : order) {
      tile_.sizes[d] =
          sketch_.chooser.Tile(prefix_ + Name(levels_ - 1, d), Extent(d), limit, std::min(tile_.sizes[d], limit));
      limit /= tile_.sizes[d];
    }
  }

  static std::string Name(size_t level, size_t axis) { return fmt::format("s{}.{}", level, axis); }

  // How many elements of each axis one iteration of a level's loop covers: multiples of the tile's.
  void ChooseLevels() {
    const std::vector<int64_t> block = PreferredBlock();
    sizes_.assign(levels_ - 1, std::vector<int64_t>(rank(), 1));
    for (size_t d = 0; d < rank(); ++d) {
      int64_t size = TileSize(d), tiles = (Extent(d) + size - 1) / size;
      sizes_[levels_ - 2][d] = size;
      for (size_t level = levels_ - 2; level-- > 0;) {
        if (tiles > 1) {
          const int64_t preferred = level == 0 ? std::max<int64_t>(1, block[d] / (size / TileSize(d))) : 1;
          const int64_t factor = sketch_.chooser.Tile(prefix_ + Name(level + 1, d), tiles, tiles, preferred);
          size *= factor;
          tiles = (tiles + factor - 1) / factor;
        }
        sizes_[level][d] = size;
      }
    }
  }

  // In tiles: all of them, halved along the axis where that costs least traffic until there are tasks for the threads
  // and what a task touches fits the second cache.
  std::vector<int64_t> PreferredBlock() const {
    std::vector<int64_t> block(rank());
    for (size_t d = 0; d < rank(); ++d) block[d] = (Extent(d) + TileSize(d) - 1) / TileSize(d);
    while (Tasks(block) < WantedTasks() || TaskBytes(block) > sketch_.target.memory.l2_bytes / 2) {
      std::vector<int64_t> best;
      double least = 0;
      for (size_t d = 0; d < rank(); ++d) {
        if (block[d] == 1) continue;
        std::vector<int64_t> halved = block;
        halved[d] = (block[d] + 1) / 2;
        const double traffic = static_cast<double>(Tasks(halved)) * static_cast<double>(TaskBytes(halved));
        if (!best.empty() && traffic >= least) continue;
        best = std::move(halved);
        least = traffic;
      }
      if (best.empty()) break;
      block = std::move(best);
    }
    return block;
  }
  int64_t Tasks(const std::vector<int64_t>& block) const {
    int64_t tasks = 1;
    for (size_t d = 0; d < rank(); ++d) tasks *= (Extent(d) + block[d] * TileSize(d) - 1) / (block[d] * TileSize(d));
    return tasks;
  }
  // `only`: of what these stages hand over; all loads if null.
  int64_t TaskBytes(const std::vector<int64_t>& block, const std::vector<std::string>* only = nullptr) const {
    const ir::Stage& s = StageOf(sums_);
    AxisExtents extents;
    for (const ir::Axis& axis : s.reduce_axes) extents[axis.name] = axis.extent;
    for (size_t d = 0; d < s.axes.size(); ++d) {
      extents[s.axes[d].name] = d < rank() ? std::min(block[d] * TileSize(d), Extent(d)) : s.axes[d].extent;
    }
    int64_t bytes = 0;
    for (const ir::Load& load : LoadsOf(s)) {
      const bool counts = only == nullptr || std::find(only->begin(), only->end(), load.buffer->name) != only->end();
      if (counts) bytes += RegionBytes(load, AxisRanges(s), extents);
    }
    return bytes;
  }

  absl::Status PackOperands() {
    if (packed_.empty()) return absl::OkStatus();
    const bool packs = Choose("pack", {0, 1}, 1) == 1;
    if (!packs) {
      packed_.clear();
      return absl::OkStatus();
    }
    std::set<std::string> done;
    for (const ir::Load& load : LoadsOf(StageOf(sums_))) {
      const std::string source = load.buffer->name;
      if (!packed_.contains(load.buffer.get()) || !done.insert(source).second) continue;
      const ir::Stage& s = StageOf(sums_);
      const std::string& vector = s.axes[static_cast<size_t>(tile_.vector)].name;
      const auto order =
          PackedOrder(load, vector, tile_.sizes[static_cast<size_t>(tile_.vector)], ReductionOrder(s, vector));
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Pack{source, sums_, order}));
      const std::string packed = source + "p" + sums_;
      if (!sketch_.Get(packed).prepared) HONE_RETURN_IF_ERROR(ScheduleElementwise(sketch_, packed));
      std::erase(producers_, source);  // read by the packing now, at the root
    }
    return absl::OkStatus();
  }

  // Blocks of the longest axis of the reduction, if there is a second R: each has sums of its own, added to the block
  // of results when they are complete. One block of all: only the reader is fused further out.
  absl::Status SplitReduction() {
    if (along_reduction() || std::ranges::count(tiling_, 'R') < 2) return absl::OkStatus();
    const ir::Stage& s = StageOf(stage_);
    const auto longest = std::ranges::max_element(s.reduce_axes, {}, &ir::Axis::extent);
    std::vector<int64_t> options = {0};
    for (int64_t block = 8; block <= 512 && block < longest->extent; ++block) {
      if (longest->extent % block == 0) options.push_back(block);
    }
    options.push_back(longest->extent);
    const int64_t block = Choose("r1", options, 0);
    if (block == 0) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Rfactor{stage_, longest->name, block, false}));
    sums_ = stage_ + "f";
    blocked_ = true;
    return absl::OkStatus();
  }

  // What is neither packed nor produced here may be copied for each task, so that it lies together.
  absl::Status CopyOperands() {
    std::vector<std::string> operands;
    for (const ir::Load& load : LoadsOf(StageOf(sums_))) {
      const bool read_once = std::ranges::find(operands, load.buffer->name) != operands.end();
      if (!read_once && sketch_.state.FindNest(load.buffer.get()) == nullptr) operands.push_back(load.buffer->name);
    }
    if (operands.empty() || TaskBytes(Block(), &operands) > MostCopiedBytes(sketch_.target)) return absl::OkStatus();
    if (Choose("copy", {0, 1}, 0) == 0) return absl::OkStatus();
    for (const std::string& operand : operands) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::CacheRead{operand, sums_}));
      copies_.push_back(operand + "r" + sums_);
    }
    return absl::OkStatus();
  }

  // Of one task, in tiles.
  std::vector<int64_t> Block() const {
    std::vector<int64_t> block(rank());
    for (size_t d = 0; d < rank(); ++d) block[d] = sizes_[0][d] / TileSize(d);
    return block;
  }

  // The level of loops inside which the reduction is computed.
  size_t PlaceLevel() const { return blocked_ ? first_reduction_ - 1 : levels_ - 2; }

  absl::Status TileReader() {
    loops_.assign(levels_ - 1, {});
    std::vector<std::string> inner(rank());
    for (size_t d = 0; d < rank(); ++d) {
      HONE_RETURN_IF_ERROR(SplitAxis(d, &inner[d]));
    }
    if (std::all_of(loops_.begin(), loops_.begin() + static_cast<std::ptrdiff_t>(PlaceLevel()) + 1,
                    [](const auto& level) { return level.empty(); })) {
      // A loop to compute the reduction in: one iteration of the first axis that is longer than its tile.
      HONE_RETURN_IF_ERROR(AddLoop(inner));
    }
    schedule::Reorder order;
    const bool vector_outside = Choose("order", {0, 1}, 0) == 1;
    for (size_t level = 0; level + 1 < levels_; ++level) {
      auto& loops = loops_[level];
      if (level > 0 || vector_outside) {
        std::stable_partition(loops.begin(), loops.end(), [&](const AxisLoop& loop) { return IsVector(loop.axis); });
      }
      for (const AxisLoop& loop : loops) order.loops.push_back(loop.name);
    }
    std::vector<std::string> tile;
    for (size_t d = 0; d < rank(); ++d) {
      if (!IsVector(d) && !inner[d].empty()) tile.push_back(inner[d]);
    }
    order.loops.insert(order.loops.end(), tile.begin(), tile.end());
    const std::string vector = along_reduction() ? "" : inner[static_cast<size_t>(tile_.vector)];
    HONE_RETURN_IF_ERROR(AddVectors(vector, &order));
    HONE_RETURN_IF_ERROR(Arrange(order));
    for (const std::string& loop : tile) HONE_RETURN_IF_ERROR(Unroll(loop));
    HONE_RETURN_IF_ERROR(AnnotateVectors(vector));
    return Parallelize();
  }

  struct AxisLoop {
    size_t axis;
    std::string name;
  };

  int64_t ExtentOf(const std::string& loop) const {
    size_t position = 0;
    return sketch_.state.FindLoop(loop, &position)->loops[position].max_extent;
  }

  // The loops of an axis, level by level; `inner` gets the one inside of the tile, empty if the tile has one element.
  absl::Status SplitAxis(size_t axis, std::string* inner) {
    std::string loop = out_.axes[axis].name;
    int64_t extent = Extent(axis);
    const bool masked = IsVector(axis) && !packed_.empty();  // shifted tiles would not meet the packed ones
    for (size_t level = 0; level + 1 < levels_; ++level) {
      const int64_t size = sizes_[level][axis];
      if (size >= extent) continue;
      if (size == 1) {
        loops_[level].push_back({axis, loop});
        return absl::OkStatus();
      }
      HONE_RETURN_IF_ERROR(sketch_.Do(Split{loop, size, masked ? Tail::kMask : Tail::kShift}));
      loops_[level].push_back({axis, loop + "o"});
      loop += "i";
      extent = size;
    }
    *inner = loop;
    return absl::OkStatus();
  }

  absl::Status AddLoop(std::vector<std::string>& inner) {
    const size_t axis = along_reduction() ? 0 : static_cast<size_t>(tile_.vector);
    const bool whole = !inner[axis].empty();
    const std::string loop = whole ? inner[axis] : loops_.back().front().name;
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{loop, ExtentOf(loop), Tail::kMask}));
    loops_[0].push_back({axis, loop + "o"});
    (whole ? inner[axis] : loops_.back().front().name) = loop + "i";
    return absl::OkStatus();
  }

  // The vector axis of a tile, in vectors.
  absl::Status AddVectors(const std::string& loop, schedule::Reorder* order) {
    if (loop.empty()) return absl::OkStatus();
    if (ExtentOf(loop) <= tile_.lanes) {
      order->loops.push_back(loop);
      return absl::OkStatus();
    }
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{loop, tile_.lanes, Tail::kMask}));
    order->loops.push_back(loop + "o");
    order->loops.push_back(loop + "i");
    return absl::OkStatus();
  }
  absl::Status AnnotateVectors(const std::string& loop) {
    if (loop.empty() || tile_.lanes == 1) return absl::OkStatus();
    size_t position = 0;
    const bool split = sketch_.state.FindLoop(loop, &position) == nullptr;
    if (split) HONE_RETURN_IF_ERROR(Unroll(loop + "o"));
    return sketch_.Do(Annotate{split ? loop + "i" : loop, ir::LoopKind::kVectorized});
  }
  absl::Status Arrange(const schedule::Reorder& order) {
    return order.loops.size() < 2 ? absl::OkStatus() : sketch_.Do(order);
  }
  absl::Status Unroll(const std::string& loop) {
    return ExtentOf(loop) == 1 ? absl::OkStatus() : sketch_.Do(Annotate{loop, ir::LoopKind::kUnrolled});
  }

  // The outermost level as one loop.
  absl::Status Parallelize() {
    auto& loops = loops_[0];
    for (size_t i = 1; i < loops.size(); ++i) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Fuse{loops[0].name, loops[i].name}));
      loops[0].name += "_" + loops[i].name;
    }
    if (loops.empty()) return absl::OkStatus();
    loops.resize(1);
    if (Choose("parallel", {0, 1}, WorthThreads() ? 1 : 0) == 0) return absl::OkStatus();
    return sketch_.Do(Annotate{loops[0].name, ir::LoopKind::kParallel});
  }

  // The innermost loop of the levels up to this one.
  std::string LastLoop(size_t level) const {
    while (loops_[level].empty()) --level;
    return loops_[level].back().name;
  }

  absl::Status ComputeSums() {
    const std::string place = LastLoop(PlaceLevel());
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{stage_, place}));
    if (blocked_) HONE_RETURN_IF_ERROR(AddUpBlocks());
    if (along_reduction()) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{sums_, place}));
      HONE_RETURN_IF_ERROR(UnrollLanes());
    }
    return TileSums();
  }

  // The block of results: every block of the reduction adds a tile at a time.
  absl::Status AddUpBlocks() {
    const ir::Stage s = StageOf(stage_);
    schedule::Reorder order;
    for (const ir::Axis& axis : s.reduce_axes) order.loops.push_back(axis.name);
    std::vector<AxisLoop> tiles, inner;
    for (size_t d = 0; d < rank(); ++d) {
      const std::string& loop = s.axes[d].name;
      const int64_t size = TileSize(d);
      if (size >= ExtentOf(loop)) {
        inner.push_back({d, loop});
      } else if (size == 1) {
        tiles.push_back({d, loop});
      } else {
        HONE_RETURN_IF_ERROR(sketch_.Do(Split{loop, size, Tail::kMask}));
        tiles.push_back({d, loop + "o"});
        inner.push_back({d, loop + "i"});
      }
    }
    std::stable_partition(tiles.begin(), tiles.end(), [&](const AxisLoop& loop) { return IsVector(loop.axis); });
    for (const AxisLoop& loop : tiles) order.loops.push_back(loop.name);
    const std::string place = order.loops.back();
    std::string vector;
    for (const AxisLoop& loop : inner) (IsVector(loop.axis) ? vector : order.loops.emplace_back()) = loop.name;
    HONE_RETURN_IF_ERROR(AddVectors(vector, &order));
    HONE_RETURN_IF_ERROR(Arrange(order));
    for (const AxisLoop& loop : inner) {
      if (!IsVector(loop.axis)) HONE_RETURN_IF_ERROR(Unroll(loop.name));
    }
    HONE_RETURN_IF_ERROR(AnnotateVectors(vector));
    return sketch_.Do(schedule::ComputeAt{sums_, place});
  }

  // Written out, so that the partial results of the lanes never leave registers.
  absl::Status UnrollLanes() {
    const ir::Stage s = StageOf(stage_);
    if (tile_.rows() * s.reduce_axes.back().extent > kMostUnrolled) return absl::OkStatus();
    for (const auto* axes : {&s.axes, &s.reduce_axes}) {
      for (const ir::Axis& axis : *axes) HONE_RETURN_IF_ERROR(Unroll(axis.name));
    }
    return absl::OkStatus();
  }

  // The innermost R and S: the reduction around the tile.
  absl::Status TileSums() {
    const ir::Stage s = StageOf(sums_);
    const std::string vector = s.axes[static_cast<size_t>(tile_.vector)].name;
    schedule::Reorder order{ReductionOrder(s, vector)};
    std::vector<std::string> unrolled;
    HONE_RETURN_IF_ERROR(UnrollReduction(&order, &unrolled));
    for (size_t d = 0; d < s.axes.size(); ++d) {
      if (IsVector(d)) continue;
      order.loops.push_back(s.axes[d].name);
      unrolled.push_back(s.axes[d].name);
    }
    HONE_RETURN_IF_ERROR(AddVectors(vector, &order));
    HONE_RETURN_IF_ERROR(Arrange(order));
    for (const std::string& loop : unrolled) HONE_RETURN_IF_ERROR(Unroll(loop));
    return AnnotateVectors(vector);
  }

  // The innermost steps of the reduction are written out: whole axes, then a part of the next.
  absl::Status UnrollReduction(schedule::Reorder* order, std::vector<std::string>* unrolled) {
    if (order->loops.empty()) return absl::OkStatus();
    const int64_t limit = kMostUnrolled / (tile_.rows() * tile_.vectors());
    std::vector<int64_t> options = {1};
    for (int64_t u = 2; u <= std::min<int64_t>(limit, 64); u *= 2) options.push_back(u);
    const int64_t innermost = ExtentOf(order->loops.back());
    const int64_t preferred = steps_ <= kWindowSteps ? steps_ : innermost <= kWindow ? innermost : 1;
    int64_t left = Choose("unroll", options, PowerOfTwo(preferred));
    for (size_t i = order->loops.size(); i-- > 0 && left > 1;) {
      const std::string loop = order->loops[i];
      const int64_t extent = ExtentOf(loop);
      if (extent <= left) {
        unrolled->push_back(loop);
        left /= extent;
        continue;
      }
      if (extent % left != 0) break;
      HONE_RETURN_IF_ERROR(sketch_.Do(Split{loop, left, Tail::kMask}));
      order->loops[i] = loop + "o";
      order->loops.insert(order->loops.begin() + static_cast<std::ptrdiff_t>(i) + 1, loop + "i");
      unrolled->push_back(loop + "i");
      break;
    }
    return absl::OkStatus();
  }

  absl::Status ComputeProducers() {
    const bool fits = TaskBytes(Block(), &producers_) <= MostCopiedBytes(sketch_.target);
    for (const std::string& producer : producers_) HONE_RETURN_IF_ERROR(Compute(producer, place_ == kAtTask && fits));
    for (const std::string& copy : copies_) HONE_RETURN_IF_ERROR(Compute(copy, true));
    return absl::OkStatus();
  }
  absl::Status Compute(const std::string& producer, bool for_task) {
    if (!for_task || loops_[0].empty()) return ScheduleElementwise(sketch_, producer);
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{producer, loops_[0].front().name}));
    return VectorizeCopy(sketch_, producer);
  }

  Sketch& sketch_;
  const std::string reader_, stage_;
  std::string sums_;  // the stage whose innermost loops are the tile: the reduction, or partial results of it
  const std::string prefix_;
  int64_t steps_ = 1;  // of the whole reduction
  const ir::Stage out_;
  const std::string_view tiling_;
  const size_t levels_;           // how many S
  const size_t first_reduction_;  // how many S before the first R
  InnerTile tile_;
  std::set<const ir::BufferNode*> packed_;
  std::vector<std::vector<int64_t>> sizes_;   // [level][axis], without the innermost level
  std::vector<std::vector<AxisLoop>> loops_;  // [level]: of the reader, without the innermost level
  bool blocked_ = false;
  std::vector<std::string> producers_, copies_;  // padding and the like; operands copied as they are
  int64_t place_ = kAtRoot;
};

}  // namespace

absl::Status ScheduleTiles(Sketch& sketch, const std::string& reader, const std::string& stage,
                           const std::string& prefix) {
  return Tiling(sketch, reader, stage, prefix).Run();
}

}  // namespace hone::space
