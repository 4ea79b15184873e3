// SPDX-License-Identifier: Apache-2.0
// Lane tiles whose lanes run a tensor instruction together: which, in what shape, and how operands and loops then lie.
#include <limits>
#include <map>

#include "base/status.h"
#include "compiler/space/sketch/lanes.h"
#include "compiler/space/templates/lane_tile.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Split;
using schedule::Tail;

// Quarters of eight rows are loaded at once, or where those lie apart, one number of each of four times two. A row has
// so many bytes beyond a multiple of the period.
constexpr int64_t kRowBytes = 32, kApartRowBytes = 16, kRowPeriod = 64;

}  // namespace

void LaneTile::ChooseInstruction(Shapes* shapes) {
  std::vector<int64_t> ids = {0};
  std::map<int64_t, Shapes> with;
  int64_t preferred = 0;
  double least = shapes->least();
  for (const ir::TensorInstruction instruction :
       LaneInstructionsFor(sketch_.state, reduced_, ReducedName(vector_), step_axis_, sketch_.target)) {
    Shapes found = ShapesWith(instruction);
    const int64_t id = ir::EntryOf(instruction).number;
    if (found.least() == std::numeric_limits<double>::infinity()) continue;
    if (found.least() < least) preferred = id;
    least = std::min(least, found.least());
    ids.push_back(id);
    with.emplace(id, std::move(found));
  }
  if (ids.size() == 1) return;
  const int64_t chosen = Choose("instruction", ids, preferred);
  if (chosen == 0) return;
  instruction_ = ir::InstructionOfNumber(chosen);
  *shapes = with.at(chosen);
}

void LaneTile::ChooseSharing(Shapes* shapes) {
  const ir::TensorInstructionEntry& entry = ir::EntryOf(*instruction_);
  const bool packed = std::ranges::all_of(LoadsOf(reduced_), [&](const ir::Load& load) {
    return !VariesAlongColumns(load) || schedule::IsFixed(sketch_.state, load.buffer.get()) ||
           IsLaidOutBefore(load, entry);
  });
  if (!packed) return;
  std::map<int64_t, Shapes> with = {{1, *shapes}};
  std::vector<int64_t> counts = {1};
  for (int64_t n = 2; n <= sketch_.target.hierarchy.sharing_groups; n *= 2) {
    Shapes found = ShapesWith(instruction_, n);
    if (found.least() == std::numeric_limits<double>::infinity()) continue;
    counts.push_back(n);
    with.emplace(n, std::move(found));
  }
  if (counts.size() == 1) return;
  sharing_ = Choose("sharing", counts, 1);
  *shapes = with.at(sharing_);
}

absl::Status LaneTile::ChooseInstructionTile() {
  const int64_t most_lanes = sketch_.target.hierarchy.max_lanes;
  const int64_t elements = sketch_.target.memory.registers_bytes / 8;
  const int64_t columns = Extent(vector_), rows = Extent(row_), more_rows = Extent(second_);
  const auto choose = [&](std::string_view name, std::vector<int64_t> options, int64_t preferred, const auto& fits) {
    std::erase_if(options, [&](int64_t size) { return !fits(size); });
    return options.empty() ? 1 : ChooseNear(name, options, preferred);
  };
  // Tiles of instructions that read shared memory themselves run over no end.
  const bool blocks = HasBlocks();
  const auto has_lanes = [&](int64_t n, int64_t extent) { return blocks ? extent % n == 0 : n <= extent; };
  const auto may_tile = [&](int64_t tile, int64_t extent) {
    return blocks ? extent % tile == 0 : tile <= PowerOfTwo(extent);
  };
  const int64_t least_lanes = blocks ? ir::EntryOf(*instruction_).lanes / ir::kLanesOfRow : 1;
  lanes_x_ = choose("lanes_x", Powers(blocks ? ir::kLanesOfRow : most_lanes / ir::kBlockRows), shape_.lanes_x,
                    [&](int64_t n) { return n % ir::kLanesOfRow == 0 && has_lanes(2 * n, columns); });
  width_ = choose("width", Powers(std::min(MostWidth(*instruction_), elements)), shape_.width,
                  [&](int64_t n) { return n % 2 == 0 && may_tile(lanes_x_ * n, columns); });
  lanes_y_ = choose("lanes_y", LaneSizes(rows, most_lanes / lanes_x_), shape_.lanes_y, [&](int64_t n) {
    return has_lanes(n, rows) && n % least_lanes == 0 &&
           (n % ir::kBlockRows == 0 || (ir::kBlockRows % n == 0 && has_lanes(ir::kBlockRows / n, more_rows)));
  });
  lanes_z_ = choose("lanes_z", LaneSizes(blocks ? 1 : more_rows, most_lanes / lanes_x_ / lanes_y_), shape_.lanes_z,
                    [&](int64_t n) { return has_lanes(n, more_rows) && lanes_y_ * n % ir::kBlockRows == 0; });
  const bool pairs_there = !blocks && HasPairs(2, lanes_z_, more_rows);
  const auto pairs = [&](int64_t n) { return HasPairs(n, lanes_y_, rows); };
  rows_ = choose("rows", LaneSizes(Up(rows, lanes_y_), std::min(kMostRows, elements / width_)), shape_.rows,
                 [&](int64_t n) { return may_tile(lanes_y_ * n, rows) && (pairs(n) || (n % 2 == 1 && pairs_there)); });
  more_rows_ = choose("more_rows",
                      LaneSizes(blocks ? 1 : Up(more_rows, lanes_z_), std::min(kMostRows, elements / width_ / rows_)),
                      shape_.more_rows, [&](int64_t n) {
                        return may_tile(lanes_z_ * n, more_rows) && (pairs(rows_) || HasPairs(n, lanes_z_, more_rows));
                      });
  const LaneShape shape{width_, rows_, more_rows_, lanes_x_, lanes_y_, lanes_z_};
  const LaneWork work = Work().value_or(LaneWork{columns, rows, more_rows});
  if (FitsInstruction(shape, work, *instruction_)) return absl::OkStatus();
  return absl::FailedPreconditionError("lanes in this shape cannot run the instruction together");
}

absl::Status LaneTile::PackSteps() {
  const ir::Stage s = reduction();
  for (const ir::Load& load : LoadsOf(s)) {
    const bool apart = StrideOf(load, step_axis_, AxisRanges(s)) != 1;
    // Dimensions of one element behind the steps make copies narrow. Rows without pads are measured as they lie.
    const bool narrow = !ir::UsesVar(load.indices.back(), step_axis_) && InstructionPads(load).second > 0;
    if (apart || (narrow && schedule::IsFixed(sketch_.state, load.buffer.get()))) {
      HONE_RETURN_IF_ERROR(PackLast(sketch_, stage_, load, step_axis_));
    }
  }
  return absl::OkStatus();
}

bool LaneTile::IsLaidOutBefore(const ir::Load& load, const ir::TensorInstructionEntry& entry) const {
  return entry.blocks && !schedule::IsFixed(sketch_.state, load.buffer.get()) &&
         StrideOf(load, step_axis_, AxisRanges(reduction())) != 1;
}

std::vector<schedule::PackDim> LaneTile::ChunkDims(const ir::Load& load, int steps, int64_t chunk, bool tiled,
                                                   size_t* chunks) const {
  const int own = OwnDimension(load, ReducedName(VariesAlongColumns(load) ? vector_ : row_));
  const int64_t tile = tiled && own >= 0 ? width_ * lanes_x_ : 0;
  std::vector<schedule::PackDim> dims, inside;
  for (int d = 0; d < static_cast<int>(load.indices.size()); ++d) {
    if (d != steps && d != own) (own >= 0 ? dims : inside).push_back({d});
  }
  if (own >= 0) inside.push_back({own, tile, tile > 0});
  if (tile > 0) dims.push_back({own, tile, false});
  *chunks = dims.size();
  if (chunk > 0) dims.push_back({steps, chunk, false});
  dims.insert(dims.end(), inside.begin(), inside.end());
  dims.push_back({steps, chunk, chunk > 0});
  return dims;
}

int64_t LaneTile::ChunkRowDims(const ir::Load& load, const std::vector<schedule::PackDim>& dims) const {
  const bool columns = VariesAlongColumns(load);
  if (!columns && ir::EntryOf(*instruction_).loads_a) return 2;  // lanes find their rows wherever they lie
  const auto own = std::find_if(dims.rbegin(), dims.rend(), [&](const schedule::PackDim& dim) {
    return ir::UsesVar(load.indices[static_cast<size_t>(dim.dim)], ReducedName(columns ? vector_ : row_));
  });
  return 1 + (own - dims.rbegin());
}

absl::Status LaneTile::PackChunks() {
  const ir::TensorInstructionEntry& entry = ir::EntryOf(*instruction_);
  const ir::Stage s = reduction();
  for (const ir::Load& load : LoadsOf(s)) {
    const auto along =
        std::ranges::find_if(load.indices, [&](const ir::Expr& index) { return ir::UsesVar(index, step_axis_); });
    const auto dim = static_cast<int>(along - load.indices.begin());
    const bool fixed = schedule::IsFixed(sketch_.state, load.buffer.get());
    const bool before = IsLaidOutBefore(load, entry);
    const bool in_rows = !fixed && !before && step_ * ir::SizeOf(load.buffer->dtype) == ir::kSwizzledRow;
    const bool tiled = VariesAlongColumns(load) && (fixed || before);
    size_t chunks = 0;
    const std::vector<schedule::PackDim> dims = ChunkDims(load, dim, in_rows ? 0 : entry.chunk, tiled, &chunks);
    std::string name = load.buffer->name;
    const bool cut = entry.cuts && (!entry.loads_a || VariesAlongColumns(load));
    if (cut && (fixed || before)) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Round{name, stage_, entry.fraction_bits}));
      name += "n" + stage_;
    }
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Pack{name, stage_, dims}));
    if (fixed) continue;
    if (before && cut) HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Inline{name}));
    name += "p" + stage_;
    if (before) {
      HONE_RETURN_IF_ERROR(ScheduleLaneElementwise(sketch_, name));
      continue;
    }
    if (!in_rows) rows_first_[name] = {chunks, ChunkRowDims(load, dims)};
    if (cut) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Round{name, stage_, entry.fraction_bits}));
      rounded_[name + "n" + stage_] = name;
      name += "n" + stage_;
    }
    if (in_rows) swizzled_.push_back(name);
  }
  return absl::OkStatus();
}

absl::Status LaneTile::StageBlocks(const std::string& name) {
  std::vector<std::string> stages = {name};
  if (const auto source = rounded_.find(name); source != rounded_.end()) stages.push_back(source->second);
  for (const std::string& stage : stages) {
    // Chunks of a row lie side by side in its source: lanes copy them together, and meet other banks by one chunk more.
    const auto rows_first = rows_first_.find(stage);
    const bool swizzled = std::ranges::find(swizzled_, stage) != swizzled_.end();
    schedule::StoreIn step{stage, swizzled ? ir::Scope::kSwizzled : ir::Scope::kShared};
    if (rows_first != rows_first_.end()) step.pad = 1, step.dims = rows_first->second.second;
    HONE_RETURN_IF_ERROR(sketch_.Do(step));
    shared_.push_back(stage);
  }
  return absl::OkStatus();
}

std::pair<std::vector<int64_t>, int64_t> LaneTile::InstructionPads(const ir::Load& load) const {
  const int64_t size = ir::SizeOf(load.buffer->dtype);
  const bool apart = StrideOf(load, step_axis_, AxisRanges(reduction())) != 1;
  const int64_t row_bytes = (apart ? width_ * lanes_x_ : step_) * size;
  const int64_t beyond = (apart ? kApartRowBytes : kRowBytes) - row_bytes;
  std::vector<int64_t> options;
  for (int64_t bytes = 0; bytes < kRowPeriod; bytes += kApartRowBytes) options.push_back(bytes / size);
  return {options, (beyond % kRowPeriod + kRowPeriod) % kRowPeriod / size};
}

absl::Status LaneTile::GatherWarps(std::vector<std::string>* lanes) {
  const int64_t rows = std::min(lanes_y_, ir::kBlockRows), others = ir::kBlockRows / rows;
  std::vector<int64_t> together = {rows, ir::kLanesOfRow};
  std::vector<int64_t> all = {lanes_y_, lanes_x_};
  if (second_ >= 0) {
    together.insert(together.begin(), others);
    all.insert(all.begin(), lanes_z_);
  }
  std::vector<std::string> warps, inside;
  for (size_t i = 0; i < lanes->size(); ++i) {
    const std::string& loop = (*lanes)[i];
    if (all[i] > together[i]) {
      HONE_RETURN_IF_ERROR(sketch_.Do(Split{loop, together[i], Tail::kMask}));
      warps.push_back(loop + "o");
      inside.push_back(loop + "i");
    } else {
      inside.push_back(loop);
    }
  }
  *lanes = std::move(warps);
  lanes->insert(lanes->end(), inside.begin(), inside.end());
  return absl::OkStatus();
}

absl::Status LaneTile::TileInBlocks(std::vector<std::string>* groups, std::vector<std::string>* lanes,
                                    std::vector<std::string>* inner) {
  const std::string name = NameOf(row_), reduced = ReducedName(row_);
  const int64_t pair = 2 * ir::kBlockRows, rows = lanes_y_ * 2;  // of a warp, of all lanes once
  HONE_RETURN_IF_ERROR(sketch_.Do(schedule::SplitAxis{stage_, reduced, ir::kBlockRows}));
  HONE_RETURN_IF_ERROR(sketch_.Do(schedule::SplitAxis{stage_, reduced + "x", rows / ir::kBlockRows}));
  HONE_RETURN_IF_ERROR(sketch_.Do(Split{name, lanes_y_ * rows_, Tail::kMask}));
  HONE_RETURN_IF_ERROR(sketch_.Do(Split{name + "i", rows, Tail::kMask}));
  HONE_RETURN_IF_ERROR(sketch_.Do(Split{name + "ii", pair, Tail::kMask}));
  HONE_RETURN_IF_ERROR(sketch_.Do(Split{name + "iii", ir::kBlockRows, Tail::kMask}));
  groups->push_back(name + "o");
  lanes->insert(lanes->end(), {name + "iio", name + "iiii"});
  inner->insert(inner->end(), {name + "io", name + "iiio"});
  return absl::OkStatus();
}

absl::Status LaneTile::TileInstruction() {
  const ir::Stage s = reduction();
  HONE_RETURN_IF_ERROR(sketch_.Do(Split{step_axis_, step_, Tail::kMask}));
  std::string step = step_axis_ + "i";
  schedule::Reorder order{{step_axis_ + "o"}};
  order.loops.insert(order.loops.end(), inner_reduce_.begin(), inner_reduce_.end());
  std::vector<std::string> unrolled;
  const int64_t together = ir::EntryOf(*instruction_).k;
  if (step_ > together) {
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{step, together, Tail::kMask}));
    order.loops.push_back(step + "o");
    if (Choose("unrolled", {0, 1}, 1) == 1) unrolled.push_back(step + "o");
    step += "i";
  }
  const std::string rows = HasBlocks() ? ReducedName(row_) + "xy" : TileLoop(rows_ % 2 == 0 ? row_ : second_, false);
  const std::string columns = TileLoop(vector_, true);
  HONE_RETURN_IF_ERROR(sketch_.Do(Split{rows, 2, Tail::kMask}));
  for (const ir::Axis& axis : s.axes) {
    if (axis.name == columns) continue;
    unrolled.push_back(axis.name == rows ? rows + "o" : axis.name);
    order.loops.push_back(unrolled.back());
  }
  order.loops.insert(order.loops.end(), {rows + "i", columns});
  if (HasBlocks()) {
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{step, ir::EntryOf(*instruction_).chunk, Tail::kMask}));
    order.loops.push_back(step + "o");
    step += "i";
  }
  order.loops.push_back(step);
  HONE_RETURN_IF_ERROR(sketch_.Do(order));
  for (const std::string& name : shared_) {
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{name, step_axis_ + "o"}));
  }
  for (const std::string& loop : unrolled) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, ir::LoopKind::kUnrolled}));
  return sketch_.Do(schedule::Tensorize{stage_, *instruction_});
}

}  // namespace hone::space
