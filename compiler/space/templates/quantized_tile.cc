// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/templates/quantized_tile.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/space/sketch/analysis.h"

namespace hone::space {
namespace {

constexpr int64_t kVectorsMax = 4;  // vectors of a panel; their bytes of 4-bit weights fill one cache line
constexpr int64_t kRegistersForWidePanels = 32;
constexpr int64_t kStepsUnrolledMax = 8;   // steps of the sum that are unrolled; those of one byte share its load
constexpr double kSerialFlopsMax = 100e3;  // with at most so many operations, threads cost more than they gain

// The weights of a product and their blocks.
struct Quantized {
  std::string weights;  // the stage that computes them
  std::string k;        // the axis of the reduction
  int64_t block = 0;    // steps of k that share a scale
};

// Notes the divisors of `k` in `e`. Returns false if `k` is used in another way than k / number.
bool UsesOnlyQuotients(const ir::Expr& e, const std::string& k, std::vector<int64_t>* divisors) {
  const ir::Var* var = e.As<ir::Var>();
  if (var != nullptr && var->name == k) return false;
  const ir::Binary* binary = e.As<ir::Binary>();
  if (binary != nullptr && binary->op == ir::BinaryOp::kFloorDiv) {
    const ir::Var* divided = binary->a.As<ir::Var>();
    const ir::IntImm* by = binary->b.As<ir::IntImm>();
    if (divided != nullptr && divided->name == k && by != nullptr) {
      divisors->push_back(by->value);
      return true;
    }
  }
  bool only = true;
  ir::MapChildren(e, [&](const ir::Expr& child) {
    only = UsesOnlyQuotients(child, k, divisors) && only;
    return child;
  });
  return only;
}

// The block of the factor of a weight that is the same for a whole block, its scale: 0 if there is no such factor.
int64_t BlockOf(const ir::Stage& weights, const std::string& k, int64_t steps) {
  const ir::Binary* product = weights.value.As<ir::Binary>();
  if (product == nullptr || product->op != ir::BinaryOp::kMul) return 0;
  for (const ir::Expr& factor : {product->a, product->b}) {
    std::vector<int64_t> divisors;
    if (!UsesOnlyQuotients(factor, k, &divisors)) continue;
    if (divisors.empty()) return steps;
    const bool same = std::ranges::all_of(divisors, [&](int64_t divisor) { return divisor == divisors[0]; });
    if (same) return std::min(divisors[0], steps);
  }
  return 0;
}

// The variable's position among the load's indices; nullopt if an index uses it in another way, -1 if none uses it.
std::optional<int> DimOf(const ir::Load& load, const std::string& var) {
  int found = -1;
  for (size_t d = 0; d < load.indices.size(); ++d) {
    if (!ir::UsesVar(load.indices[d], var)) continue;
    if (load.indices[d].As<ir::Var>() == nullptr || found >= 0) return std::nullopt;
    found = static_cast<int>(d);
  }
  return found;
}

// Whether the stage computes weights [n, k] from constants, some of them bytes, that can be packed along n.
bool ComputesWeights(const schedule::State& state, const schedule::Nest& nest) {
  const ir::Stage& s = nest.stage;
  if (s.reduction != ir::Reduction::kNone || nest.prepared || nest.has_loop_steps || s.axes.size() != 2) return false;
  if (state.IsOutput(s.buffer.get()) || Readers(state, s.buffer.get()).size() != 1) return false;
  bool has_bytes = false;
  for (const ir::Load& load : LoadsOf(s)) {
    if (!schedule::IsFixed(state, load.buffer.get()) || !DimOf(load, s.axes[0].name).has_value()) return false;
    has_bytes =
        has_bytes || (load.buffer->dtype == ir::DType::kUInt8 && ir::UsesVar(load.indices.back(), s.axes[1].name));
  }
  return has_bytes;
}

bool IsVar(const ir::Expr& e, const std::string& name) {
  const ir::Var* var = e.As<ir::Var>();
  return var != nullptr && var->name == name;
}

std::optional<Quantized> FindQuantized(const schedule::State& state, const ir::Stage& s) {
  if (!IsContraction(s) || s.buffer->dtype != ir::DType::kFloat32 || s.reduce_axes.size() != 1 || s.axes.empty()) {
    return std::nullopt;
  }
  const ir::Axis &column = s.axes.back(), &k = s.reduce_axes[0];
  if (!column.extent.IsFixed() || !k.extent.IsFixed() || column.extent.value() < 2) return std::nullopt;
  std::optional<Quantized> found;
  for (const ir::Load& load : LoadsOf(s)) {
    const schedule::Nest* nest = state.FindNest(load.buffer.get());
    const bool weights =
        load.indices.size() == 2 && IsVar(load.indices[0], column.name) && IsVar(load.indices[1], k.name);
    if (!weights || nest == nullptr || !ComputesWeights(state, *nest)) {
      if (DimOf(load, column.name) != -1) return std::nullopt;
      continue;
    }
    const ir::Axis& own = nest->stage.axes[1];
    const int64_t block = BlockOf(nest->stage, own.name, k.extent.value());
    if (block > 0) found = Quantized{load.buffer->name, k.name, block};
  }
  return found;
}

// Positions among the axes, and the sizes of a tile.
struct Tile {
  size_t column = 0;  // vectors lie along this axis, the last
  int row = -1;       // -1: every other axis has one element
  int64_t width = 1;  // elements of a vector
  int64_t vectors = 1, rows = 1;
  int64_t unrolled = 1;  // steps of the sum
  bool parallel = false;

  int64_t columns() const { return width * vectors; }
};

class QuantizedTile {
 public:
  QuantizedTile(Sketch& sketch, std::string reader, std::string stage, std::string prefix)
      : sketch_(sketch), reader_(std::move(reader)), stage_(std::move(stage)), prefix_(std::move(prefix)) {}

  absl::Status Run() {
    const Quantized found = *FindQuantized(sketch_.state, sketch_.Get(stage_).stage);
    ChooseTile(found);
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Inline{found.weights}));
    HONE_ASSIGN_OR_RETURN(const Partials blocks, sketch_.Rfactor({stage_, found.k, found.block, false, true}));
    HONE_ASSIGN_OR_RETURN(sums_, sketch_.FactorOut(blocks.stage));
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Inline{blocks.stage}));
    HONE_RETURN_IF_ERROR(PackConstants(sums_));
    HONE_RETURN_IF_ERROR(PackConstants(stage_));
    HONE_ASSIGN_OR_RETURN(const std::string tile, TileOutput());
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{stage_, tile}));
    HONE_RETURN_IF_ERROR(ScheduleSum(stage_, blocks.axis, 1, 0));
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{sums_, blocks.axis}));
    return ScheduleSum(sums_, sketch_.Get(sums_).stage.reduce_axes[0].name, tile_.unrolled, 1);
  }

 private:
  int64_t Choose(std::string_view name, std::vector<int64_t> options, int64_t preferred) const {
    return sketch_.chooser.OneOf(prefix_ + std::string(name), std::move(options), preferred);
  }

  void ChooseTile(const Quantized& found) {
    const ir::Stage& out = sketch_.Get(reader_).stage;
    const target::Target& target = sketch_.target;
    tile_.column = out.axes.size() - 1;
    for (size_t d = 0; d < tile_.column; ++d) {
      if (out.axes[d].extent != 1) tile_.row = static_cast<int>(d);
    }
    const int64_t columns = out.axes.back().extent.value();
    const int64_t rows = tile_.row < 0 ? 1 : out.axes[static_cast<size_t>(tile_.row)].extent.max();
    const int64_t steps = sketch_.Get(stage_).stage.reduce_axes[0].extent.value();
    const double flops = 2.0 * static_cast<double>(ir::NumElements(*out.buffer)) * static_cast<double>(steps);
    const bool threads = target.threads > 1 && flops > kSerialFlopsMax;
    tile_.width = std::min<int64_t>(target.VectorWidth(4), PowerOf2Ceil(columns));
    // With few registers, a narrow panel leaves some for several rows.
    const bool narrow = rows > 1 && target.vector_registers < kRegistersForWidePanels;
    const int64_t vectors_max = std::clamp<int64_t>(columns / tile_.width, 1, narrow ? kVectorsMax / 2 : kVectorsMax);
    // The accumulators of one block share the registers with zero points and the bytes of a step.
    const auto rows_max = [&](int64_t vectors) {
      return std::max<int64_t>(1, std::min(rows, (target.vector_registers - 2 * vectors) / vectors));
    };
    int64_t preferred = vectors_max;
    while (threads && preferred > 1 && (preferred - 1) * tile_.width * target.threads >= columns) --preferred;
    std::vector<int64_t> options;
    for (int64_t v = 1; v <= vectors_max; ++v) options.push_back(v);
    tile_.vectors = Choose("vectors", options, preferred);
    const int64_t limit = rows_max(tile_.vectors);
    tile_.rows = sketch_.chooser.Tile(prefix_ + "rows", rows, limit, limit);
    std::vector<int64_t> unrolled;
    for (int64_t u = 1; u <= kStepsUnrolledMax; u *= 2) {
      if (found.block % u == 0) unrolled.push_back(u);
    }
    tile_.unrolled = Choose("unroll", unrolled, unrolled.back());
    tile_.parallel = Choose("parallel", {0, 1}, threads ? 1 : 0) == 1;
  }

  // Packs the constants that the stage reads along its last axis, panel by panel.
  absl::Status PackConstants(const std::string& stage) {
    const ir::Stage s = sketch_.Get(stage).stage;
    std::vector<std::string> packed;
    for (const ir::Load& load : LoadsOf(s)) {
      const int column = DimOf(load, s.axes.back().name).value_or(-1);
      const std::string& source = load.buffer->name;
      const bool fixed = schedule::IsFixed(sketch_.state, load.buffer.get());
      if (column < 0 || !fixed || std::ranges::find(packed, source) != packed.end()) continue;
      packed.push_back(source);
      std::vector<schedule::PackDim> dims = {{column, tile_.columns(), false}};
      for (int d = 0; d < static_cast<int>(load.indices.size()); ++d) {
        if (d != column) dims.push_back({d});
      }
      dims.push_back({column, tile_.columns(), true});
      HONE_RETURN_IF_ERROR(sketch_.Pack(source, stage, std::move(dims)).status());
    }
    return absl::OkStatus();
  }

  // Splits the reader into tiles. Threads share the panels; the tiles of a panel follow one another, so that later ones
  // find its weights in a cache. Returns the loop over the tiles.
  absl::StatusOr<std::string> TileOutput() {
    const std::vector<ir::Axis> axes = sketch_.Get(reader_).stage.axes;
    HONE_ASSIGN_OR_RETURN(const SplitLoops panel,
                          sketch_.Split(axes[tile_.column].name, tile_.columns(), schedule::Tail::kMask));
    HONE_ASSIGN_OR_RETURN(const SplitLoops vectors, sketch_.Split(panel.inner, tile_.width, schedule::Tail::kMask));
    std::vector<std::string> tiles = {panel.outer}, unrolled;
    for (size_t d = 0; d < tile_.column; ++d) {
      if (static_cast<int>(d) != tile_.row) {
        tiles.push_back(axes[d].name);
        continue;
      }
      HONE_ASSIGN_OR_RETURN(const SplitLoops rows, sketch_.SplitFitted(axes[d].name, tile_.rows));
      tiles.push_back(rows.outer);
      unrolled.push_back(rows.inner);
    }
    unrolled.push_back(vectors.outer);
    schedule::Reorder order{tiles};
    order.loops.insert(order.loops.end(), unrolled.begin(), unrolled.end());
    order.loops.push_back(vectors.inner);
    HONE_RETURN_IF_ERROR(sketch_.Do(order));
    HONE_RETURN_IF_ERROR(Unroll(unrolled, vectors.inner));
    if (tile_.parallel) HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Annotate{panel.outer, ir::LoopKind::kParallel}));
    return tiles.back();
  }

  // Orders the loops of a sum over `axis`, `unrolled` of whose steps are unrolled: the sum around the tile. The stage
  // has `added` axes before those of the output.
  absl::Status ScheduleSum(const std::string& stage, const std::string& axis, int64_t unrolled, size_t added) {
    const std::vector<ir::Axis> axes = sketch_.Get(stage).stage.axes;
    HONE_ASSIGN_OR_RETURN(const SplitLoops vectors,
                          sketch_.Split(axes.back().name, tile_.width, schedule::Tail::kMask));
    schedule::Reorder order;
    std::vector<std::string> inner;
    if (unrolled > 1) {
      HONE_ASSIGN_OR_RETURN(const SplitLoops steps, sketch_.Split(axis, unrolled, schedule::Tail::kMask));
      order.loops = {steps.outer, steps.inner};
      inner.push_back(steps.inner);
    } else {
      order.loops = {axis};
    }
    for (size_t d = 0; d + 1 < axes.size(); ++d) {
      order.loops.push_back(axes[d].name);
      if (static_cast<int>(d) == tile_.row + static_cast<int>(added) && tile_.row >= 0) inner.push_back(axes[d].name);
    }
    order.loops.insert(order.loops.end(), {vectors.outer, vectors.inner});
    inner.push_back(vectors.outer);
    HONE_RETURN_IF_ERROR(sketch_.Do(order));
    return Unroll(inner, vectors.inner);
  }

  absl::Status Unroll(const std::vector<std::string>& loops, const std::string& vector) {
    for (const std::string& loop : loops) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Annotate{loop, ir::LoopKind::kUnrolled}));
    }
    if (tile_.width == 1) return absl::OkStatus();
    return sketch_.Do(schedule::Annotate{vector, ir::LoopKind::kVectorized});
  }

  Sketch& sketch_;
  const std::string reader_, stage_, prefix_;
  std::string sums_;  // the stage of the sums over single blocks
  Tile tile_;
};

}  // namespace

bool FitsQuantizedTile(const schedule::State& state, const ir::Stage& stage) {
  return FindQuantized(state, stage).has_value();
}

absl::Status ScheduleQuantizedTile(Sketch& sketch, const std::string& reader, const std::string& stage,
                                   const std::string& prefix) {
  return QuantizedTile(sketch, reader, stage, prefix).Run();
}

}  // namespace hone::space
