// SPDX-License-Identifier: Apache-2.0
// The innermost tile of a reduction, chosen by how its loads move along each axis. Knows no operator. Private to
// space/sketch.
#ifndef HONE_COMPILER_SPACE_SKETCH_TILE_SHAPE_H_
#define HONE_COMPILER_SPACE_SKETCH_TILE_SHAPE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "compiler/ir/simplify.h"
#include "compiler/ir/workload.h"
#include "compiler/target/target.h"

namespace hone::space {

inline constexpr int64_t kUnrolledWindowStepsMax = 25;  // the most steps of a reduction that is unrolled as a whole

// Whether the stage is a reduction of few steps, with windows along its last axis and another one. Tiles of several
// rows then load elements that their windows share only once.
bool SharesRows(const ir::Stage& stage);

// The numbers of elements along every axis of a stage that are accumulated in registers at a time.
struct InnerTile {
  int vector = -1;             // the axis that lies along vectors
  int64_t width = 1;           // elements of one vector
  std::vector<int64_t> sizes;  // elements by axis; whole vectors along the vector axis

  int64_t vectors() const { return sizes[static_cast<size_t>(vector)] / width; }
  int64_t rows() const;  // the product of the sizes of all other axes
};

// Windows along an axis: the distance between neighbours, and their length, in steps of the reduction. Length 1: there
// is no window.
struct Window {
  int64_t stride = 1, length = 1;
};

class TileModel {
 public:
  // packed: buffers that will be packed, so that their vectors lie side by side. The arguments must outlive the model.
  TileModel(const ir::Stage& stage, const target::Target& target, std::set<const ir::BufferNode*> packed = {});

  // Whether vectors along the axis can be loaded as vectors: neighbours along it are neighbours in memory, or the same.
  bool IsContiguous(int axis) const;
  // The tile with the fewest cycles.
  InnerTile Cheapest(int vector) const;
  // The cycles of the whole stage for one step of the reduction.
  double Cycles(const InnerTile& tile) const;
  // The most vectors along the axis that are worth trying.
  int64_t VectorsMax(int vector, int64_t width) const;
  // The most rows of so many vectors that stay in registers.
  int64_t RowLimit(int64_t vectors) const;

 private:
  struct Moves {
    std::vector<std::optional<int64_t>> strides;  // by axis, over its whole extent; nullopt: not affine
    std::vector<std::optional<int64_t>> within;   // by axis, inside one grain; nullopt: not affine
    std::vector<Window> windows;                  // by axis
    bool packed = false;
  };

  int64_t WindowLengthMax() const;
  // The most rows of a tile of so many vectors. If windows share elements, the rows are few enough to be unrolled. If
  // they share nothing, the rows are few enough for the core to prefetch.
  int64_t WindowRows(int64_t vectors) const;
  std::optional<int64_t> Stride(const Moves& moves, size_t axis, int64_t size) const;
  double Loads(const Moves& moves, const InnerTile& tile) const;
  void Improve(InnerTile& tile) const;

  const ir::Stage& stage_;
  const target::Target& target_;
  std::vector<Moves> loads_;
  // Per axis: the number of consecutive elements with the same quotient, for an axis that occurs as a quotient in an
  // index, such as the channels of groups. A tile whose size divides it stays within one group. 0: there is no such
  // index.
  std::vector<int64_t> grains_;
  double reduce_steps_ = 1;
  int last_ = -1;  // the last axis longer than 1: the result lies along it
};

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_TILE_SHAPE_H_
