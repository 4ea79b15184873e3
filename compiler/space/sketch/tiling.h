// SPDX-License-Identifier: Apache-2.0
// Multi-level tiling of any reduction by the target's tile string, as S S R S R S.
//
// Every S splits all axes of the result, every R all axes of the reduction. The loops of the first S are tasks for
// threads. The loops before the first R belong to the reader, and the reduction is computed inside them. The last S is
// the tile that stays in registers, with vectors along the axis that makes the loads cheapest. A second R splits the
// reduction into blocks with partial sums of their own. The results are then a block in the cache, to which every block
// of the reduction adds its sums tile by tile. Nothing here knows an operator. Source: Zheng et al., "Ansor", OSDI
// 2020, section 4.
//
// Start with ScheduleTiles in tiling.cc, which calls the parts in order. They hand on a Tiling.
#ifndef HONE_COMPILER_SPACE_SKETCH_TILING_H_
#define HONE_COMPILER_SPACE_SKETCH_TILING_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/tile_shape.h"

namespace hone::space {

// Schedules the reduction `stage`, which `reader` reads in place, in tiles by the target's tile string. `prefix` begins
// the names of the decisions.
absl::Status ScheduleTiles(Sketch& sketch, const std::string& reader, const std::string& stage,
                           const std::string& prefix);
// tile_choice.cc: whether the stage is a product whose results fill less than half a vector, and for which the tile
// model finds vectors of partial results cheaper than vectors of results.
bool PrefersPartialResults(const schedule::State& state, const ir::Stage& stage, const target::Target& target);
// tile_choice.cc: for a product with so short results, whichever vectors are cheaper: packs constants (before the
// kernel runs) that vectors of partial results would read across the last axis of the reduction. Any other stage stays
// as it is.
absl::Status LayAlongReduction(Sketch& sketch, const std::string& stage);

struct Tiling {
  Tiling(Sketch& sketch, std::string reader, std::string stage, std::string prefix);

  // The places where producers that only the reduction reads, such as padding, are computed. Records contain the
  // values.
  enum Place : int64_t { kAtTopLevel = 0, kAtTask = 1, kInlined = 2 };
  // A loop over an axis of the reader.
  struct AxisLoop {
    size_t axis;
    std::string name;
  };

  const ir::Stage& StageOf(const std::string& name) const { return sketch.Get(name).stage; }
  size_t rank() const { return out.axes.size(); }
  int64_t Extent(size_t axis) const { return out.axes[axis].extent.max(); }
  // Whether vectors lie along the axis of partial results that was split off the reduction for them.
  bool along_reduction() const { return tile.vector == static_cast<int>(rank()); }
  bool IsVector(size_t axis) const { return static_cast<int>(axis) == tile.vector; }
  int64_t TileSize(size_t axis) const { return tile.sizes[axis]; }
  int64_t Choose(const std::string& name, std::vector<int64_t> options, int64_t preferred) {
    return sketch.chooser.OneOf(prefix + name, std::move(options), preferred);
  }
  // Whether threads gain more time than they cost.
  bool WorthThreads() const;
  // The size of one task, in tiles by axis. Only after the levels are chosen.
  std::vector<int64_t> Block() const;
  // The bytes that are read and written, relative to the size of the last-level cache. Above 1 they come from memory.
  double CachesFilled() const;
  // The bytes that the stage `sums` reads for a block of the given number of tiles by axis. only: count these buffers;
  // null: all buffers.
  int64_t TaskBytes(const std::vector<int64_t>& block, const std::vector<std::string>* only = nullptr) const;

  Sketch& sketch;
  const std::string reader, stage;
  std::string sums;  // the stage whose innermost loops are the tile: the reduction, or partial results of it
  const std::string prefix;
  int64_t steps = 1;  // the steps of the whole reduction
  const ir::Stage out;
  const std::string_view letters;  // the tile string
  const size_t levels;             // how many S
  const size_t first_reduction;    // how many S before the first R
  InnerTile tile;
  std::set<const ir::BufferNode*> packed;      // operands that lie in the order of the tiles
  std::vector<std::vector<int64_t>> sizes;     // [level][axis], without the innermost level
  std::vector<std::vector<AxisLoop>> loops;    // [level]: of the reader, without the innermost level
  bool blocked = false;                        // blocks of the reduction have sums of their own
  std::vector<std::string> producers, copies;  // padding and the like; operands copied as they are
  int64_t place = kAtTopLevel;                 // where the producers are computed
};

// tile_choice.cc: chooses the axis along vectors and the tile that stays in registers; may split the reduction for it.
// False if there is nothing to tile: every axis has one element, and the reduction cannot have partial results.
absl::StatusOr<bool> ChooseTile(Tiling& t);
// tile_choice.cc: chooses how many elements of each axis one iteration of a level's loop covers. They are multiples of
// the tile's.
void ChooseLevels(Tiling& t);

// tile_operands.cc: chooses where producers are computed (before, for a task or in place), packs operands in the order
// of the tiles, and copies others for each task, so that their elements are contiguous.
absl::Status PlaceProducers(Tiling& t);
absl::Status PackOperands(Tiling& t);
absl::Status CopyOperands(Tiling& t);
// Schedules the producers and copies. The reader must have its loops.
absl::Status ComputeProducers(Tiling& t);

// tile_loops.cc: splits the reduction into blocks with sums of their own, if there is a second R and that is chosen.
absl::Status SplitReduction(Tiling& t);
// tile_loops.cc: splits the loops of the reader down to the tile, and shares them among threads.
absl::Status TileReader(Tiling& t);
// tile_loops.cc: computes the reduction in these loops. TileSums makes the innermost R and S, around and in the tile.
absl::Status ComputeSums(Tiling& t);
absl::Status TileSums(Tiling& t);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_TILING_H_
