// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

constexpr int64_t kOpenTileMax = 64;  // iterations of a shifted tile that may be longer than the loop: half as many
                                      // versions of the code

// size: the number of iterations, if it is the same wherever the loop runs. open: an open size decides it.
absl::Status CheckSplit(const Split& step, const Loop& loop, const std::optional<ir::Size>& size, bool open) {
  if (step.factor < 1) return absl::FailedPreconditionError(fmt::format("factor {} is less than 1", step.factor));
  if (loop.kind != ir::LoopKind::kSerial) {
    return absl::FailedPreconditionError(fmt::format("loop {} is annotated already", loop.name));
  }
  if (!size.has_value() && (step.tail == Tail::kShift || (step.tail == Tail::kPeel && !open))) {
    return absl::FailedPreconditionError(
        fmt::format("loop {} has no constant extent; its tail must be masked ('mask')", loop.name));
  }
  if (step.tail == Tail::kShift && !Divides(step.factor, *size)) {
    if (open && size->min() < step.factor && step.factor > kOpenTileMax) {
      return absl::FailedPreconditionError(
          fmt::format("loop {} may be shorter than the tile of {}; such tiles have at most {} iterations", loop.name,
                      step.factor, kOpenTileMax));
    }
    if (loop.reduce)
      return absl::FailedPreconditionError(
          fmt::format("loop {} is a reduction: its tiles must not overlap", loop.name));
    if (!open && size->min() < step.factor) {
      return absl::FailedPreconditionError(
          fmt::format("loop {} has {} iterations, fewer than the tile of {}", loop.name, size->min(), step.factor));
    }
  }
  return absl::OkStatus();
}

}  // namespace

namespace {

// The tiles of a loop over an open size that may be shorter than a tile. A tile is `factor` long, or it has any length
// up to half of that: the last tile is no longer than it must be, and the first two tiles share a loop that is shorter
// than a full tile. Tiles may overlap. Peel makes a version of the code for each length.
struct ShiftedTiles {
  ir::Size count;          // at least 2: the second tile of a loop that one tile fills has length 0
  ir::Expr start, length;  // in terms of the loop over tiles
};

ShiftedTiles MakeShiftedTiles(const ir::Size& size, int64_t factor, const std::string& outer) {
  const int64_t half = (factor + 1) / 2;
  const ir::Expr tile = ir::MakeVar(outer), full(factor), end(size), room = end >= full;
  // What the tile must reach over: from its start to the end, or half of a loop that is shorter than a full tile.
  const ir::Expr shared = ir::MakeSelect(end > ir::Expr(half), ir::Expr(CeilDiv(size, 2)), end);
  const ir::Expr rest = ir::MakeSelect(room, end - tile * full, shared);
  ShiftedTiles tiles{Max(CeilDiv(size, factor), 2), {}, ir::Expr(1)};
  for (int64_t length = 2; length <= half; ++length) {
    const ir::Expr fits = rest >= ir::Expr(length) && end >= ir::Expr(length);
    tiles.length = ir::MakeSelect(fits, ir::Expr(length), tiles.length);
  }
  tiles.length = ir::MakeSelect(rest > ir::Expr(half) && room, full, tiles.length);
  tiles.start = ir::Min(tile * full, end - tiles.length);
  const ir::Expr begin = tile * ir::MakeSelect(room, full, ir::Expr(half));
  tiles.length = ir::MakeSelect(begin < end, tiles.length, ir::Expr(0));
  return tiles;
}

}  // namespace

// Replaces i by io * factor + ii. The tail is handled as the enum Tail says.
absl::Status Apply(const Split& step, State& state) {
  size_t position = 0;
  Nest* nest = state.FindLoop(step.loop, &position);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no loop {}", step.loop));
  if (absl::Status status = CheckNoStageAtLoop(state, *nest, position); !status.ok()) return status;
  const Loop loop = nest->loops[position];
  if (loop.reduce && IsScan(nest->stage)) {
    return absl::FailedPreconditionError(
        fmt::format("loop {} goes over the places of a scan, one after the other; it stays whole", loop.name));
  }
  const std::optional<ir::Size> size = state.IterationsOf(loop);
  const bool open = state.IsOpen(loop.extent);
  if (absl::Status status = CheckSplit(step, loop, size, open); !status.ok()) return status;
  const int64_t factor = std::min(step.factor, loop.max_extent > 0 ? loop.max_extent : 1);
  const ir::Size most = size.value_or(loop.max_extent), tiles = CeilDiv(most, factor);
  const bool exact = size.has_value() && Divides(factor, *size);
  // The extent of a peeled tail is a small number, unless an open size decides it. It then counts the tiles, too.
  const bool varies = !size.has_value() && open;
  const ir::Expr count = varies ? ir::FloorDiv(loop.extent + ir::Expr(factor - 1), ir::Expr(factor)) : ir::Expr(tiles);
  const int64_t tiles_max = std::min(tiles.max(), (loop.max_extent + factor - 1) / factor);
  Loop outer{loop.name + "o", count, tiles_max, ir::LoopKind::kSerial, loop.reduce};
  Loop inner{loop.name + "i", ir::Expr(factor), factor, ir::LoopKind::kSerial, loop.reduce};
  ir::Expr start = ir::MakeVar(outer.name) * ir::Expr(factor);
  if (!exact) {
    switch (step.tail) {
      case Tail::kMask:
        nest->conditions.guards.push_back(start + ir::MakeVar(inner.name) < loop.extent);
        break;
      case Tail::kShift:
        if (most.min() < factor) {
          const ShiftedTiles shifted = MakeShiftedTiles(most, factor, outer.name);
          outer.extent = ir::Expr(shifted.count);
          outer.max_extent = std::max<int64_t>(outer.max_extent, 2);
          inner.extent = shifted.length;
          start = shifted.start;
        } else {
          start = ir::Min(start, ir::Expr(most - factor));
        }
        nest->overlapping.push_back(outer.name);
        break;
      case Tail::kPeel:
        inner.extent = ir::Min(ir::Expr(factor), (varies ? loop.extent : ir::Expr(most)) - start);
        break;
    }
  }
  // If tiles of the split loop overlapped, those of both new loops count as overlapping.
  if (std::erase(nest->overlapping, loop.name) > 0) {
    nest->overlapping.insert(nest->overlapping.end(), {outer.name, inner.name});
  }
  const ir::VarMap map{{loop.name, start + ir::MakeVar(inner.name)}};
  for (auto& [axis, binding] : nest->bindings) binding = ir::Substitute(binding, map);
  // The new guard names only the new loops, so the substitution does not change it.
  for (ir::Expr& guard : nest->conditions.guards) guard = ir::Substitute(guard, map);
  // Extents of peeled tails inside may use the split loop. Beyond the end of a masked tail they are evaluated at the
  // split loop's last iteration.
  const bool beyond = !exact && step.tail == Tail::kMask;
  const ir::Expr place = map.at(loop.name);
  const ir::VarMap within{
      {loop.name, beyond ? ir::Min(place, varies ? loop.extent - ir::Expr(1) : ir::Expr(most - 1)) : place}};
  for (Loop& other : nest->loops) other.extent = ir::Substitute(other.extent, within);
  nest->loops[position] = std::move(inner);
  nest->loops.insert(nest->loops.begin() + static_cast<std::ptrdiff_t>(position), std::move(outer));
  nest->has_loop_steps = true;
  return absl::OkStatus();
}

}  // namespace hone::schedule
