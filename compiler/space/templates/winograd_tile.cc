// SPDX-License-Identifier: Apache-2.0
// The template of 3x3 convolutions by Winograd's algorithm on CPUs: it transforms patches of the input, multiplies
// matrices (one product for each element of a transformed patch), and transforms tiles of the output back. The reader's
// element-wise work is done on a tile before the only store.
//
// The transforms keep a vector of channels of a whole patch in registers or the first cache: their loops over the patch
// are unrolled, where the rows of the constant matrices become a few additions each. Source: Lavin, Gray, "Fast
// Algorithms for Convolutional Neural Networks", CVPR 2016.
#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/operands.h"
#include "compiler/space/templates/register_tile.h"
#include "compiler/space/templates/winograd.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Convolution;
using schedule::Tail;

// The most tiles of a block that is taken through all stages at once; 0: there is no memory for one.
int64_t BlockTilesMax(const WinogradWork& work, const target::Target& target) {
  const int64_t room = std::min(target.memory.local_bytes, target.memory.l2_bytes) / 4 * 3;
  return std::min(work.tiles, room / work.tile_bytes);
}

// The preferred tiles of a block. The weights should keep half of a core's second cache, every thread should have some
// blocks, and the rows of a register tile of two vectors should all be used.
int64_t PreferredBlockTiles(const WinogradWork& work, const target::Target& target) {
  const int64_t rows = (target.vector_registers - 3) / 2;
  const int64_t share = (work.tiles + 2 * target.threads - 1) / (2 * target.threads);
  const int64_t tiles = std::min({CopiedBytesMax(target) / work.tile_bytes, share, BlockTilesMax(work, target)});
  return std::max<int64_t>(1, tiles > rows ? tiles / rows * rows : tiles);
}

// Cycles to load the bytes from the nearest memory that holds all `resident` bytes. near: the size of the second cache,
// or of several, in bytes.
double MovingCycles(int64_t bytes, int64_t resident, int64_t near, const target::Target& target) {
  const auto moved = static_cast<double>(bytes);
  if (resident <= near) return moved / target.core.l2_bytes;
  return moved / (resident <= target.memory.l3_bytes ? target.core.l3_bytes : target.core.memory_bytes);
}

// Cycles of the traffic beyond the first cache. Blocked: every block reads the weights once. Staged: all patches and
// products are written and read once.
double BlockedCycles(const WinogradWork& work, const target::Target& target) {
  const int64_t tiles = PreferredBlockTiles(work, target);
  return MovingCycles((work.tiles + tiles - 1) / tiles * work.weight_bytes, work.weight_bytes + tiles * work.tile_bytes,
                      target.memory.l2_bytes, target);
}
double StagedCycles(const WinogradWork& work, const target::Target& target) {
  const int64_t bytes = work.tiles * work.tile_bytes;
  return MovingCycles(2 * bytes, bytes, target.memory.l2_bytes * target.threads / 2, target);
}
bool PrefersBlocks(const WinogradWork& work, const target::Target& target) {
  return BlockTilesMax(work, target) > 0 && BlockedCycles(work, target) < StagedCycles(work, target);
}

// The estimated cycles of one core: multiply-adds of the products, vector operations of the transforms, traffic between
// the stages, and the weights from memory.
double Cycles(const Convolution& conv, int64_t size, const target::Target& target) {
  const WinogradWork work = WinogradWorkOf(conv, size);
  const int64_t width = target.VectorWidth(4);
  const int64_t in = (conv.channel.extent.max() + width - 1) / width,
                out = (conv.filter.extent.max() + width - 1) / width;
  const double patches = static_cast<double>(work.tiles * work.elements);
  const double products = patches * static_cast<double>(conv.channel.extent.max() * out) / target.core.multiply_adds;
  // Each vector of a transform takes a load, a store and about three additions, on the way in and on the way back.
  const double transforms = patches * static_cast<double>(in + out) * 6;
  const double weights = static_cast<double>(work.weight_bytes);
  const double moving = PrefersBlocks(work, target) ? BlockedCycles(work, target) : StagedCycles(work, target);
  return products + transforms + moving + weights / target.core.memory_bytes / target.threads;
}

double DirectCycles(const Convolution& conv, const target::Target& target) {
  const int64_t width = target.VectorWidth(4);
  const int64_t weights = kWinogradWindow * kWinogradWindow * conv.channel.extent.max();
  const double products =
      static_cast<double>(PixelsOf(conv) * weights * ((conv.filter.extent.max() + width - 1) / width));
  return products / target.core.multiply_adds +
         static_cast<double>(weights * conv.filter.extent.max() * 4) / target.core.memory_bytes / target.threads;
}

// The tiles of least estimated time. Tiles of 6 are left to the search: their rounding errors are 8 times those of
// tiles of 4, and most networks are no faster with them; see decision 0295.
WinogradChoice Preferred(const Convolution& conv, const target::Target& target) {
  return PreferredWinograd(conv, {2, 4}, [&](const Convolution& at, int64_t size) {
    return Cycles(at, size, target) / DirectCycles(at, target);
  });
}

class WinogradTile {
 public:
  WinogradTile(Sketch& sketch, std::string out, std::string stage, std::string prefix)
      : sketch_(sketch),
        out_(std::move(out)),
        stage_(std::move(stage)),
        prefix_(std::move(prefix)),
        conv_(*FindWinograd(sketch.state, sketch.Get(stage_).stage)) {
    const ir::Stage& s = sketch.Get(stage_).stage;
    for (const ir::Axis& axis : conv_.batch) batch_.push_back(PlaceOf(s, axis));
    for (size_t i = 0; i < 2; ++i) plane_[i] = PlaceOf(s, conv_.out[i]);
    filter_ = PlaceOf(s, conv_.filter);
  }

  absl::Status Run() {
    HONE_ASSIGN_OR_RETURN(stages_,
                          StartWinograd(sketch_, out_, stage_, prefix_, Preferred(conv_, sketch_.target).size));
    ChooseBlocks();
    HONE_RETURN_IF_ERROR(Output());
    if (block_tiles_ == 0) HONE_RETURN_IF_ERROR(Input());
    HONE_RETURN_IF_ERROR(Products());
    return block_tiles_ == 0 ? absl::OkStatus() : Input();
  }

 private:
  // Chooses whether a block of tiles passes through all stages while it is in a core's second cache, and its size.
  void ChooseBlocks() {
    const target::Target& target = sketch_.target;
    const WinogradWork work = WinogradWorkOf(conv_, stages_.size);
    const int64_t most = BlockTilesMax(work, target);
    if (most == 0) return;
    const int64_t preferred = PrefersBlocks(work, target) ? 1 : 0;
    if (sketch_.chooser.OneOf(prefix_ + "blocks", {0, 1}, preferred) == 0) return;
    ir::Size tiles = 1;
    for (const ir::Axis& axis : conv_.batch) tiles *= axis.extent;
    for (const ir::Axis& axis : conv_.out) tiles *= CeilDiv(axis.extent, stages_.size);
    block_tiles_ = sketch_.chooser.Tile(prefix_ + "block_tiles", tiles, most, PreferredBlockTiles(work, target));
  }

  std::string Axis(const std::string& stage, size_t d) const { return sketch_.Get(stage).stage.axes[d].name; }

  // Tiles of the plane are masked, not shifted: the position of an output in its tile must be a constant when code is
  // generated.
  absl::Status Output() {
    std::vector<std::string> around;
    for (const size_t d : batch_) around.push_back(Axis(out_, d));
    std::vector<std::string> inside;  // loops over the outputs of one tile
    for (size_t i = 0; i < 2; ++i) {
      HONE_ASSIGN_OR_RETURN(const SplitLoops tile, sketch_.Split(Axis(out_, plane_[i]), stages_.size, Tail::kMask));
      around.push_back(tile.outer);
      inside.push_back(tile.inner);
    }
    const int64_t width = WidthFor(conv_.filter.extent.max());
    HONE_ASSIGN_OR_RETURN(const SplitLoops filter,
                          sketch_.Split(Axis(out_, filter_), width, TailOf(conv_.filter.extent.max(), width)));
    std::vector<std::string> loops = around;
    loops.push_back(filter.outer);
    loops.insert(loops.end(), inside.begin(), inside.end());
    loops.push_back(filter.inner);
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Reorder{loops}));
    for (const std::string& loop : inside) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, ir::LoopKind::kUnrolled}));
    HONE_RETURN_IF_ERROR(Vectorize(filter.inner, width));
    HONE_ASSIGN_OR_RETURN(const std::string tiles, sketch_.FuseAll(around));
    if (block_tiles_ > 0) {
      HONE_ASSIGN_OR_RETURN(block_loop_, ShareChunks(tiles, block_tiles_));
    } else {
      HONE_RETURN_IF_ERROR(Share(tiles, "out_tiles"));
    }
    HONE_RETURN_IF_ERROR(Transform(stages_.outputs, filter.outer));
    return Transform(stages_.half_transformed_products, filter.outer);
  }

  absl::Status Products() {
    const std::string& products = stages_.products;
    HONE_ASSIGN_OR_RETURN(const std::string sums, sketch_.CacheWrite(products));
    if (block_tiles_ > 0) HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{products, block_loop_}));
    return ScheduleRegisterTile(sketch_, products, sums, prefix_);
  }

  absl::Status Input() {
    const std::string& v = stages_.transformed_patches;
    const std::string tile = Axis(v, 2);
    if (block_tiles_ > 0) HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{v, block_loop_}));
    const int64_t width = WidthFor(conv_.channel.extent.max());
    HONE_ASSIGN_OR_RETURN(const SplitLoops channel,
                          sketch_.Split(Axis(v, 3), width, TailOf(conv_.channel.extent.max(), width)));
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Reorder{{tile, channel.outer, Axis(v, 0), Axis(v, 1), channel.inner}}));
    for (size_t d = 0; d < 2; ++d) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{Axis(v, d), ir::LoopKind::kUnrolled}));
    HONE_RETURN_IF_ERROR(Vectorize(channel.inner, width));
    if (block_tiles_ == 0) HONE_RETURN_IF_ERROR(Share(tile, "in_tiles"));
    HONE_RETURN_IF_ERROR(Transform(stages_.half_transformed_patches, channel.outer));
    return Transform(stages_.patches, channel.outer);
  }

  // Computes the stage of one tile at loop `at`: the two middle axes are unrolled, the last is a vector.
  absl::Status Transform(const std::string& stage, const std::string& at) {
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{stage, at}));
    for (size_t d = 1; d < 3; ++d) {
      HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{Axis(stage, d), ir::LoopKind::kUnrolled}));
    }
    return Vectorize(Axis(stage, 3), sketch_.Get(stage).loops.back().max_extent);
  }

  absl::Status Vectorize(const std::string& loop, int64_t width) {
    if (width == 1) return absl::OkStatus();
    return sketch_.Do(Annotate{loop, ir::LoopKind::kVectorized});
  }

  // Chooses chunks of the loop over tiles for threads; nothing is done with one thread.
  absl::Status Share(const std::string& loop, const std::string& decision) {
    if (sketch_.target.threads == 1) return absl::OkStatus();
    const int64_t extent = sketch_.MaxExtent(loop);
    const int64_t chunks = 4 * sketch_.target.threads;
    const int64_t size =
        sketch_.chooser.Tile(prefix_ + decision, extent, extent, TaskSize(extent, chunks, sketch_.target.threads));
    return ShareChunks(loop, size).status();
  }

  // Splits the loop into chunks of `size` iterations, which threads share. Returns the loop over chunks.
  absl::StatusOr<std::string> ShareChunks(const std::string& loop, int64_t size) {
    // If the number of tiles is open, the last chunk is shorter.
    HONE_ASSIGN_OR_RETURN(const SplitLoops chunks,
                          sketch_.Split(loop, size, sketch_.IsOpen(loop) ? Tail::kPeel : Tail::kShift));
    if (sketch_.target.threads > 1) {
      HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{chunks.outer, ir::LoopKind::kParallel}));
    }
    return chunks.outer;
  }

  int64_t WidthFor(int64_t extent) const {
    return std::min<int64_t>(sketch_.target.VectorWidth(4), PowerOf2Ceil(extent));
  }

  Sketch& sketch_;
  const std::string out_, stage_, prefix_;
  const Convolution conv_;
  std::vector<size_t> batch_;  // positions of axes of the output
  size_t plane_[2], filter_;
  WinogradStages stages_;
  int64_t block_tiles_ = 0;  // 0: every stage runs over all tiles
  std::string block_loop_;
};

}  // namespace

bool WinogradPays(const schedule::State& state, const ir::Stage& stage, const target::Target& target) {
  const auto conv = FindWinograd(state, stage);
  if (!conv.has_value() || !ChannelsLast(stage, *conv)) return false;
  return Preferred(*conv, target).relative_cycles < 0.8;
}

absl::Status ScheduleWinogradTile(Sketch& sketch, const std::string& out, const std::string& stage,
                                  const std::string& prefix) {
  return WinogradTile(sketch, out, stage, prefix).Run();
}

}  // namespace hone::space
