// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/sketch/tile_shape.h"

#include <algorithm>
#include <numeric>

#include "compiler/space/sketch/analysis.h"

namespace hone::space {
namespace {

constexpr int64_t kTileVectorsMax = 4;
constexpr double kTileCycles = 0.5;  // loop overhead of a tile per step of the reduction, in cycles
constexpr double kOverlap = 0.25;    // the share of hidden work that still costs time
constexpr int kPasses = 3;           // how often Improve revisits each axis
constexpr int64_t kPrefetchedRowsMax =
    32;  // rows of memory that a core prefetches at a time; more of them take twice as long
constexpr double kUnrolledWindowOpsMax = 64;  // the most unrolled vector operations of windows that share their loads

// The divisor of axis // c or axis % c; 0 for anything else.
int64_t DivisorOf(const ir::Expr& atom, const std::string& axis) {
  const ir::Binary* binary = atom.As<ir::Binary>();
  if (binary == nullptr || (binary->op != ir::BinaryOp::kFloorDiv && binary->op != ir::BinaryOp::kFloorMod)) return 0;
  const ir::Var* v = binary->a.As<ir::Var>();
  const ir::IntImm* divisor = binary->b.As<ir::IntImm>();
  return v != nullptr && v->name == axis && divisor != nullptr ? divisor->value : 0;
}

// The stride as of StrideOf while the axis stays between two multiples of every divisor in the indices. *grain becomes
// the greatest common divisor of itself and these divisors.
std::optional<int64_t> StrideWithin(const ir::Load& load, const ir::Axis& axis, const ir::Ranges& ranges,
                                    int64_t* grain) {
  int64_t stride = 1, total = 0;
  for (size_t d = load.indices.size(); d-- > 0;) {
    for (const auto& [atom, k] : ir::ToLinear(load.indices[d], ranges).terms) {
      if (!ir::UsesVar(atom, axis.name)) continue;
      if (atom.As<ir::Var>() != nullptr) {
        total += k * stride;
        continue;
      }
      const int64_t divisor = DivisorOf(atom, axis.name);
      if (divisor <= 0 || !Divides(divisor, axis.extent)) return std::nullopt;
      *grain = std::gcd(*grain, divisor);
      if (atom.As<ir::Binary>()->op == ir::BinaryOp::kFloorMod) total += k * stride;
    }
    stride *= load.buffer->shape[d].max();
  }
  return total;
}

// The window that the load slides along the axis: an index that sums the axis and a reduced axis. Length 1: none.
Window WindowOf(const ir::Stage& stage, const ir::Load& load, const ir::Axis& axis, const ir::Ranges& ranges) {
  for (const ir::Expr& index : load.indices) {
    int64_t stride = 0, step = 0, length = 1;
    for (const auto& [atom, k] : ir::ToLinear(index, ranges).terms) {
      const ir::Var* v = atom.As<ir::Var>();
      if (v == nullptr) return {};
      if (v->name == axis.name) stride = k;
      const auto reduced = std::ranges::find(stage.reduce_axes, v->name, &ir::Axis::name);
      if (reduced == stage.reduce_axes.end()) continue;
      step = k;
      length = reduced->extent.max();
    }
    if (stride > 0 && step > 0 && stride % step == 0) return {stride / step, length};
  }
  return {};
}

}  // namespace

bool SharesRows(const ir::Stage& stage) {
  int64_t steps = 1;
  for (const ir::Axis& axis : stage.reduce_axes) steps *= axis.extent.max();
  if (stage.axes.empty() || steps > kUnrolledWindowStepsMax) return false;
  const auto slides = [&](const ir::Axis& axis) {
    return std::ranges::any_of(LoadsOf(stage), [&](const ir::Load& load) {
      return WindowOf(stage, load, axis, AxisRanges(stage)).length > 1;
    });
  };
  return slides(stage.axes.back()) && std::ranges::count_if(stage.axes, slides) > 1;
}

int64_t InnerTile::rows() const {
  int64_t rows = 1;
  for (size_t d = 0; d < sizes.size(); ++d) rows *= static_cast<int>(d) == vector ? 1 : sizes[d];
  return rows;
}

TileModel::TileModel(const ir::Stage& stage, const target::Target& target, std::set<const ir::BufferNode*> packed)
    : stage_(stage), target_(target), grains_(stage.axes.size(), 0) {
  const ir::Ranges ranges = AxisRanges(stage);
  for (const ir::Load& load : LoadsOf(stage)) {
    Moves moves{.packed = packed.contains(load.buffer.get())};
    for (size_t d = 0; d < stage.axes.size(); ++d) {
      moves.strides.push_back(StrideOf(load, stage.axes[d].name, ranges));
      moves.within.push_back(StrideWithin(load, stage.axes[d], ranges, &grains_[d]));
      moves.windows.push_back(WindowOf(stage, load, stage.axes[d], ranges));
    }
    loads_.push_back(std::move(moves));
  }
  for (const ir::Axis& axis : stage.reduce_axes) reduce_steps_ *= static_cast<double>(axis.extent.max());
  for (size_t d = 0; d < stage.axes.size(); ++d) {
    if (stage.axes[d].extent.max() > 1) last_ = static_cast<int>(d);
  }
}

// The length of the longest window along all axes but the last, in steps of the reduction.
int64_t TileModel::WindowLengthMax() const {
  int64_t longest = 1;
  for (const Moves& moves : loads_) {
    for (size_t d = 0; d < moves.windows.size(); ++d) {
      if (static_cast<int>(d) != last_) longest = std::max(longest, moves.windows[d].length);
    }
  }
  return longest;
}

int64_t TileModel::WindowRows(int64_t vectors) const {
  const bool shared = std::ranges::any_of(loads_, [&](const Moves& moves) {
    return std::ranges::any_of(moves.windows, [](const Window& w) { return w.stride < w.length; });
  });
  if (reduce_steps_ > kUnrolledWindowStepsMax) return RowLimit(vectors);
  if (!shared) return std::min(RowLimit(vectors), std::max<int64_t>(1, kPrefetchedRowsMax / WindowLengthMax()));
  const double rows = kUnrolledWindowOpsMax / (reduce_steps_ * static_cast<double>(vectors));
  return std::clamp<int64_t>(static_cast<int64_t>(rows), 1, RowLimit(vectors));
}

std::optional<int64_t> TileModel::Stride(const Moves& moves, size_t axis, int64_t size) const {
  const int64_t grain = grains_[axis];
  return grain > 0 && grain % size == 0 ? moves.within[axis] : moves.strides[axis];
}

bool TileModel::IsContiguous(int axis) const {
  return std::all_of(loads_.begin(), loads_.end(), [&](const Moves& moves) {
    const auto stride = moves.within[static_cast<size_t>(axis)];
    return stride.has_value() && (moves.packed || (*stride >= 0 && *stride <= 1));
  });
}

int64_t TileModel::VectorsMax(int vector, int64_t width) const {
  const bool packed = std::any_of(loads_.begin(), loads_.end(), [](const Moves& m) { return m.packed; });
  const int64_t extent = stage_.axes[static_cast<size_t>(vector)].extent.max();
  // Only a packed operand has padding for vectors beyond the edge.
  return std::clamp<int64_t>((extent + (packed ? width - 1 : 0)) / width, 1, kTileVectorsMax);
}

// The registers of a tile: its accumulators, one for each vector of an operand, and one for the broadcast operand.
int64_t TileModel::RowLimit(int64_t vectors) const {
  return std::max<int64_t>(1, (target_.vector_registers - vectors - 1) / vectors);
}

double TileModel::Loads(const Moves& moves, const InnerTile& tile) const {
  double count = 1;
  for (size_t d = 0; d < tile.sizes.size(); ++d) {
    const auto stride = Stride(moves, d, tile.sizes[d]);
    if (stride == 0) continue;  // the load is the same all along the axis
    const bool vectors = static_cast<int>(d) == tile.vector && (moves.packed || stride == 1);
    const Window& w = moves.windows[d];
    if (static_cast<int>(d) != tile.vector && reduce_steps_ <= kUnrolledWindowStepsMax && w.length > 1) {
      // The windows are unrolled, so elements that several of them share are loaded once.
      const int64_t distinct = (tile.sizes[d] - 1) * std::min(w.stride, w.length) + w.length;
      count *= static_cast<double>(distinct) / static_cast<double>(w.length);
      continue;
    }
    count *= static_cast<double>(vectors ? tile.vectors() : tile.sizes[d]);
  }
  return count;
}

double TileModel::Cycles(const InnerTile& tile) const {
  double tiles = 1;
  for (size_t d = 0; d < tile.sizes.size(); ++d) {
    tiles *= static_cast<double>((stage_.axes[d].extent.max() + tile.sizes[d] - 1) / tile.sizes[d]);
  }
  const double vectors = static_cast<double>(tile.rows() * tile.vectors());
  const bool scattered = tile.vector != last_ && tile.vector < static_cast<int>(stage_.axes.size());
  double moved = vectors * static_cast<double>(scattered ? tile.width : 1) / reduce_steps_;  // stores of the result
  for (const Moves& moves : loads_) moved += Loads(moves, tile);
  const target::Core& core = target_.core;
  const double arithmetic = vectors / core.multiply_adds, moves = moved / core.loads;
  // With fewer accumulators than core.latency needs, the arithmetic units wait. The faster of arithmetic and loads runs
  // beside the slower one, but a share of it still costs time.
  const double worst = std::max({arithmetic, moves, core.latency});
  return tiles * (worst + kOverlap * std::min(arithmetic, moves) + kTileCycles);
}

// Gives each axis in turn the size with the fewest cycles while the other sizes stay.
void TileModel::Improve(InnerTile& tile) const {
  double best = Cycles(tile);
  const int64_t limit = WindowRows(tile.vectors());
  for (int pass = 0; pass < kPasses; ++pass) {
    for (size_t d = tile.sizes.size(); d-- > 0;) {
      // Axes inside the vector axis are not tiled: they would tear the vectors apart.
      if (static_cast<int>(d) == tile.vector || (static_cast<int>(d) > tile.vector)) continue;
      const int64_t most = std::min(stage_.axes[d].extent.max(), limit * tile.sizes[d] / tile.rows());
      InnerTile other = tile;
      for (other.sizes[d] = 1; other.sizes[d] <= most; ++other.sizes[d]) {
        const double cycles = Cycles(other);
        if (cycles >= best) continue;
        best = cycles;
        tile.sizes[d] = other.sizes[d];
      }
    }
  }
}

InnerTile TileModel::Cheapest(int vector) const {
  const size_t axis = static_cast<size_t>(vector);
  const int64_t most = std::min<int64_t>(target_.VectorWidth(std::max(4, ir::SizeOf(stage_.buffer->dtype))),
                                         PowerOf2Ceil(stage_.axes[axis].extent.max()));
  std::set<int64_t> widths = {most};
  if (grains_[axis] > 0) widths.insert(std::gcd(grains_[axis], most));
  InnerTile best;
  for (const int64_t width : widths) {
    for (int64_t v = 1; v <= VectorsMax(vector, width); ++v) {
      InnerTile tile{vector, width, std::vector<int64_t>(stage_.axes.size(), 1)};
      tile.sizes[axis] = width * v;
      Improve(tile);
      if (best.vector < 0 || Cycles(tile) < Cycles(best)) best = std::move(tile);
    }
  }
  return best;
}

}  // namespace hone::space
