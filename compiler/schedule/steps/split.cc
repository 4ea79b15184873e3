// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "compiler/schedule/apply.h"
#include "compiler/schedule/fitted_tiles.h"

namespace hone::schedule {
namespace {

// Whether all tiles are full.
bool IsExact(const Split& step, const std::optional<ir::Size>& size) {
  return step.factor == 1 || (size.has_value() && Divides(step.factor, *size));
}

// size: the number of iterations, if it is the same wherever the loop runs. open: an open size decides it.
absl::Status CheckSplit(const Split& step, const Loop& loop, const std::optional<ir::Size>& size, bool open) {
  if (step.factor < 1) return absl::FailedPreconditionError(fmt::format("factor {} is less than 1", step.factor));
  if (loop.kind != ir::LoopKind::kSerial) {
    return absl::FailedPreconditionError(fmt::format("loop {} is annotated already", loop.name));
  }
  if (step.tail == Tail::kFit && !open) {
    return absl::FailedPreconditionError(
        fmt::format("no open size decides the extent of loop {}; its tail must not be 'fit'", loop.name));
  }
  const bool varies = !size.has_value();
  if (varies && (step.tail == Tail::kShift || (step.tail == Tail::kPeel && !open))) {
    return absl::FailedPreconditionError(fmt::format("loop {} has no constant extent; its tail must be {}", loop.name,
                                                     open ? "'mask', 'peel' or 'fit'" : "masked ('mask')"));
  }
  if ((step.tail != Tail::kShift && step.tail != Tail::kFit) || IsExact(step, size)) return absl::OkStatus();
  if (loop.reduce) {
    return absl::FailedPreconditionError(fmt::format("loop {} is a reduction: its tiles must not overlap", loop.name));
  }
  if (step.tail == Tail::kShift && size->min() < step.factor) {
    return absl::FailedPreconditionError(fmt::format("loop {} {} {} iterations, fewer than the tile of {}", loop.name,
                                                     open ? "may have only" : "has", size->min(), step.factor));
  }
  if (step.tail == Tail::kFit && std::min(step.factor, loop.max_extent) > kFittedTileMax) {
    return absl::FailedPreconditionError(fmt::format("the tile of loop {} has {} iterations; with 'fit' the most is {}",
                                                     loop.name, step.factor, kFittedTileMax));
  }
  return absl::OkStatus();
}

// Whether a rest may take two short tiles, which makes one tile more than the full ones would be.
bool MayTakeTwo(int64_t factor) { return ShortTileMax(factor) < factor - 1; }

// The number of tiles of `end` iterations with Tail::kFit. Both are sizes or expressions.
template <typename T>
T CountTiles(const T& end, int64_t factor) {
  const T rounded_up = FloorDiv(end + T(factor - 1), T(factor));
  if (!MayTakeTwo(factor)) return rounded_up;
  // Added to the rest, it reaches `factor` if and only if the rest takes two tiles.
  const int64_t more = factor - ShortTileMax(factor) - 1;
  return rounded_up + FloorDiv(FloorMod(end, T(factor)) + T(more), T(factor));
}

// The length of the short tiles: TilesOf as an expression of the number of iterations `end`. shares: whether the rest
// is so short that the last full tile shares with it, if there is one.
ir::Expr ShortTileLength(const ir::Expr& end, int64_t factor, const ir::Expr& shares) {
  const ir::Expr rest = ir::FloorMod(end, ir::Expr(factor));
  ir::Expr length = rest;
  if (MayTakeTwo(factor)) {
    const ir::Expr two = rest > ir::Expr(ShortTileMax(factor));
    length = ir::MakeSelect(two, ir::FloorDiv(rest + ir::Expr(1), ir::Expr(2)), length);
  }
  if (SharedRestMax(factor) == 0) return length;
  return ir::MakeSelect(shares && end > ir::Expr(factor), ir::FloorDiv(rest + ir::Expr(factor + 1), ir::Expr(2)),
                        length);
}

// Gives the loops over tiles and inside them their extents with Tail::kFit, and returns where a tile starts
// (fitted_tiles.h). Peel makes a version of the code for each length. size: the number of iterations `end`, if it is
// the same wherever the loop runs.
ir::Expr FitTiles(const ir::Expr& end, const std::optional<ir::Size>& size, Loop* outer, Loop* inner) {
  const int64_t factor = inner->max_extent, shared = SharedRestMax(factor);
  const ir::Expr tile = ir::MakeVar(outer->name), full(factor), before = ir::FloorMod(end - ir::Expr(1), full);
  const ir::Expr length = ShortTileLength(end, factor, before < ir::Expr(shared));
  outer->extent = size.has_value() ? ir::Expr(CountTiles(*size, factor)) : CountTiles(end, factor);
  outer->max_extent += MayTakeTwo(factor) ? 1 : 0;
  inner->extent = ir::Expr(1);
  for (int64_t each = 2; each <= ShortTileMax(factor); ++each) {
    const ir::Expr fits = length >= ir::Expr(each) && end >= ir::Expr(each);
    inner->extent = ir::MakeSelect(fits, ir::Expr(each), inner->extent);
  }
  // A tile is full if `full` iterations are left, or twice as many where the last full tile shares with the rest.
  ir::Expr is_full = end - tile * full >= full;
  if (shared > 0) {
    const ir::Expr keeps = ir::FloorDiv(before + ir::Expr(factor - shared), full);  // 0 where it shares, else 1
    is_full = end - tile * full + keeps * full >= ir::Expr(2 * factor);
  }
  inner->extent = ir::MakeSelect(is_full && end >= full, full, inner->extent);
  return ir::Min(tile * full, end - inner->extent);
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
  const bool exact = IsExact({step.loop, factor, step.tail}, size);
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
        start = ir::Min(start, ir::Expr(most - factor));
        nest->overlapping.push_back(outer.name);
        break;
      case Tail::kFit:
        start = FitTiles(varies ? loop.extent : ir::Expr(most), size, &outer, &inner);
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
