// SPDX-License-Identifier: Apache-2.0
// The template of matrix multiplies and convolutions: a register tile as the innermost loops.
//
// One axis (the last of the output) lies along vectors, one or two others are rows; a tile of rows x vectors is
// accumulated in registers over the whole reduction, and the element-wise work of the reader happens on the tile before
// the only store. The operand that varies along the vector axis is read as vectors, the other is broadcast from memory.
// Rows are an axis along which the vectors stay the same: the pixels of a channels-last convolution, whose vectors are
// weights, the output channels of a channels-first one, whose vectors are pixels. Vectors that do not lie side by side
// in memory, and constant ones, are packed to the tile order. What is summed over may itself be made by a depthwise
// convolution: each block of rows then has tiles of that before its own. Source: Goto, van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008; tile choice as in oneDNN's brgemm.
#include <algorithm>
#include <limits>
#include <numeric>

#include "base/status.h"
#include "compiler/space/sketch.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Split;
using schedule::Tail;

constexpr double kSerialFlops = 100e3;
constexpr int64_t kMostUnrolled = 256;     // vector operations of one tile's code
constexpr int64_t kMostWindow = 25;        // steps of a reduction that may be written out whole
constexpr int64_t kSmallWindow = 9;        // steps of one that is, where the default decides
constexpr int64_t kMostCopies = 2;         // of what is padded, so that it stays near; beyond, one copy for all is less
constexpr double kMostUneven = 1.2;        // what the slowest thread does, times what it would if all did the same
constexpr int64_t kMostTilesOfBlock = 16;  // with the rows outside, so that tasks are not too long
constexpr int64_t kFewestRowsOfSums = 7;  // in a block that makes them: it shares what windows read with its neighbours
constexpr int64_t kMostPaddingNodes = 48;  // of an expression that is computed wherever it is read
// Where padding is done: before, for each block of rows, or where it is read.
constexpr int64_t kAtRoot = 0, kInBlock = 1, kInPlace = 2;

// The axes of the output by their part in the tile; -1 if there is none.
struct Roles {
  int vector = -1, row = -1, plane = -1;
};

// Whether what is loaded as vectors is the same all along axis d: a row more then costs broadcasts, but no vectors.
bool ReusesVectors(const ir::Stage& s, int vector, int d) {
  const ir::Ranges ranges = AxisRanges(s);
  for (const ir::Load& load : LoadsOf(s)) {
    const bool along_vector = StrideOf(load, s.axes[static_cast<size_t>(vector)].name, ranges) != 0;
    if (along_vector && StrideOf(load, s.axes[static_cast<size_t>(d)].name, ranges) != 0) return false;
  }
  return true;
}

// s: the reduction, whose axes are those of the output, perhaps under other names.
Roles RolesOf(const ir::Stage& s) {
  Roles roles;
  std::vector<int> reusing, others;  // innermost first
  for (int d = static_cast<int>(s.axes.size()) - 1; d >= 0; --d) {
    if (s.axes[static_cast<size_t>(d)].extent == 1) continue;
    if (roles.vector < 0) {
      roles.vector = d;
    } else {
      (ReusesVectors(s, roles.vector, d) ? reusing : others).push_back(d);
    }
  }
  reusing.insert(reusing.end(), others.begin(), others.end());
  if (!reusing.empty()) roles.row = reusing[0];
  if (reusing.size() > 1) roles.plane = reusing[1];
  return roles;
}

struct Tile {
  int64_t width = 1, vectors = 1, rows = 1, planes = 1;
  int64_t columns() const { return width * vectors; }
};

// Cycles for the whole stage per element of the reduction, by the two resources that bound a register tile:
// multiply-add units (two vectors a cycle) and loads (two a cycle, or fewer beside the multiply-adds that the core
// has); what tiles compute beyond the edge counts too.
double TileCost(const target::Core& core, int64_t row_extent, int64_t vector_extent, int64_t width, int64_t rows,
                int64_t vectors) {
  const double tiles = static_cast<double>((row_extent + rows - 1) / rows) *
                       static_cast<double>((vector_extent + width * vectors - 1) / (width * vectors));
  const double fma = static_cast<double>(rows * vectors) / 2.0;
  const double loads = static_cast<double>(rows + vectors) / 2.0 * std::max(1.0, core.multiply_adds / core.loads);
  // Fewer accumulators than the latency's worth leave the units waiting.
  return tiles * std::max({fma, loads, core.latency}) + tiles * 0.5;
}

class RegisterTile {
 public:
  RegisterTile(Sketch& sketch, std::string reader, std::string stage, const std::string& prefix,
               const std::optional<TensorUse>& use, bool places)
      : sketch_(sketch),
        reader_(std::move(reader)),
        stage_(std::move(stage)),
        prefix_(prefix),
        out_(sketch.Get(reader_).stage),
        nested_(!sketch.Get(reader_).AtRoot()),
        places_(places),
        roles_(RolesOf(sketch.Get(stage_).stage)),
        use_(use) {
    for (const schedule::Loop& loop : sketch.Get(reader_).loops) extents_.push_back(loop.max_extent);
  }

  absl::Status Run() {
    if (roles_.vector < 0) return absl::OkStatus();
    OrderReduction();
    packs_ = !PackedOperands().empty();
    if (places_) producers_ = OwnProducers(sketch_.state, reduction());
    // Inside another stage's loop, what cannot be done where it is read is done before all of it.
    if (nested_ && !MayPadInPlace()) producers_.clear();
    ChooseTile();
    HONE_RETURN_IF_ERROR(PlacePadding());
    if (packs_) HONE_RETURN_IF_ERROR(PackOperands());
    HONE_RETURN_IF_ERROR(TileOutput());
    HONE_RETURN_IF_ERROR(PlaceProducers());
    HONE_RETURN_IF_ERROR(TileReduction());
    HONE_RETURN_IF_ERROR(SkipPadding());
    return PrefetchPanels();
  }

 private:
  const ir::Stage& reduction() const { return sketch_.Get(stage_).stage; }
  int64_t Extent(int axis) const { return axis < 0 ? 1 : extents_[static_cast<size_t>(axis)]; }
  int64_t Choose(std::string_view name, std::vector<int64_t> options, int64_t preferred) {
    return sketch_.chooser.OneOf(prefix_ + std::string(name), std::move(options), preferred);
  }

  int64_t HintedSize(int axis, int64_t otherwise) const {
    return axis < 0 ? otherwise : sketch_.chooser.Hinted(ExtentsOf(out_), static_cast<size_t>(axis), otherwise);
  }

  void ChooseTile() {
    const int64_t most_elements = use_.has_value()
                                      ? ir::EntryOf(use_->instruction).n
                                      : sketch_.target.VectorWidth(std::max(4, ir::SizeOf(reduction().buffer->dtype)));
    const int64_t registers = sketch_.target.vector_registers;
    const int64_t vector_extent = Extent(roles_.vector), row_extent = Extent(roles_.row);
    tile_.width = std::min(most_elements, PowerOfTwo(vector_extent));
    // Only a packed operand has padding for vectors beyond the edge.
    const int64_t beyond = packs_ ? tile_.width - 1 : 0;
    const int64_t most_vectors = std::clamp<int64_t>((vector_extent + beyond) / tile_.width, 1, 4);
    // What is written out whole has as many steps for every row.
    const int64_t most_tile = PadsInPlace() ? kMostUnrolled / Steps() / 2 : registers;
    const int64_t most_rows = std::min(row_extent, RowsHeld());
    double best = 1e300;
    int64_t best_vectors = 1, best_rows = 1;
    for (int64_t v = 1; v <= most_vectors; ++v) {
      for (int64_t r = 1; r <= std::min(most_rows, RowLimit(registers, v)); ++r) {
        if (r * v > most_tile) break;
        const double cost = TileCost(sketch_.target.core, row_extent, vector_extent, tile_.width, r, v);
        if (cost < best) {
          best = cost;
          best_vectors = v;
          best_rows = r;
        }
      }
    }
    best_vectors = VectorsForThreads(best_rows, best_vectors);
    std::vector<int64_t> vector_options;
    for (int64_t v = 1; v <= most_vectors; ++v) vector_options.push_back(v);
    best_vectors = HintedSize(roles_.vector, best_vectors * tile_.width) / tile_.width;
    best_rows = HintedSize(roles_.row, best_rows);
    tile_.vectors = Choose("vectors", vector_options, best_vectors);
    const int64_t limit = RowLimit(registers, tile_.vectors);
    tile_.rows = sketch_.chooser.Tile(prefix_ + "rows", row_extent, limit, std::min(best_rows, limit));
    const int64_t most_planes = std::min(Extent(roles_.plane), limit / tile_.rows);
    const bool whole_row = tile_.rows == row_extent;
    tile_.planes = most_planes <= 1
                       ? 1
                       : sketch_.chooser.Tile(prefix_ + "planes", Extent(roles_.plane), most_planes,
                                              HintedSize(roles_.plane, whole_row ? PlanesToFill(most_planes) : 1));
  }

  // Registers give way to threads, where these share out panels (PrefersRowsOutside): one tile for each of them at
  // most, since a narrow tile takes hardly less time than a wide one.
  int64_t VectorsForThreads(int64_t rows, int64_t vectors) const {
    const int64_t threads = sketch_.target.threads;
    if (!WorthThreads() || TilesOf(rows, vectors) >= threads) return vectors;
    const auto panels = [&](int64_t v) { return (Extent(roles_.vector) + v * tile_.width - 1) / (v * tile_.width); };
    const int64_t others = TilesOf(rows, vectors) / panels(vectors);
    int64_t best = vectors;
    for (int64_t v = vectors - 1; v >= 1 && panels(v) * others <= threads; --v) {
      if (panels(v) > others) best = v;
    }
    return best;
  }

  // Whether threads gain more than they cost.
  bool WorthThreads() const {
    const double flops = 2.0 * static_cast<double>(ir::NumElements(*out_.buffer)) * static_cast<double>(Steps());
    return !nested_ && flops > kSerialFlops && sketch_.target.threads > 1;
  }

  // How many tiles there are, of so many rows of one plane and so many vectors.
  int64_t TilesOf(int64_t rows, int64_t vectors) const {
    const int64_t columns = vectors * tile_.width;
    return (Extent(roles_.vector) + columns - 1) / columns * ((Extent(roles_.row) + rows - 1) / rows) *
           Extent(roles_.plane) * Batch();
  }

  // How many rows of what is broadcast the first cache holds at once, beside a line of vectors. Rows whose distance is
  // a multiple of a page share its sets. Where the cache is indexed within a page, as on x86, a set has as many lines
  // as the cache has pages; it has fewer on some other cores. Each line is read again in the next steps, so it must
  // stay.
  int64_t RowsHeld() const {
    constexpr int64_t kPage = 4096;
    const ir::Stage& s = reduction();
    const ir::Ranges ranges = AxisRanges(s);
    const int64_t lines = std::max<int64_t>(1, sketch_.target.memory.l1_bytes / kPage - 1);
    int64_t held = std::numeric_limits<int64_t>::max();
    if (roles_.row < 0) return held;
    for (const ir::Load& load : LoadsOf(s)) {
      const int64_t along_vector = StrideOf(load, s.axes[static_cast<size_t>(roles_.vector)].name, ranges).value_or(1);
      const int64_t row = StrideOf(load, s.axes[static_cast<size_t>(roles_.row)].name, ranges).value_or(0);
      const int64_t bytes = row * ir::SizeOf(load.buffer->dtype);
      if (along_vector == 0 && bytes > 0) held = std::min(held, lines * (kPage / std::gcd(bytes, kPage)));
    }
    return held;
  }

  // Accumulators, one register per vector of the packed operand and one for the broadcast.
  static int64_t RowLimit(int64_t registers, int64_t vectors) {
    return std::max<int64_t>(1, (registers - vectors - 1) / vectors);
  }
  // Rows so short that several fit one tile: as many as make the whole cheapest.
  int64_t PlanesToFill(int64_t most) const {
    int64_t best = 1;
    const auto cost = [&](int64_t planes) {
      return TileCost(sketch_.target.core, Extent(roles_.plane) * tile_.rows, Extent(roles_.vector), tile_.width,
                      planes * tile_.rows, tile_.vectors);
    };
    for (int64_t planes = 2; planes <= most; ++planes) {
      if (cost(planes) < cost(best)) best = planes;
    }
    return best;
  }

  // Stages that only this reduction reads and that have arithmetic or conditions (padding): inside, per block, or
  // before.
  absl::Status PlacePadding() {
    // Nested, windows of one panel share the rows of a block, which are near by then.
    const bool outside = PrefersRowsOutside() && !(places_ && nested_);
    rows_outside_ = Choose("order", {0, 1}, outside ? 1 : 0) == 1;
    // A panel of packed vectors reads all rows: only outside of it are they copied once. Vectors that are not packed
    // are what is copied, so that each block copies its own.
    if (producers_.empty() || PadsSteps()) return absl::OkStatus();
    std::vector<int64_t> places;
    if (!nested_) places = {kAtRoot, kInBlock};
    if (MayPadInPlace()) places.push_back(kInPlace);
    const bool in_place = nested_ || PadsInPlace(), in_block = (rows_outside_ || !packs_) && !CopiesTooOften();
    producer_place_ = Choose("pad", places, in_place ? kInPlace : in_block ? kInBlock : kAtRoot);
    if (producer_place_ != kInPlace) return absl::OkStatus();
    for (const std::string& producer : std::exchange(producers_, {})) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Inline{producer}));
    }
    return absl::OkStatus();
  }

  // Whether blocks, each of which copies what producers make, copy it several times from beyond the second cache:
  // neighbours share rows, and all of a window's planes.
  bool CopiesTooOften() const {
    const int64_t tiles = OutermostTiles();
    const int64_t size = TilesOfBlock(tiles), blocks = (tiles + size - 1) / size * Batch();
    int64_t whole = 0;
    for (const std::string& producer : producers_) whole += ir::NumBytes(*sketch_.Get(producer).stage.buffer);
    return whole > sketch_.target.memory.l2_bytes && CopiedBytes(size) * blocks > kMostCopies * whole;
  }

  // A small window of vectors that is written out: what padding asks is then asked of each vector once, mostly when the
  // code is made, and nothing is copied.
  bool MayPadInPlace() const {
    if (use_.has_value() || producers_.empty() || Steps() > kMostWindow) return false;
    const ir::Stage& s = reduction();
    const std::string& vector = s.axes[static_cast<size_t>(roles_.vector)].name;
    return std::ranges::all_of(LoadsOf(s), [&](const ir::Load& load) {
      if (std::ranges::find(producers_, load.buffer->name) == producers_.end()) return true;
      const ir::Expr& value = sketch_.Get(load.buffer->name).stage.value;
      const bool along_vectors = StrideOf(load, vector, AxisRanges(s)) != 0;
      return along_vectors && !HasCall(value) && CountNodes(value) <= kMostPaddingNodes;
    });
  }

  // By default: a larger window leaves too few rows for one tile's code, and where vectors run over their axis every
  // load has a mask of its own already.
  bool PadsInPlace() const {
    const int64_t width = sketch_.target.VectorWidth(std::max(4, ir::SizeOf(reduction().buffer->dtype)));
    return Steps() <= kSmallWindow && Extent(roles_.vector) % width == 0 && MayPadInPlace();
  }

  int64_t Steps() const {
    int64_t steps = 1;
    for (const ir::Axis& axis : reduction().reduce_axes) steps *= axis.extent;
    return steps;
  }

  // An instruction reads beyond the end of so short a reduction: only a whole copy is padded for it.
  bool PadsSteps() const {
    if (!use_.has_value()) return false;
    return std::ranges::find(reduction().reduce_axes, use_->k, &ir::Axis::name)->extent <
           ir::EntryOf(use_->instruction).k;
  }

  // Rows outside: the packed operand is read once per block of rows; vectors outside: the rows are read once per panel.
  // Where threads share out the rows, each reads all vectors, so that they must stay in its second cache; where they do
  // not leave much room there, threads rather read all rows, if these are less; and where there are too few tiles of
  // rows to share out.
  bool PrefersRowsOutside() const {
    const int64_t tiles = OutermostTiles(), all = tiles * Batch(), threads = sketch_.target.threads;
    const int64_t panels = (Extent(roles_.vector) + tile_.columns() - 1) / tile_.columns();
    if (kMostUneven * static_cast<double>(all) <
            static_cast<double>(MostOfAThread(tiles, 1, Batch(), threads) * threads) &&
        panels > all) {
      return false;
    }
    const int64_t vectors = VectorBytes(), room = sketch_.target.memory.l2_bytes;
    return vectors <= room / 4 || (vectors <= room / 2 && (!producers_.empty() || BroadcastBytes() >= vectors));
  }

  // What the reduction reads along the vectors, of one matrix of a batch.
  int64_t VectorBytes() const { return Steps() * Extent(roles_.vector) * ir::SizeOf(reduction().buffer->dtype); }

  // What it reads that is the same for all vectors.
  int64_t BroadcastBytes() const {
    const ir::Stage& s = reduction();
    const ir::Ranges ranges = AxisRanges(s);
    AxisExtents extents;
    for (const ir::Axis& axis : s.reduce_axes) extents[axis.name] = axis.extent;
    for (size_t d = 0; d < s.axes.size(); ++d) extents[s.axes[d].name] = extents_[d];
    int64_t bytes = 0;
    for (const ir::Load& load : LoadsOf(s)) {
      if (StrideOf(load, s.axes[static_cast<size_t>(roles_.vector)].name, ranges) == 0)
        bytes += RegionBytes(load, ranges, extents);
    }
    return bytes;
  }

  struct PackedOperand {
    std::string source;
    std::vector<schedule::PackDim> dims;
  };

  // Operands that vary along the vector axis but do not lie along it, or are constant: repacked so that one step of the
  // reduction reads its vectors side by side.
  std::vector<PackedOperand> PackedOperands() const {
    const ir::Stage& s = reduction();
    const ir::Ranges ranges = AxisRanges(s);
    const std::string& vector = s.axes[static_cast<size_t>(roles_.vector)].name;
    std::vector<PackedOperand> operands;
    for (const ir::Load& load : LoadsOf(s)) {
      const auto stride = StrideOf(load, vector, ranges);
      const bool as_it_is = stride == 1 && !use_.has_value() && !schedule::IsFixed(sketch_.state, load.buffer.get());
      if (!stride.has_value() || *stride == 0 || as_it_is) continue;
      const std::string source = load.buffer->name;
      const bool twice = std::any_of(operands.begin(), operands.end(),
                                     [&](const PackedOperand& other) { return other.source == source; });
      auto dims = PackedOrder(load, vector, tile_.columns(), reduce_order_);
      if (use_.has_value()) InterleaveSteps(&dims);
      if (!dims.empty() && !twice) operands.push_back({source, std::move(dims)});
    }
    return operands;
  }

  // The innermost steps of the reduction, as many as an instruction takes, at every position of a tile.
  void InterleaveSteps(std::vector<schedule::PackDim>* dims) const {
    const int64_t steps = ir::EntryOf(use_->instruction).k;
    schedule::PackDim& k = (*dims)[dims->size() - 2];
    k.factor = steps;
    dims->push_back({k.dim, steps, true});
  }

  absl::Status PackOperands() {
    for (const PackedOperand& operand : PackedOperands()) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Pack{operand.source, stage_, operand.dims}));
      const std::string packed = operand.source + "p" + stage_;
      if (!sketch_.Get(packed).prepared) HONE_RETURN_IF_ERROR(ScheduleElementwise(sketch_, packed));
      std::erase(producers_, operand.source);  // read by the packing now, at the root
    }
    return absl::OkStatus();
  }

  void OrderReduction() {
    const ir::Stage& s = reduction();
    reduce_order_ = ReductionOrder(s, s.axes[static_cast<size_t>(roles_.vector)].name);
    if (!use_.has_value()) return;
    std::erase(reduce_order_, use_->k);
    reduce_order_.push_back(use_->k);
  }

  absl::Status TileOutput() {
    const std::string vector = out_.axes[static_cast<size_t>(roles_.vector)].name;
    std::vector<std::string> batch;
    for (int d = 0; d < static_cast<int>(out_.axes.size()); ++d) {
      if (d != roles_.vector && d != roles_.row && d != roles_.plane)
        batch.push_back(out_.axes[static_cast<size_t>(d)].name);
    }
    const Tail tail = packs_ ? Tail::kMask : TailOf(Extent(roles_.vector), tile_.columns());
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{vector, tile_.columns(), tail}));
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{vector + "i", tile_.width, Tail::kMask}));
    std::vector<std::string> inner, tiles;  // loops of one tile; loops over the tiles of one block
    std::string block;                      // the loop over blocks, if there is one
    HONE_RETURN_IF_ERROR(TileAxis(roles_.plane, tile_.planes, &tiles, &inner));
    HONE_RETURN_IF_ERROR(TileAxis(roles_.row, tile_.rows, &tiles, &inner));
    inner.push_back(vector + "io");
    inner.push_back(vector + "ii");
    if (!tiles.empty()) HONE_RETURN_IF_ERROR(SplitBlocks(&tiles, &block));
    schedule::Reorder order{batch};
    if (!rows_outside_) order.loops.push_back(vector + "o");
    if (!block.empty()) order.loops.push_back(block);
    if (rows_outside_) order.loops.push_back(vector + "o");
    order.loops.insert(order.loops.end(), tiles.begin(), tiles.end());
    order.loops.insert(order.loops.end(), inner.begin(), inner.end());
    HONE_RETURN_IF_ERROR(sketch_.Do(order));
    const size_t place = order.loops.size() - inner.size() - 1;
    tile_loop_ = order.loops[place];
    for (const std::string& loop : inner) {
      const auto kind = loop == vector + "ii" ? ir::LoopKind::kVectorized : ir::LoopKind::kUnrolled;
      HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, kind}));
    }
    return Parallelize(batch, block, vector + "o");
  }

  absl::Status TileAxis(int axis, int64_t tile, std::vector<std::string>* tiles, std::vector<std::string>* inner) {
    if (axis < 0) return absl::OkStatus();
    const std::string& name = out_.axes[static_cast<size_t>(axis)].name;
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{name, tile, Tail::kShift}));
    tiles->push_back(name + "o");
    inner->push_back(name + "i");
    return absl::OkStatus();
  }

  // Every thread gets a few blocks. With the vectors outside, threads share out the panels as well, and a panel has one
  // block only where there are enough of them: two threads that work on the same panel would both fetch it.
  int64_t TilesOfBlock(int64_t extent) const {
    const int64_t tasks = 4 * sketch_.target.threads;
    const int64_t panels = rows_outside_ ? 1 : (Extent(roles_.vector) + tile_.columns() - 1) / tile_.columns();
    const int64_t blocks = (tasks + panels - 1) / panels, tiles = std::max<int64_t>(1, (extent + blocks - 1) / blocks);
    return rows_outside_ ? Balanced(extent, std::min(tiles, kMostTilesOfBlock)) : tiles;
  }

  // Along the outermost axis of rows.
  int64_t OutermostTiles() const {
    return roles_.plane < 0 ? (Extent(roles_.row) + tile_.rows - 1) / tile_.rows
                            : (Extent(roles_.plane) + tile_.planes - 1) / tile_.planes;
  }

  // Of what is tiled.
  int64_t Batch() const {
    return ir::NumElements(*out_.buffer) / (Extent(roles_.vector) * Extent(roles_.row) * Extent(roles_.plane));
  }

  // A size near the preferred one with which the slowest thread has clearly less to do, if there is one.
  int64_t Balanced(int64_t extent, int64_t preferred) const {
    const int64_t batch = Batch();
    const auto most = [&](int64_t size) {
      return static_cast<double>(MostOfAThread(extent, size, batch, sketch_.target.threads));
    };
    int64_t best = preferred;
    // Much smaller blocks would copy more.
    const int64_t least = producers_.empty() ? preferred / 2 : (3 * preferred + 3) / 4;
    for (int64_t size = least; size <= std::min(2 * preferred, kMostTilesOfBlock); ++size) {
      if (size > 0 && kClearly * most(size) < most(best)) best = size;
    }
    return best;
  }

  // Blocks of the outermost row axis are what threads take, and what padding is copied for.
  absl::Status SplitBlocks(std::vector<std::string>* tiles, std::string* block) {
    const std::string name = tiles->front();
    size_t position = 0;
    const int64_t extent = sketch_.state.FindLoop(name, &position)->loops[position].max_extent;
    int64_t preferred = TilesOfBlock(extent);
    if (MakesSums()) {
      const int64_t threads = sketch_.target.threads;
      preferred = std::max(preferred, std::min(kFewestRowsOfSums, (extent + threads - 1) / threads));
    }
    if (producer_place_ == kInBlock) {
      while (preferred > 1 && CopiedBytes(preferred) > MostCopiedBytes(sketch_.target)) --preferred;
      if (CopiedBytes(preferred) > MostCopiedBytes(sketch_.target)) producer_place_ = kAtRoot;
    }
    const int64_t size = sketch_.chooser.Tile(prefix_ + "block", extent, extent, preferred);
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{name, size, Tail::kShift}));
    *block = name + "o";
    tiles->front() = name + "i";
    return absl::OkStatus();
  }

  // Whether what is summed over is itself made of sums, as by a depthwise convolution.
  bool MakesSums() const {
    return std::ranges::any_of(producers_, [&](const std::string& p) { return !SumsBehind(sketch_.state, p).empty(); });
  }

  // Of the producers' elements that a block of so many tiles of the outermost row axis reads.
  int64_t CopiedBytes(int64_t tiles) const {
    const ir::Stage& s = reduction();
    AxisExtents extents;  // of the part of each axis that is inside a block
    for (const ir::Axis& axis : s.reduce_axes) extents[axis.name] = axis.extent;
    for (int d = 0; d < static_cast<int>(s.axes.size()); ++d) {
      int64_t extent = 1;
      if (d == roles_.vector) extent = rows_outside_ ? Extent(d) : tile_.columns();
      if (d == roles_.row) extent = roles_.plane < 0 ? tiles * tile_.rows : Extent(d);
      if (d == roles_.plane) extent = tiles * tile_.planes;
      extents[s.axes[static_cast<size_t>(d)].name] = std::min(extent, Extent(d));
    }
    int64_t total = 0;
    for (const ir::Load& load : LoadsOf(s)) {
      if (std::find(producers_.begin(), producers_.end(), load.buffer->name) == producers_.end()) continue;
      total += RegionBytes(load, AxisRanges(s), extents);
    }
    return total;
  }

  absl::Status Parallelize(const std::vector<std::string>& batch, const std::string& block, const std::string& panel) {
    panel_loop_ = panel;
    if (nested_) return absl::OkStatus();
    std::string fused;
    const auto fuse = [&](const std::string& loop) -> absl::Status {
      if (loop.empty()) return absl::OkStatus();
      if (fused.empty()) {
        fused = loop;
        return absl::OkStatus();
      }
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Fuse{fused, loop}));
      const bool holds_tile = tile_loop_ == fused || tile_loop_ == loop;
      fused += "_" + loop;
      if (holds_tile) tile_loop_ = fused;
      return absl::OkStatus();
    };
    for (const std::string& loop : batch) HONE_RETURN_IF_ERROR(fuse(loop));
    if (!rows_outside_) HONE_RETURN_IF_ERROR(fuse(panel));
    HONE_RETURN_IF_ERROR(fuse(block));
    block_loop_ = block.empty() ? "" : fused;
    if (!rows_outside_) panel_loop_ = fused;
    if (Choose("parallel", {0, 1}, WorthThreads() ? 1 : 0) == 0) return absl::OkStatus();
    if (fused.empty()) fused = panel;
    return sketch_.Do(Annotate{fused, ir::LoopKind::kParallel});
  }

  absl::Status PlaceProducers() {
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{stage_, tile_loop_}));
    for (const std::string& producer : producers_) {
      const std::string sums = SumsBehind(sketch_.state, producer);
      // Sums are too dear to be made for every panel again.
      const bool in_block = producer_place_ == kInBlock && !block_loop_.empty() && (sums.empty() || rows_outside_);
      if (in_block) HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{producer, block_loop_}));
      if (!sums.empty()) {
        HONE_RETURN_IF_ERROR(RegisterTile(sketch_, producer, sums, sums + ".", std::nullopt, true).Run());
      } else if (in_block) {
        HONE_RETURN_IF_ERROR(VectorizeCopy(sketch_, producer));
      } else {
        HONE_RETURN_IF_ERROR(ScheduleElementwise(sketch_, producer));
      }
    }
    return absl::OkStatus();
  }

  absl::Status TileReduction() {
    const ir::Stage s = reduction();
    OrderReduction();
    const std::string vector = s.axes[static_cast<size_t>(roles_.vector)].name;
    if (tile_.columns() > tile_.width) {
      HONE_RETURN_IF_ERROR(sketch_.Do(Split{vector, tile_.width, Tail::kMask}));
    }
    schedule::Reorder order{reduce_order_};
    std::vector<std::string> unrolled;
    if (use_.has_value()) {
      HONE_RETURN_IF_ERROR(SplitSteps(&order));
    } else {
      HONE_RETURN_IF_ERROR(UnrollReduction(s, &order));
    }
    for (size_t d = 0; d < s.axes.size(); ++d) {
      if (static_cast<int>(d) == roles_.vector) continue;
      order.loops.push_back(s.axes[d].name);
      if (static_cast<int>(d) == roles_.row || static_cast<int>(d) == roles_.plane) unrolled.push_back(s.axes[d].name);
    }
    const bool several = tile_.columns() > tile_.width;
    if (several) {
      order.loops.push_back(vector + "o");
      unrolled.push_back(vector + "o");
    }
    order.loops.push_back(several ? vector + "i" : vector);
    if (use_.has_value()) order.loops.push_back(steps_loop_);
    HONE_RETURN_IF_ERROR(sketch_.Do(order));
    for (const std::string& loop : unrolled) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, ir::LoopKind::kUnrolled}));
    if (use_.has_value()) return sketch_.Do(schedule::Tensorize{stage_, use_->instruction});
    if (tile_.width == 1) return absl::OkStatus();
    return sketch_.Do(Annotate{order.loops.back(), ir::LoopKind::kVectorized});
  }

  // Rows and planes of padding are left out where a tile has but one row.
  absl::Status SkipPadding() {
    const schedule::SkipPadding step{stage_};
    schedule::State tried = sketch_.state;
    if (producers_.empty() || use_.has_value() || tile_.planes > 1 || !schedule::Apply(step, tried).ok())
      return absl::OkStatus();
    return Choose("skip", {0, 1}, 1) == 1 ? sketch_.Do(step) : absl::OkStatus();
  }

  // Vectors that a core's second cache does not hold come from further away. Those of this thread's next panel are
  // fetched while it computes, a share with each step of each tile of rows. A thread takes panels in order.
  absl::Status PrefetchPanels() {
    if (!packs_) return absl::OkStatus();
    const schedule::Nest& nest = sketch_.Get(stage_);
    // What is used once comes as fast as it can anyway.
    const bool reused = ir::NumElements(*out_.buffer) / Extent(roles_.vector) > tile_.rows * tile_.planes;
    const int64_t room = sketch_.target.memory.l2_bytes;
    for (const ir::Load& load : LoadsOf(nest.stage)) {
      const int64_t bytes = ir::NumBytes(*load.buffer);
      if (bytes < room / 4 || !schedule::IsFixed(sketch_.state, load.buffer.get())) continue;
      const schedule::Prefetch step{load.buffer->name, stage_, panel_loop_, 1};
      schedule::State tried = sketch_.state;
      if (!schedule::Apply(step, tried).ok()) continue;
      // Where a block of rows goes through all panels, they are in the cache for the next block if it holds them all.
      const bool preferred = reused && bytes >= (rows_outside_ || nested_ ? room : room / 2);
      return Choose("prefetch", {0, 1}, preferred ? 1 : 0) == 1 ? sketch_.Do(step) : absl::OkStatus();
    }
    return absl::OkStatus();
  }

  // The steps that one instruction takes become a loop of their own, to stand innermost.
  absl::Status SplitSteps(schedule::Reorder* order) {
    const int64_t steps = ir::EntryOf(use_->instruction).k;
    const ir::Stage& s = reduction();
    const auto k = std::ranges::find(s.reduce_axes, use_->k, &ir::Axis::name);
    steps_loop_ = use_->k;
    order->loops.pop_back();
    if (k->extent <= steps) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{use_->k, steps, Tail::kMask}));
    steps_loop_ += "i";
    const std::string outer = use_->k + "o";
    const int64_t extent = (k->extent + steps - 1) / steps;
    std::vector<int64_t> options = {1};
    for (const int64_t u : {2, 4}) {
      if (extent % u == 0 && extent > u) options.push_back(u);
    }
    const int64_t unroll = Choose("unroll", options, 1);
    if (unroll == 1) {
      order->loops.push_back(outer);
      return absl::OkStatus();
    }
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{outer, unroll, Tail::kMask}));
    HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{outer + "i", ir::LoopKind::kUnrolled}));
    order->loops.push_back(outer + "o");
    order->loops.push_back(outer + "i");
    return absl::OkStatus();
  }

  // The innermost reduction loop a few times over; small window axes wholly.
  absl::Status UnrollReduction(const ir::Stage& s, schedule::Reorder* order) {
    if (reduce_order_.empty()) return absl::OkStatus();
    const auto extent_of = [&](const std::string& name) {
      for (const ir::Axis& axis : s.reduce_axes) {
        if (axis.name == name) return axis.extent;
      }
      return int64_t{1};
    };
    const std::string innermost = reduce_order_.back();
    const int64_t extent = extent_of(innermost);
    const int64_t tile = tile_.rows * tile_.planes * tile_.vectors;
    const bool window = extent <= 7;
    const int64_t limit = std::max<int64_t>(1, kMostUnrolled / tile);
    if (producer_place_ == kInPlace && Steps() <= limit) {
      for (const std::string& loop : reduce_order_) {
        HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, ir::LoopKind::kUnrolled}));
      }
      return absl::OkStatus();
    }
    if (window) {
      if (extent <= limit && Choose("unroll_window", {0, 1}, 1) == 1)
        HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{innermost, ir::LoopKind::kUnrolled}));
      return absl::OkStatus();
    }
    std::vector<int64_t> options = {1};
    for (const int64_t u : {2, 4, 8}) {
      if (extent % u == 0 && u <= limit) options.push_back(u);
    }
    const int64_t unroll = Choose("unroll", options, options.back());
    if (unroll == 1) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{innermost, unroll, Tail::kMask}));
    HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{innermost + "i", ir::LoopKind::kUnrolled}));
    order->loops.back() = innermost + "o";
    order->loops.push_back(innermost + "i");
    return absl::OkStatus();
  }

  Sketch& sketch_;
  const std::string reader_, stage_, prefix_;
  const ir::Stage out_;
  const bool nested_;             // the reader is computed inside another stage's loop
  const bool places_;             // what the stage reads is placed here, not by the caller
  std::vector<int64_t> extents_;  // of the reader's axes: of a part of them, where it is nested
  const Roles roles_;
  const std::optional<TensorUse> use_;
  Tile tile_;
  bool packs_ = false;  // some operand is packed
  bool rows_outside_ = false;
  int64_t producer_place_ = kAtRoot;
  std::vector<std::string> producers_, reduce_order_;
  std::string tile_loop_, block_loop_, panel_loop_;
  std::string steps_loop_;  // with an instruction: the reduction loop that is a part of it
};

}  // namespace

absl::Status ScheduleRegisterTile(Sketch& sketch, const std::string& reader, const std::string& stage,
                                  const std::string& prefix, const std::optional<TensorUse>& use) {
  if (FeedsProduct(sketch.state, reader)) return absl::OkStatus();  // placed by the product's tiles
  return RegisterTile(sketch, reader, stage, prefix, use, sketch.Get(reader).AtRoot()).Run();
}

}  // namespace hone::space
