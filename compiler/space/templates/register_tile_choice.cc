// SPDX-License-Identifier: Apache-2.0
// All decisions of a register tile. These functions do not change the scheduled state.
#include <algorithm>
#include <limits>
#include <numeric>

#include "base/status.h"
#include "compiler/schedule/fitted_tiles.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/elementwise.h"
#include "compiler/space/sketch/operands.h"
#include "compiler/space/templates/register_tile.h"
#include "compiler/space/templates/tensor_tile.h"

namespace hone::space {
namespace {

constexpr double kSerialFlopsMax = 100e3;  // with at most so many operations, threads cost more than they gain
constexpr int64_t kUnrolledOpsMax = 256;   // the most unrolled vector operations of one tile
constexpr int64_t kWindowStepsMax = 25;    // the most steps of a reduction that may be unrolled as a whole
constexpr int64_t kSmallWindowSteps = 9;   // the most steps of a reduction that is unrolled as a whole by default
constexpr int64_t kUnrolledAxisMax = 7;    // the most iterations of an innermost axis that is unrolled as a whole
constexpr int64_t kCopiesMax = 2;       // the most copies of padded data by blocks; beyond, one copy before is cheaper
constexpr double kUnevenMax = 1.2;      // the slowest thread's work, relative to an equal share
constexpr int64_t kBlockTilesMax = 16;  // the most tiles of a block with the rows outside, so that tasks stay short
constexpr int64_t kSumsBlockRowsMin = 7;  // the fewest tiles of a block that computes sums; less would repeat many sums
constexpr int64_t kPaddingNodesMax = 48;  // the most nodes of a padding expression that is computed where it is read
constexpr int64_t kTasksPerThread = 4;
constexpr double kExposedShare = 0.1;    // of reads from the second cache: the time that the arithmetic does not hide
constexpr double kCodeCopyCost = 0.002;  // of a tile's time: what one more copy of its code is worth
// The fewest rows, and columns, of a product that read an operand for a copy to be worth its time.
constexpr int64_t kCopiedRowsMin = 64, kCopiedColumnsMin = 128;
// The values of the decision "pad": padding is computed before all tiles, for each block of rows, or where it is read.
enum Place : int64_t { kBefore = 0, kInBlock = 1, kWhereRead = 2 };

// The facts for the choices. They describe the state before any step of the tile.
struct Problem {
  const schedule::State& state;
  const target::Target& target;
  Chooser& chooser;
  const RegisterTileRequest& request;
  ir::Stage out, reduction;
  ir::Ranges ranges;             // the ranges of the reduction stage's axes
  bool nested = false;           // the reader is computed inside a loop of another stage
  std::vector<int64_t> extents;  // extents of the reader's loops; if nested, of the part that one iteration computes
  int vector_axis = -1, row_axis = -1, plane_axis = -1;
  int64_t steps = 1;                      // steps of the whole reduction
  std::vector<std::string> reduce_order;  // axes of the reduction, outermost first
  std::vector<std::string> producers;     // stages that only the reduction reads, and that the tile must place
  bool packs = false;                     // whether some operand is packed

  int64_t Extent(int axis) const { return axis < 0 ? 1 : extents[static_cast<size_t>(axis)]; }
  // The extent, open or not. Inside a loop of another stage it is the most that one iteration computes.
  ir::Size SizeAlong(int axis) const {
    return nested || axis < 0 ? ir::Size(Extent(axis)) : out.axes[static_cast<size_t>(axis)].extent;
  }
  const std::string& ReducedName(int axis) const { return reduction.axes[static_cast<size_t>(axis)].name; }
  int64_t Batch() const {
    return ir::NumElements(*out.buffer) / (Extent(vector_axis) * Extent(row_axis) * Extent(plane_axis));
  }
  int64_t VectorWidth() const { return target.VectorWidth(std::max(4, ir::SizeOf(reduction.buffer->dtype))); }
  int64_t Choose(std::string_view name, std::vector<int64_t> options, int64_t preferred) const {
    return chooser.OneOf(request.prefix + std::string(name), std::move(options), preferred);
  }
  int64_t ChooseSize(std::string_view name, const ir::Size& extent, int64_t limit, int64_t preferred) const {
    return chooser.Tile(request.prefix + std::string(name), extent, limit, preferred);
  }
  int64_t HintedSize(int axis, int64_t otherwise) const {
    return axis < 0 ? otherwise : chooser.Hinted(ExtentsOf(out), static_cast<size_t>(axis), otherwise);
  }
};

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

int64_t StepsOf(const ir::Stage& reduction) {
  int64_t steps = 1;
  for (const ir::Axis& axis : reduction.reduce_axes) steps *= axis.extent.max();
  return steps;
}

// Whether the operand that is read as vectors does not vary along axis d. Another row then costs broadcasts, but no
// vector loads.
bool ReusesVectors(const ir::Stage& s, int vector, int d) {
  const ir::Ranges ranges = AxisRanges(s);
  return std::ranges::none_of(LoadsOf(s), [&](const ir::Load& load) {
    return StrideOf(load, s.axes[static_cast<size_t>(vector)].name, ranges) != 0 &&
           StrideOf(load, s.axes[static_cast<size_t>(d)].name, ranges) != 0;
  });
}

// Finds the vector axis, the row axis and the plane axis. Axes of one element are none of them.
void FindAxes(Problem* p) {
  const ir::Stage& s = p->reduction;
  std::vector<int> reusing, others;  // innermost first
  for (int d = static_cast<int>(s.axes.size()) - 1; d >= 0; --d) {
    if (s.axes[static_cast<size_t>(d)].extent == 1) continue;
    if (p->vector_axis < 0) {
      p->vector_axis = d;
    } else {
      (ReusesVectors(s, p->vector_axis, d) ? reusing : others).push_back(d);
    }
  }
  reusing.insert(reusing.end(), others.begin(), others.end());
  if (!reusing.empty()) p->row_axis = reusing[0];
  if (reusing.size() > 1) p->plane_axis = reusing[1];
}

// The axes of the reduction, outermost first; the steps of an instruction are innermost.
std::vector<std::string> OrderReduction(const Problem& p, const ir::Stage& reduction) {
  std::vector<std::string> order = ReductionOrder(reduction, p.ReducedName(p.vector_axis));
  if (!p.request.use.has_value()) return order;
  std::erase(order, p.request.use->k);
  order.push_back(p.request.use->k);
  return order;
}

// Whether the steps of the reduction read elements of the operand so far apart that a core's second cache cannot hold
// one element for each step, until the next tile reads their neighbours: multiples of a large power of two share the
// cache's sets. A copy in the order of the tiles is worth its time if several tiles read it.
bool StepsShareSets(const Problem& p, const ir::Load& load) {
  constexpr int64_t kWayBytes = 64 << 10;  // of the second caches of current cores
  if (p.reduction.reduce_axes.size() != 1 || schedule::IsFixed(p.state, load.buffer.get())) return false;
  const auto step = StrideOf(load, p.reduction.reduce_axes[0].name, p.ranges);
  if (!step.has_value() || *step <= 1) return false;
  const int64_t bytes = *step * ir::SizeOf(load.buffer->dtype);
  return p.steps > p.target.memory.l2_bytes / std::gcd(bytes, kWayBytes);
}

// Whether a contiguous operand is packed nevertheless.
bool GainsFromCopy(const Problem& p, const ir::Load& load) {
  return !p.nested && p.Extent(p.row_axis) >= kCopiedRowsMin && StepsShareSets(p, load);
}

// The operand that is broadcast, if it lies along the rows of a tile, as the first operand of A^T B does, and is
// packed.
std::optional<PackedCopy> FindPackedRows(const Problem& p, const ir::Stage& reduction, int64_t rows) {
  if (p.nested || p.row_axis < 0 || p.request.use.has_value()) return std::nullopt;
  const ir::Ranges ranges = AxisRanges(reduction);
  const std::string& row = p.ReducedName(p.row_axis);
  for (const ir::Load& load : LoadsOf(reduction)) {
    const bool broadcast = StrideOf(load, p.ReducedName(p.vector_axis), ranges) == 0;
    if (!broadcast || StrideOf(load, row, ranges) != 1 || !StepsShareSets(p, load)) continue;
    if (p.Extent(p.vector_axis) < kCopiedColumnsMin) continue;
    auto dims = PackedOrder(load, row, rows, p.reduce_order);
    if (!dims.empty()) return PackedCopy{load.buffer->name, std::move(dims), {}};
  }
  return std::nullopt;
}

// The operands to pack: those that vary along the vector axis and are constant or not contiguous along it, or whose
// steps share the sets of a cache. In the copies, the vectors of one step of the reduction are adjacent.
std::vector<PackedCopy> FindPacked(const Problem& p, const ir::Stage& reduction, int64_t columns) {
  const ir::Ranges ranges = AxisRanges(reduction);
  const std::string& vector = p.ReducedName(p.vector_axis);
  const std::optional<TensorUse>& use = p.request.use;
  std::vector<PackedCopy> copies;
  for (const ir::Load& load : LoadsOf(reduction)) {
    const auto stride = StrideOf(load, vector, ranges);
    const bool as_it_is =
        stride == 1 && !use.has_value() && !schedule::IsFixed(p.state, load.buffer.get()) && !GainsFromCopy(p, load);
    if (!stride.has_value() || *stride == 0 || as_it_is) continue;
    const std::string& source = load.buffer->name;
    auto dims = PackedOrder(load, vector, columns, p.reduce_order);
    if (use.has_value()) {
      // Every position of a tile has as many adjacent steps as an instruction takes.
      const int64_t together = ir::EntryOf(use->instruction).k;
      schedule::PackDim& k = dims[dims.size() - 2];
      k.factor = together;
      dims.push_back({k.dim, together, true});
    }
    const bool twice = std::ranges::find(copies, source, &PackedCopy::source) != copies.end();
    if (!dims.empty() && !twice) copies.push_back({source, std::move(dims), {}});
  }
  return copies;
}

// Whether padding may be computed where it is read: by a small window of vectors that is written out. Each vector then
// checks the borders once, mostly when code is generated, and nothing is copied.
bool CanPadWhereRead(const Problem& p) {
  if (p.request.use.has_value() || p.producers.empty() || p.steps > kWindowStepsMax) return false;
  return std::ranges::all_of(LoadsOf(p.reduction), [&](const ir::Load& load) {
    if (!Contains(p.producers, load.buffer->name)) return true;
    const ir::Expr& value = p.state.FindNest(load.buffer->name)->stage.value;
    const bool along_vectors = StrideOf(load, p.ReducedName(p.vector_axis), p.ranges) != 0;
    return along_vectors && !HasCall(value) && CountNodes(value) <= kPaddingNodesMax;
  });
}

// Whether padding where it is read is preferred. A larger window leaves too few rows for one tile's code. If the last
// vector runs over the axis, every load is masked anyway.
bool PadsWhereRead(const Problem& p) {
  return p.steps <= kSmallWindowSteps && p.Extent(p.vector_axis) % p.VectorWidth() == 0 && CanPadWhereRead(p);
}

Problem FindProblem(const schedule::State& state, const target::Target& target, Chooser& chooser,
                    const RegisterTileRequest& request) {
  const schedule::Nest& reader = *state.FindNest(request.reader);
  Problem p{state, target, chooser, request, reader.stage, state.FindNest(request.stage)->stage};
  p.ranges = AxisRanges(p.reduction);
  p.nested = !reader.IsTopLevel();
  for (const schedule::Loop& loop : reader.loops) p.extents.push_back(loop.max_extent);
  p.steps = StepsOf(p.reduction);
  FindAxes(&p);
  if (p.vector_axis < 0) return p;
  p.reduce_order = OrderReduction(p, p.reduction);
  p.packs = !FindPacked(p, p.reduction, 1).empty();
  if (request.places_producers) p.producers = OwnProducers(state, p.reduction);
  // Inside a loop of another stage, producers that cannot be computed where they are read are computed before it.
  if (p.nested && !CanPadWhereRead(p)) p.producers.clear();
  return p;
}

// The cycles of some tiles per step of the reduction, by the two resources that bound a register tile: multiply-add
// units (two vectors a cycle), and loads (two a cycle, or fewer beside the multiply-adds of the core).
double CostOfTiles(const target::Core& core, double tiles, int64_t rows, int64_t vectors) {
  const double fma = static_cast<double>(rows * vectors) / 2.0;
  const double loads = static_cast<double>(rows + vectors) / 2.0 * std::max(1.0, core.multiply_adds / core.loads);
  // The units wait if there are fewer accumulators than the latency of one addition.
  return tiles * std::max({fma, loads, core.latency}) + tiles * 0.5;
}

// The cost of the whole stage. Elements that tiles compute beyond the edge count, too.
double TileCost(const target::Core& core, int64_t row_extent, int64_t vector_extent, int64_t width, int64_t rows,
                int64_t vectors) {
  const double tiles =
      static_cast<double>(CeilDiv(row_extent, rows)) * static_cast<double>(CeilDiv(vector_extent, width * vectors));
  return CostOfTiles(core, tiles, rows, vectors);
}

// The mean cost for the numbers of rows in `extents`, relative to the number: the full tiles, and the short ones
// behind them. Few rows use a vector only a few times, so two more resources count here: each panel of vectors comes
// once from beyond the second cache, unless all panels stay there, and each tile reads its panel from the second cache
// if the first cannot hold it. See decision 0294.
double OpenTileCost(const Problem& p, const std::vector<int64_t>& extents, int64_t width, int64_t rows,
                    int64_t vectors) {
  const target::Core& core = p.target.core;
  const int64_t panels = CeilDiv(p.Extent(p.vector_axis), width * vectors);
  const int64_t step_bytes = width * vectors * ir::SizeOf(p.reduction.buffer->dtype);
  const int64_t panel_bytes = p.steps * step_bytes;
  const bool is_near = panel_bytes <= 3 * p.target.memory.l1_bytes / 4;
  const double again = is_near ? 0 : kExposedShare * static_cast<double>(step_bytes) / core.l2_bytes;
  const bool stays = panels * panel_bytes <= p.target.memory.l2_bytes / 2;
  const double first = static_cast<double>(step_bytes) / (stays ? core.l2_bytes : core.l3_bytes);
  double sum = 0;
  for (const int64_t extent : extents) {
    const schedule::FittedTiles tiles = schedule::TilesOf(extent, rows);
    const auto cost_of = [&](int64_t count, int64_t length) {
      const auto number = static_cast<double>(count);
      return count > 0 ? CostOfTiles(core, number, length, vectors) + number * again : 0;
    };
    const double cost = std::max(cost_of(tiles.full, rows) + cost_of(tiles.others, tiles.length), first);
    sum += static_cast<double>(panels) * cost / static_cast<double>(extent);
  }
  const double copies = kCodeCopyCost * static_cast<double>(schedule::ShortTileMax(rows));
  return sum / static_cast<double>(extents.size()) * (1 + copies);
}

// The most rows of a tile whose accumulators fit the registers, beside one register per vector of the packed operand
// and one for the broadcast.
int64_t RowLimit(int64_t registers, int64_t vectors) {
  return std::max<int64_t>(1, (registers - vectors - 1) / vectors);
}

// How many rows of the broadcast operand the first cache holds, beside a line of vectors, until the next steps read the
// same lines again. Rows whose distance is a multiple of a page share the cache's sets. If the cache is indexed within
// a page, as on x86, a set has as many lines as the cache has pages; some other cores have fewer.
int64_t RowsHeld(const Problem& p) {
  constexpr int64_t kPage = 4096;
  const int64_t lines = std::max<int64_t>(1, p.target.memory.l1_bytes / kPage - 1);
  int64_t held = std::numeric_limits<int64_t>::max();
  if (p.row_axis < 0) return held;
  for (const ir::Load& load : LoadsOf(p.reduction)) {
    const int64_t along_vector = StrideOf(load, p.ReducedName(p.vector_axis), p.ranges).value_or(1);
    const int64_t row = StrideOf(load, p.ReducedName(p.row_axis), p.ranges).value_or(0);
    const int64_t bytes = row * ir::SizeOf(load.buffer->dtype);
    if (along_vector == 0 && bytes > 0) held = std::min(held, lines * (kPage / std::gcd(bytes, kPage)));
  }
  return held;
}

// Whether threads gain more than they cost.
bool WorthThreads(const Problem& p) {
  const double flops = 2.0 * static_cast<double>(ir::NumElements(*p.out.buffer)) * static_cast<double>(p.steps);
  return !p.nested && flops > kSerialFlopsMax && p.target.threads > 1;
}

// The vectors of a tile, fewer than `vectors` if threads share the panels (PrefersRowsOutside) and there are too few
// tiles for them. Each thread gets at most one tile, since a narrow tile takes hardly less time than a wide one.
int64_t VectorsForThreads(const Problem& p, int64_t width, int64_t rows, int64_t vectors) {
  const int64_t threads = p.target.threads;
  const auto panels = [&](int64_t v) { return CeilDiv(p.Extent(p.vector_axis), v * width); };
  const int64_t others = CeilDiv(p.Extent(p.row_axis), rows) * p.Extent(p.plane_axis) * p.Batch();
  if (!WorthThreads(p) || panels(vectors) * others >= threads) return vectors;
  int64_t best = vectors;
  for (int64_t v = vectors - 1; v >= 1 && panels(v) * others <= threads; --v) {
    if (panels(v) > others) best = v;
  }
  return best;
}

// The number of planes in one tile that makes the whole cheapest, for rows so short that a tile has room for several
// planes.
int64_t PlanesToFill(const Problem& p, const RegisterTilePlan& plan, int64_t planes_max) {
  int64_t best = 1;
  const auto cost = [&](int64_t planes) {
    return TileCost(p.target.core, p.Extent(p.plane_axis) * plan.rows, p.Extent(p.vector_axis), plan.width,
                    planes * plan.rows, plan.vectors);
  };
  for (int64_t planes = 2; planes <= planes_max; ++planes) {
    if (cost(planes) < cost(best)) best = planes;
  }
  return best;
}

struct TileSize {
  int64_t vectors = 1, rows = 1;
};

TileSize CheapestTile(const Problem& p, int64_t width, int64_t vectors_max) {
  const int64_t registers = p.target.vector_registers;
  const int64_t vector_extent = p.Extent(p.vector_axis), row_extent = p.Extent(p.row_axis);
  // An unrolled window has code for all its steps in every row, which limits the rows.
  const int64_t tile_max = PadsWhereRead(p) ? kUnrolledOpsMax / p.steps / 2 : registers;
  const int64_t rows_max = std::min(row_extent, RowsHeld(p));
  const ir::Size rows = p.SizeAlong(p.row_axis);
  const std::vector<int64_t> extents = rows.IsFixed() ? std::vector<int64_t>() : TypicalExtents(rows);
  double least = 1e300;
  TileSize best;
  for (int64_t v = 1; v <= vectors_max; ++v) {
    for (int64_t r = 1; r <= std::min(rows_max, RowLimit(registers, v)); ++r) {
      if (r * v > tile_max) break;
      const double cost = rows.IsFixed() ? TileCost(p.target.core, row_extent, vector_extent, width, r, v)
                                         : OpenTileCost(p, extents, width, r, v);
      if (cost >= least) continue;
      least = cost;
      best = {v, r};
    }
  }
  best.vectors = VectorsForThreads(p, width, best.rows, best.vectors);
  return best;
}

void ChooseTile(const Problem& p, RegisterTilePlan* plan) {
  const int64_t width_max = p.request.use.has_value() ? ir::EntryOf(p.request.use->instruction).n : p.VectorWidth();
  const int64_t vector_extent = p.Extent(p.vector_axis), row_extent = p.Extent(p.row_axis);
  plan->width = std::min(width_max, PowerOf2Ceil(vector_extent));
  // Only a packed operand has padding for vectors beyond the edge.
  const int64_t beyond = p.packs ? plan->width - 1 : 0;
  const int64_t vectors_max = std::clamp<int64_t>((vector_extent + beyond) / plan->width, 1, 4);
  const TileSize cheapest = CheapestTile(p, plan->width, vectors_max);
  std::vector<int64_t> vector_options(static_cast<size_t>(vectors_max));
  std::iota(vector_options.begin(), vector_options.end(), 1);
  const int64_t vectors = p.HintedSize(p.vector_axis, cheapest.vectors * plan->width) / plan->width;
  const int64_t rows = p.HintedSize(p.row_axis, cheapest.rows);
  plan->vectors = p.Choose("vectors", vector_options, vectors);
  const int64_t limit = RowLimit(p.target.vector_registers, plan->vectors);
  plan->rows = p.ChooseSize("rows", p.SizeAlong(p.row_axis), limit, std::min(rows, limit));
  const int64_t planes_max = std::min(p.Extent(p.plane_axis), limit / plan->rows);
  if (planes_max > 1) {
    const int64_t planes = plan->rows == row_extent ? PlanesToFill(p, *plan, planes_max) : 1;
    plan->planes = p.ChooseSize("planes", p.SizeAlong(p.plane_axis), planes_max, p.HintedSize(p.plane_axis, planes));
  }
  plan->tail =
      p.packs ? schedule::Tail::kMask : TailOf(p.out.axes[static_cast<size_t>(p.vector_axis)].extent, plan->columns());
}

int64_t PanelsOf(const Problem& p, const RegisterTilePlan& plan) {
  return CeilDiv(p.Extent(p.vector_axis), plan.columns());
}

// The tiles along the outermost axis of rows.
int64_t OutermostTiles(const Problem& p, const RegisterTilePlan& plan) {
  return p.plane_axis < 0 ? CeilDiv(p.Extent(p.row_axis), plan.rows) : CeilDiv(p.Extent(p.plane_axis), plan.planes);
}

// The bytes of the operand that does not vary along the vectors.
int64_t BroadcastBytes(const Problem& p) {
  AxisExtents extents;
  for (const ir::Axis& axis : p.reduction.reduce_axes) extents[axis.name] = axis.extent.max();
  for (size_t d = 0; d < p.reduction.axes.size(); ++d) extents[p.reduction.axes[d].name] = p.extents[d];
  int64_t bytes = 0;
  for (const ir::Load& load : LoadsOf(p.reduction)) {
    const bool broadcast = StrideOf(load, p.ReducedName(p.vector_axis), p.ranges) == 0;
    if (broadcast) bytes += RegionBytes(load, p.ranges, extents);
  }
  return bytes;
}

// Whether the loops over rows go outside those over panels. Rows outside: each block of rows reads all vectors once, so
// the vectors must stay in a core's second cache. Panels outside: each panel reads all rows once. That is better if the
// vectors leave little room in the cache and the rows are fewer bytes, or if there are too few tiles of rows for the
// threads.
bool PrefersRowsOutside(const Problem& p, const RegisterTilePlan& plan) {
  const int64_t tiles = OutermostTiles(p, plan), all = tiles * p.Batch(), threads = p.target.threads;
  const auto slowest = static_cast<double>(BusiestThreadIterations(tiles, 1, p.Batch(), threads) * threads);
  if (kUnevenMax * static_cast<double>(all) < slowest && PanelsOf(p, plan) > all) return false;
  const int64_t vector_bytes = p.steps * p.Extent(p.vector_axis) * ir::SizeOf(p.reduction.buffer->dtype);
  const int64_t room = p.target.memory.l2_bytes;
  return vector_bytes <= room / 4 ||
         (vector_bytes <= room / 2 && (!p.producers.empty() || BroadcastBytes(p) >= vector_bytes));
}

// The block size near the preferred one with which the slowest thread has clearly less to do; else the preferred one.
int64_t BalancedBlock(const Problem& p, bool has_producers, int64_t extent, int64_t preferred) {
  const auto slowest = [&](int64_t size) {
    return static_cast<double>(BusiestThreadIterations(extent, size, p.Batch(), p.target.threads));
  };
  int64_t best = preferred;
  // Much smaller blocks would copy more of what producers compute.
  const int64_t least = has_producers ? CeilDiv(3 * preferred, 4) : preferred / 2;
  for (int64_t size = least; size <= std::min(2 * preferred, kBlockTilesMax); ++size) {
    if (size > 0 && kWorthwhileGainMin * slowest(size) < slowest(best)) best = size;
  }
  return best;
}

// The preferred number of tiles in a block: every thread should get a few blocks. With the panels outside, threads
// share the panels, too. A panel is then cut into blocks only if there are too few panels, because two threads that
// work on one panel both load it.
int64_t TilesOfBlock(const Problem& p, const RegisterTilePlan& plan, bool has_producers, int64_t extent) {
  const int64_t panels = plan.rows_outside ? 1 : PanelsOf(p, plan);
  const int64_t blocks = CeilDiv(kTasksPerThread * p.target.threads, panels);
  const int64_t tiles = std::max<int64_t>(1, CeilDiv(extent, blocks));
  return plan.rows_outside ? BalancedBlock(p, has_producers, extent, std::min(tiles, kBlockTilesMax)) : tiles;
}

// The bytes that a block reads from the producers, if it has `tiles` tiles along the outermost axis of rows.
int64_t CopiedBytes(const Problem& p, const RegisterTilePlan& plan, const std::vector<std::string>& producers,
                    int64_t tiles) {
  const ir::Stage& s = p.reduction;
  AxisExtents extents;  // extents of the parts of the axes inside a block
  for (const ir::Axis& axis : s.reduce_axes) extents[axis.name] = axis.extent.max();
  for (int d = 0; d < static_cast<int>(s.axes.size()); ++d) {
    int64_t extent = 1;
    if (d == p.vector_axis) extent = plan.rows_outside ? p.Extent(d) : plan.columns();
    if (d == p.row_axis) extent = p.plane_axis < 0 ? tiles * plan.rows : p.Extent(d);
    if (d == p.plane_axis) extent = tiles * plan.planes;
    extents[p.ReducedName(d)] = std::min(extent, p.Extent(d));
  }
  int64_t bytes = 0;
  for (const ir::Load& load : LoadsOf(s)) {
    if (Contains(producers, load.buffer->name)) bytes += RegionBytes(load, p.ranges, extents);
  }
  return bytes;
}

// Whether blocks would copy the producers' elements several times, and from beyond the second cache: neighbouring
// blocks share the rows, or the whole planes, in which their windows overlap.
bool CopiesTooOften(const Problem& p, const RegisterTilePlan& plan) {
  const int64_t tiles = OutermostTiles(p, plan);
  const int64_t size = TilesOfBlock(p, plan, !p.producers.empty(), tiles), blocks = CeilDiv(tiles, size) * p.Batch();
  int64_t whole = 0;
  for (const std::string& producer : p.producers) {
    whole += ir::NumBytes(*p.state.FindNest(producer)->stage.buffer);
  }
  return whole > p.target.memory.l2_bytes && CopiedBytes(p, plan, p.producers, size) * blocks > kCopiesMax * whole;
}

void ChooseOrder(const Problem& p, RegisterTilePlan* plan) {
  // In a nested panel, windows share the rows of a block, which are in a near cache.
  const bool outside = PrefersRowsOutside(p, *plan) && !(p.request.places_producers && p.nested);
  plan->rows_outside = p.Choose("order", {0, 1}, outside ? 1 : 0) == 1;
}

// Whether an instruction takes more steps than the reduction has. It then reads beyond the end, and only a copy of
// everything is padded for it.
bool PadsSteps(const Problem& p) {
  const std::optional<TensorUse>& use = p.request.use;
  if (!use.has_value()) return false;
  return std::ranges::find(p.reduction.reduce_axes, use->k, &ir::Axis::name)->extent.min() <
         ir::EntryOf(use->instruction).k;
}

// Chooses where padding is computed. A panel of packed vectors reads all rows, so a block copies them only once if the
// rows are outside. If the vectors are not packed, they are the padded data, and each block copies its own.
Place ChoosePlace(const Problem& p, const RegisterTilePlan& plan) {
  if (p.producers.empty() || PadsSteps(p)) return kBefore;
  std::vector<int64_t> places;
  if (!p.nested) places = {kBefore, kInBlock};
  if (CanPadWhereRead(p)) places.push_back(kWhereRead);
  const bool where_read = p.nested || PadsWhereRead(p);
  const bool in_block = (plan.rows_outside || !p.packs) && !CopiesTooOften(p, plan);
  return static_cast<Place>(p.Choose("pad", places, where_read ? kWhereRead : in_block ? kInBlock : kBefore));
}

// The steps that `rule` applies to the sketch.
template <typename Rule>
absl::StatusOr<schedule::Schedule> StepsOf(Sketch& sketch, const Rule& rule) {
  const auto first = static_cast<std::ptrdiff_t>(sketch.steps.size());
  HONE_RETURN_IF_ERROR(rule(sketch));
  return schedule::Schedule(sketch.steps.begin() + first, sketch.steps.end());
}

// Chooses the packed copies; the trial must have the inlined producers. A producer that a packed copy reads is removed
// from the tile's producers.
absl::Status ChoosePacking(const Problem& p, Sketch& trial, RegisterTilePlan* plan,
                           std::vector<std::string>* producers) {
  if (p.packs) plan->packed = FindPacked(p, trial.Get(plan->stage).stage, plan->columns());
  const auto packed_rows = FindPackedRows(p, trial.Get(plan->stage).stage, plan->rows);
  if (packed_rows.has_value()) plan->packed.push_back(*packed_rows);
  for (PackedCopy& copy : plan->packed) {
    HONE_ASSIGN_OR_RETURN(const std::string packed, trial.Pack(copy.source, plan->stage, copy.dims));
    if (!trial.Get(packed).prepared) {
      const auto schedule = [&](Sketch& sketch) { return ScheduleElementwise(sketch, packed); };
      HONE_ASSIGN_OR_RETURN(copy.steps, StepsOf(trial, schedule));
    }
    std::erase(*producers, copy.source);
  }
  return absl::OkStatus();
}

// Chooses the size of blocks along the outermost axis of rows. Threads take blocks, and padding is computed per block.
// Returns `place`, or kBefore if a block in which padding is computed would be too large.
Place ChooseBlock(const Problem& p, const std::vector<std::string>& producers, Place place, RegisterTilePlan* plan) {
  if (p.row_axis < 0) return place;
  const int64_t extent = OutermostTiles(p, *plan), threads = p.target.threads;
  int64_t preferred = TilesOfBlock(p, *plan, !producers.empty(), extent);
  const bool makes_sums =
      std::ranges::any_of(producers, [&](const std::string& name) { return !SumsBehind(p.state, name).empty(); });
  if (makes_sums) preferred = std::max(preferred, std::min(kSumsBlockRowsMin, CeilDiv(extent, threads)));
  if (place == kInBlock) {
    const auto fits = [&](int64_t tiles) {
      return CopiedBytes(p, *plan, producers, tiles) <= CopiedBytesMax(p.target);
    };
    while (preferred > 1 && !fits(preferred)) --preferred;
    // Rows that are only converted are read by a few panels, soon after they were written: from the first cache, if
    // they fit. Windows would convert more rows twice.
    const auto only_converted = [&](const std::string& name) { return IsWidening(p.state.FindNest(name)->stage); };
    const auto is_near = [&](int64_t tiles) {
      return CopiedBytes(p, *plan, producers, tiles) <= p.target.memory.l1_bytes / 2;
    };
    if (!HasWindow(p.reduction) && std::ranges::all_of(producers, only_converted)) {
      while (preferred > 1 && !is_near(preferred)) --preferred;
    }
    if (!fits(preferred)) place = kBefore;
  }
  const bool rows_only = p.plane_axis < 0;
  const ir::Size tiles =
      CeilDiv(p.SizeAlong(rows_only ? p.row_axis : p.plane_axis), rows_only ? plan->rows : plan->planes);
  plan->block = p.ChooseSize("block", tiles, extent, preferred);
  return place;
}

absl::Status ScheduleTile(Sketch& sketch, const RegisterTileRequest& request) {
  HONE_ASSIGN_OR_RETURN(const std::optional<RegisterTilePlan> plan,
                        ChooseRegisterTile(sketch.state, sketch.target, sketch.chooser, request));
  return plan.has_value() ? Apply(*plan, sketch) : absl::OkStatus();
}

// Chooses how producers are computed; the trial must have the loops of the output, which tell how much of a producer a
// block computes.
absl::Status ChooseProducers(const std::vector<std::string>& producers, Place place, const OutputLoops& loops,
                             Sketch& trial, RegisterTilePlan* plan) {
  for (const std::string& producer : producers) {
    const std::string sums = SumsBehind(trial.state, producer);
    // Sums are too expensive to be computed again for every panel.
    const bool in_block = place == kInBlock && !loops.block.empty() && (sums.empty() || plan->rows_outside);
    if (in_block) HONE_RETURN_IF_ERROR(trial.Do(schedule::ComputeAt{producer, loops.block}));
    const auto schedule = [&](Sketch& sketch) {
      if (!sums.empty()) return ScheduleTile(sketch, {producer, sums, sums + "."});
      return in_block ? VectorizeCopy(sketch, producer) : ScheduleElementwise(sketch, producer);
    };
    HONE_ASSIGN_OR_RETURN(schedule::Schedule steps, StepsOf(trial, schedule));
    plan->producers.push_back({producer, in_block, std::move(steps)});
  }
  return absl::OkStatus();
}

void ChoosePart(const Problem& p, std::vector<int64_t> factors, int64_t preferred, RegisterTilePlan* plan) {
  plan->unrolled = p.Choose("unroll", std::move(factors), preferred);
  if (plan->unrolled > 1) plan->unrolling = Unrolling::kPart;
}

// Chooses how many iterations of the innermost axis are unrolled with an instruction, whose steps are split off that
// axis.
void ChooseInstructionUnrolling(const Problem& p, int64_t extent, RegisterTilePlan* plan) {
  const int64_t together = ir::EntryOf(p.request.use->instruction).k;
  plan->splits_steps = extent > together;
  if (!plan->splits_steps) return;
  const int64_t iterations = CeilDiv(extent, together);
  std::vector<int64_t> factors = {1};
  for (const int64_t u : {2, 4}) {
    if (iterations % u == 0 && iterations > u) factors.push_back(u);
  }
  ChoosePart(p, std::move(factors), 1, plan);
}

// Chooses the unrolling of the reduction: a small window or a short innermost axis as a whole, else a few iterations of
// the innermost axis.
void ChooseUnrolling(const Problem& p, Place place, RegisterTilePlan* plan) {
  if (plan->reduce_order.empty()) return;
  const ir::Size& size = std::ranges::find(p.reduction.reduce_axes, plan->reduce_order.back(), &ir::Axis::name)->extent;
  const int64_t extent = size.max();
  if (p.request.use.has_value()) return ChooseInstructionUnrolling(p, extent, plan);
  const int64_t limit = std::max<int64_t>(1, kUnrolledOpsMax / (plan->rows * plan->planes * plan->vectors));
  if (place == kWhereRead && p.steps <= limit) {
    plan->unrolling = Unrolling::kWhole;
  } else if (extent <= kUnrolledAxisMax) {
    const bool whole = extent <= limit && p.Choose("unroll_window", {0, 1}, 1) == 1;
    if (whole) plan->unrolling = Unrolling::kInnermost;
  } else {
    std::vector<int64_t> factors = {1};
    for (const int64_t u : {2, 4, 8}) {
      if (Divides(u, size) && u <= limit) factors.push_back(u);
    }
    const int64_t preferred = factors.back();
    ChoosePart(p, std::move(factors), preferred, plan);
  }
}

bool IsLegal(const schedule::Step& step, schedule::State state) { return schedule::Apply(step, state).ok(); }

// Chooses whether rows and planes that are only padding are skipped. The tile may have only one plane, and the step
// must be legal.
void ChooseSkipping(const Problem& p, const Sketch& trial, RegisterTilePlan* plan) {
  const bool may = !plan->producers.empty() && !p.request.use.has_value() && plan->planes == 1;
  if (!may || !IsLegal(schedule::SkipPadding{plan->stage}, trial.state)) return;
  plan->skips_padding = p.Choose("skip", {0, 1}, 1) == 1;
}

// Chooses a prefetch of packed vectors that do not fit a core's second cache. While a thread computes a panel, it
// fetches the vectors of its next panel, a share with each step of each tile of rows. A thread takes panels in order.
void ChoosePrefetch(const Problem& p, const OutputLoops& loops, const Sketch& trial, RegisterTilePlan* plan) {
  if (!p.packs) return;
  // Vectors that are used only once are bound by bandwidth, so a prefetch does not help.
  const bool reused = ir::NumElements(*p.out.buffer) / p.Extent(p.vector_axis) > plan->rows * plan->planes;
  const int64_t room = p.target.memory.l2_bytes;
  for (const ir::Load& load : LoadsOf(trial.Get(plan->stage).stage)) {
    const int64_t bytes = ir::NumBytes(*load.buffer);
    if (bytes < room / 4 || !schedule::IsFixed(trial.state, load.buffer.get())) continue;
    if (!IsLegal(schedule::Prefetch{load.buffer->name, plan->stage, loops.panel, 1}, trial.state)) continue;
    // If a block of rows goes through all panels, the cache may hold them all for the next block.
    const bool preferred = reused && bytes >= (plan->rows_outside || p.nested ? room : room / 2);
    if (p.Choose("prefetch", {0, 1}, preferred ? 1 : 0) == 1) plan->prefetched = load.buffer->name;
    return;
  }
}

}  // namespace

absl::StatusOr<std::optional<RegisterTilePlan>> ChooseRegisterTile(const schedule::State& state,
                                                                   const target::Target& target, Chooser& chooser,
                                                                   const RegisterTileRequest& request) {
  const Problem p = FindProblem(state, target, chooser, request);
  if (p.vector_axis < 0) return std::nullopt;
  RegisterTilePlan plan{request.reader, request.stage, request.use, p.nested, p.vector_axis, p.row_axis, p.plane_axis};
  ChooseTile(p, &plan);
  ChooseOrder(p, &plan);
  Place place = ChoosePlace(p, plan);
  std::vector<std::string> producers = p.producers;
  if (place == kWhereRead) plan.inlined = std::exchange(producers, {});
  // Later decisions depend on the effects of earlier ones: copies have decisions of their own, and some steps may be
  // illegal. The trial, a copy of the state, shows these effects.
  Sketch trial{state, target, chooser, {}};
  for (const std::string& producer : plan.inlined) HONE_RETURN_IF_ERROR(trial.Do(schedule::Inline{producer}));
  HONE_RETURN_IF_ERROR(ChoosePacking(p, trial, &plan, &producers));
  place = ChooseBlock(p, producers, place, &plan);
  if (!p.nested) plan.parallel = p.Choose("parallel", {0, 1}, WorthThreads(p) ? 1 : 0) == 1;
  HONE_ASSIGN_OR_RETURN(const OutputLoops loops, ApplyOutput(plan, trial));
  HONE_RETURN_IF_ERROR(ChooseProducers(producers, place, loops, trial, &plan));
  plan.reduce_order = OrderReduction(p, trial.Get(plan.stage).stage);
  ChooseUnrolling(p, place, &plan);
  HONE_RETURN_IF_ERROR(ApplyReduction(plan, trial));
  ChooseSkipping(p, trial, &plan);
  if (plan.skips_padding) HONE_RETURN_IF_ERROR(trial.Do(schedule::SkipPadding{plan.stage}));
  ChoosePrefetch(p, loops, trial, &plan);
  return plan;
}

}  // namespace hone::space
