// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/status.h"
#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

constexpr int64_t kCloseRowBytes = 1024;  // rows at multiples of it fall into few sets of a cache
constexpr int64_t kVectorBytesMax = 64;   // bytes of the widest vector register

using Names = std::set<std::string, std::less<>>;

// The part of one dimension of a producer that one iteration of the loop needs: [base, base + extent). base is in terms
// of the loops around. extent may be too (peeled tails); max_extent is its upper bound.
struct Region {
  ir::Expr base, extent;
  int64_t max_extent;
  bool is_shifted = false;  // whether the base is bounded by a minimum or maximum
};

// Collects the loops that run inside one iteration of loop `position` of `target`, as seen from a nest that reads the
// producer. Contains is false if that nest is not inside the loop.
struct InnerLoops {
  const State& state;
  const Nest& target;
  size_t position;
  bool shared;  // the producer is stored in shared memory

  bool Contains(const Nest& reader, Names* inner) const {
    const Nest* nest = &reader;
    while (nest != &target) {
      for (const Loop& loop : nest->loops) inner->insert(loop.name);
      if (nest->IsTopLevel()) return false;
      const Nest* parent = state.FindNest(nest->place.stage);
      if (parent == &target) {
        const auto at = std::find_if(target.loops.begin(), target.loops.end(),
                                     [&](const Loop& l) { return l.name == nest->place.loop; });
        if (at - target.loops.begin() < static_cast<std::ptrdiff_t>(position)) return false;
      }
      nest = parent;
    }
    for (size_t i = position + 1; i < target.loops.size(); ++i) inner->insert(target.loops[i].name);
    if (shared) AddLanes(inner);
    return true;
  }

  // Shared memory holds the region that all lanes need, so every lane loop counts as inside.
  void AddLanes(Names* inner) const {
    for (const Nest* nest = &target;; nest = state.FindNest(nest->place.stage)) {
      for (const Loop& loop : nest->loops) {
        if (loop.kind == ir::LoopKind::kLane) inner->insert(loop.name);
      }
      if (nest->IsTopLevel()) return;
    }
  }
};

const Loop* LoopOf(const State& state, std::string_view name) {
  for (const Nest& nest : state.nests) {
    for (const Loop& loop : nest.loops) {
      if (loop.name == name) return &loop;
    }
  }
  return nullptr;
}

// Where the variables of an expression come from: loops inside, or loops outside and open sizes.
struct Uses {
  bool inner = false, outer = false;
};

Uses UsesOf(const ir::Expr& e, const Names& inner) {
  Uses uses;
  ir::ForEachExpr(e, [&](const ir::Expr& part) {
    if (const ir::Var* v = part.As<ir::Var>()) (inner.count(v->name) ? uses.inner : uses.outer) = true;
    uses.outer |= part.As<ir::Load>() != nullptr;
  });
  return uses;
}

// Term i of an index, if it is where a tile starts, min(tile * factor, end - length), and the loop over the tile's
// `length` iterations is another term. Together the tiles reach from 0 to `end`.
struct Tiles {
  ir::Expr end;
  size_t iterations;  // the term that is the loop over one tile
};

std::optional<Tiles> FindTiles(const ir::Linear& index, size_t i, const Names& inner, const State& state,
                               const ir::Ranges& ranges) {
  const auto& [atom, factor] = index.terms[i];
  const ir::Binary* start = atom.As<ir::Binary>();
  if (start == nullptr || start->op != ir::BinaryOp::kMin || factor < 0) return std::nullopt;
  for (size_t j = 0; j < index.terms.size(); ++j) {
    const ir::Var* v = index.terms[j].first.As<ir::Var>();
    if (v == nullptr || !inner.contains(v->name) || index.terms[j].second != factor) continue;
    const ir::Expr length = LoopOf(state, v->name)->extent;
    for (const auto& [first, last] : {std::pair(start->a, start->b), std::pair(start->b, start->a)}) {
      const ir::Expr end = ir::Simplify(last + length, ranges);
      if (UsesOf(end, inner).inner) continue;
      // A tile whose length an open size decides is never longer than all of them (Tail::kFit).
      const bool fits = length.As<ir::IntImm>() == nullptr || ir::BoundsOf(last, ranges).low >= 0;
      if (fits && ir::BoundsOf(first, ranges).low >= 0) return Tiles{end, j};
    }
  }
  return std::nullopt;
}

std::optional<Region> RegionOf(const ir::Expr& index, const Names& inner, const State& state, const ir::Ranges& ranges);

// The values of min(a, b) or max(a, b), where only a moves with the inside loops: those of a, with the base bounded by
// b. They are the rows of a tile that is shifted where it would run over the end. nullopt for anything else.
std::optional<Region> ShiftedRegion(const ir::Expr& e, const Names& inner, const State& state,
                                    const ir::Ranges& ranges) {
  const ir::Binary* extremum = e.As<ir::Binary>();
  if (extremum == nullptr || (extremum->op != ir::BinaryOp::kMin && extremum->op != ir::BinaryOp::kMax)) return {};
  const bool a_moves = UsesOf(extremum->a, inner).inner;
  if (a_moves == UsesOf(extremum->b, inner).inner) return {};
  std::optional<Region> region = RegionOf(a_moves ? extremum->a : extremum->b, inner, state, ranges);
  if (!region.has_value()) return {};
  region->base = ir::MakeBinary(extremum->op, region->base, a_moves ? extremum->b : extremum->a);
  region->is_shifted = true;
  return region;
}

bool UsesLoopOutside(const ir::Expr& e, const Names& inner, const State& state) {
  bool uses = false;
  ir::ForEachExpr(e, [&](const ir::Expr& part) {
    const ir::Var* v = part.As<ir::Var>();
    uses = uses || (v != nullptr && !inner.contains(v->name) && LoopOf(state, v->name) != nullptr);
  });
  return uses;
}

// The sum of the terms of an index that were looked at.
struct PartOfRegion {
  ir::Linear base;
  ir::Expr extent = ir::Expr(1);
  int64_t most = 1;  // what the longest loops make of the extent
  bool is_shifted = false;
  std::set<size_t> terms;  // their numbers
};

// The terms that mix variables of inside loops with others: tiles that are bounded by where the axis ends. nullopt if
// one is anything else.
std::optional<PartOfRegion> MixedTerms(const ir::Linear& index, const Names& inner, const State& state,
                                       const ir::Ranges& ranges) {
  PartOfRegion part;
  for (size_t i = 0; i < index.terms.size(); ++i) {
    const auto& [atom, k] = index.terms[i];
    if (const Uses uses = UsesOf(atom, inner); !uses.inner || !uses.outer) continue;
    // If a loop outside moves the tiles, they are some of all; else they are all, from 0 to the end.
    const bool some = UsesLoopOutside(atom, inner, state);
    std::optional<Region> shifted = some && k > 0 ? ShiftedRegion(atom, inner, state, ranges) : std::nullopt;
    const auto tiles = shifted.has_value() ? std::nullopt : FindTiles(index, i, inner, state, ranges);
    if (tiles.has_value()) {
      const int64_t end = ir::BoundsOf(tiles->end, ranges).high;
      if (end >= ir::Interval::kUnbounded) return std::nullopt;
      part.extent = part.extent + (tiles->end - ir::Expr(1)) * ir::Expr(k);
      part.most += k * (end - 1);
      part.terms.insert({i, tiles->iterations});
      continue;
    }
    if (!shifted.has_value() && k > 0) shifted = ShiftedRegion(atom, inner, state, ranges);
    if (!shifted.has_value()) return std::nullopt;
    part.extent = part.extent + (shifted->extent - ir::Expr(1)) * ir::Expr(k);
    part.most += k * (shifted->max_extent - 1);
    part.base.Add(ir::ToLinear(shifted->base, ranges), k);
    part.is_shifted = true;
    part.terms.insert(i);
  }
  return part;
}

// The values that an index takes; nullopt if one term mixes variables of inside and outside loops in another way than
// ShiftedRegion knows.
std::optional<Region> RegionOf(const ir::Expr& index, const Names& inner, const State& state,
                               const ir::Ranges& ranges) {
  const ir::Linear linear = ir::ToLinear(index, ranges);
  const std::optional<PartOfRegion> mixed = MixedTerms(linear, inner, state, ranges);
  if (!mixed.has_value()) return std::nullopt;
  ir::Linear base = mixed->base;
  ir::Expr extent = mixed->extent;
  int64_t most = mixed->most;
  base.constant += linear.constant;
  for (size_t i = 0; i < linear.terms.size(); ++i) {
    const auto& [atom, k] = linear.terms[i];
    if (mixed->terms.contains(i)) continue;
    if (!UsesOf(atom, inner).inner) {
      base.Add(atom, k);
    } else if (const ir::Var* v = atom.As<ir::Var>()) {
      const Loop* loop = LoopOf(state, v->name);
      // The extent of a peeled tail may depend on another loop that is inside as well.
      const bool varies = std::ranges::any_of(inner, [&](const auto& name) { return ir::UsesVar(loop->extent, name); });
      const ir::Expr span = (varies ? ir::Expr(loop->max_extent) : loop->extent) - ir::Expr(1);
      extent = extent + span * ir::Expr(std::abs(k));
      most += std::abs(k) * (loop->max_extent - 1);
      if (k < 0) base.Add(ir::ToLinear(span, ranges), k);
    } else {
      const ir::Interval bounds = ir::BoundsOf(atom, ranges);
      if (bounds.high >= ir::Interval::kUnbounded || bounds.low <= -ir::Interval::kUnbounded) return std::nullopt;
      extent = extent + ir::Expr(std::abs(k) * (bounds.high - bounds.low));
      most += std::abs(k) * (bounds.high - bounds.low);
      base.constant += k * (k > 0 ? bounds.low : bounds.high);
    }
  }
  extent = ir::Simplify(extent, ranges);
  const int64_t max_extent = std::min(ir::BoundsOf(extent, ranges).high, most);
  if (max_extent >= ir::Interval::kUnbounded) return std::nullopt;
  return Region{ir::FromLinear(base), extent, max_extent, mixed->is_shifted};
}

// A region that covers both; nullopt if the distance of their bases is not constant.
std::optional<Region> Union(const Region& a, const Region& b, const ir::Ranges& ranges) {
  const auto difference = ir::ConstantValue(b.base - a.base, ranges);
  if (!difference.has_value()) return std::nullopt;
  const Region& first = *difference >= 0 ? a : b;
  const Region& second = *difference >= 0 ? b : a;
  const int64_t shift = std::abs(*difference);
  const ir::Expr extent = ir::Simplify(ir::Max(first.extent, second.extent + ir::Expr(shift)), ranges);
  return Region{first.base, extent, std::max(first.max_extent, second.max_extent + shift),
                first.is_shifted || second.is_shifted};
}

// Whether the condition is one of the nest's tail guards.
bool IsTailGuard(const Nest& nest, const ir::Expr& condition) {
  return std::ranges::any_of(nest.conditions.tail_guards,
                             [&](const ir::Expr& end) { return ir::Equal(end, condition); });
}

class RegionInference {
 public:
  RegionInference(const State& state, const Nest& producer, const InnerLoops& inside)
      : state_(state),
        producer_(producer),
        inside_(inside),
        ranges_(state.LoopRanges()),
        regions_(producer.stage.axes.size()),
        whole_(producer.stage.axes.size(), false) {}

  absl::StatusOr<std::vector<Region>> Run() {
    for (const Nest& reader : state_.nests) {
      if (!Reads(reader.stage, producer_.stage.buffer.get())) continue;
      Names inner;
      if (!inside_.Contains(reader, &inner)) {
        return absl::FailedPreconditionError(fmt::format("stage {} also reads {}, outside the loop",
                                                         reader.stage.buffer->name, producer_.stage.buffer->name));
      }
      AddReads(reader.stage.value, {}, reader, inner);
    }
    std::vector<Region> result;
    for (size_t d = 0; d < regions_.size(); ++d) {
      const ir::Size& size = producer_.stage.axes[d].extent;
      // A region at base 0 that is longer than the stage comes from a tile that is. It keeps its length, so that
      // readers of the tile need no condition. A tile that is as long as the largest axis has an open length, which
      // shrinks with the axis; it keeps that length, too.
      const bool runs_over = regions_[d].has_value() && regions_[d]->max_extent >= size.max() &&
                             !ir::ConstantValue(regions_[d]->base).has_value() && !IsShortTile(*regions_[d], size);
      if (whole_[d] || !regions_[d].has_value() || runs_over) {
        result.push_back({ir::Expr(0), ir::Expr(size), size.max()});
      } else {
        result.push_back(*regions_[d]);
        // Several shifted tiles may together seem to run over the end.
        Region& region = result.back();
        const bool fits = region.extent.As<ir::IntImm>() != nullptr && region.max_extent <= size.min();
        if (region.is_shifted && fits) region.base = ir::Min(region.base, ir::Expr(size) - region.extent);
      }
    }
    return result;
  }

 private:
  // Whether an open size decides how long the region is, up to the whole axis but not beyond it.
  bool IsShortTile(const Region& region, const ir::Size& size) const {
    return region.max_extent == size.max() && state_.IsOpen(region.extent) && !ir::Equal(region.extent, ir::Expr(size));
  }

  // Adds the loads in e. asked: the conditions under which the value of e is used.
  void AddReads(const ir::Expr& e, const std::vector<ir::Expr>& asked, const Nest& reader, const Names& inner) {
    if (const ir::Select* select = e.As<ir::Select>()) {
      std::vector<ir::Expr> more = asked;
      more.push_back(select->condition);
      AddReads(select->condition, asked, reader, inner);
      AddReads(select->on_true, more, reader, inner);
      AddReads(select->on_false, asked, reader, inner);
      return;
    }
    const ir::Load* load = e.As<ir::Load>();
    if (load != nullptr && load->buffer == producer_.stage.buffer) AddRead(*load, asked, reader, inner);
    ir::ForEachChild(e, [&](const ir::Expr& child) { AddReads(child, asked, reader, inner); });
  }

  void AddRead(const ir::Load& load, const std::vector<ir::Expr>& asked, const Nest& reader, const Names& inner) {
    for (size_t d = 0; d < regions_.size(); ++d) {
      std::optional<Region> region = RegionOf(ir::Substitute(load.indices[d], reader.bindings), inner, state_, ranges_);
      const ir::Size& size = producer_.stage.axes[d].extent;
      // A reader that itself checks the axis' end needs no elements behind it, if those would fill a vector. A shorter
      // excess is kept, because it makes the last vector whole. A tail guard does not count, since it is dropped later.
      const bool ends = std::ranges::any_of(asked, [&](const ir::Expr& condition) {
        return ir::Equal(condition, load.indices[d] < ir::Expr(size)) && !IsTailGuard(reader, condition);
      });
      const bool beyond =
          region.has_value() && (region->max_extent - size.max()) * ir::SizeOf(load.buffer->dtype) >= kVectorBytesMax;
      if (ends && beyond && ir::IsZero(region->base)) region = Region{region->base, ir::Expr(size), size.max()};
      if (!region.has_value()) {
        whole_[d] = true;
      } else if (!regions_[d].has_value()) {
        regions_[d] = region;
      } else if (const auto both = Union(*regions_[d], *region, ranges_)) {
        regions_[d] = both;
      } else {
        whole_[d] = true;
      }
    }
  }

  const State& state_;
  const Nest& producer_;
  const InnerLoops& inside_;
  const ir::Ranges ranges_;
  std::vector<std::optional<Region>> regions_;
  std::vector<bool> whole_;
};

ir::Expr And(const ir::Expr& a, const ir::Expr& b) { return a.defined() ? a && b : b; }

// Removes tail guards around loads from the producer where its stored region covers the whole tile. Such a load is
// legal without the guard, and the innermost loops get cheaper.
ir::Expr WithoutTailGuards(const State& state, const Nest& reader, const ir::Expr& e, const Nest& producer) {
  const ir::Expr mapped =
      ir::MapChildren(e, [&](const ir::Expr& child) { return WithoutTailGuards(state, reader, child, producer); });
  const ir::Select* select = mapped.As<ir::Select>();
  const ir::Load* load = select == nullptr ? nullptr : select->on_true.As<ir::Load>();
  if (load == nullptr || load->buffer != producer.stage.buffer || !IsLoadInBounds(state, reader, *load)) return mapped;
  std::vector<ir::Expr> asked;
  CollectConditions(select->condition, &asked);
  ir::Expr left;
  for (const ir::Expr& condition : asked) {
    if (!IsTailGuard(reader, condition)) left = And(left, condition);
  }
  return left.defined() ? ir::MakeSelect(left, select->on_true, select->on_false) : select->on_true;
}

void RemoveTailGuards(State& state, const Nest& producer) {
  for (Nest& reader : state.nests) {
    if (reader.conditions.tail_guards.empty() || !Reads(reader.stage, producer.stage.buffer.get())) continue;
    reader.stage.value = WithoutTailGuards(state, reader, reader.stage.value, producer);
  }
}

// The elements from one row of a tile's buffer to the next, if an open size decides how many of them are used. With a
// power of two, the short rows of a small size would share few sets of a cache.
int64_t RowStride(int64_t most, ir::DType dtype) {
  return most * ir::SizeOf(dtype) % kCloseRowBytes == 0 ? most + ir::kLineBytes / ir::SizeOf(dtype) : most;
}

// Whether the index is a sum of loops' variables divided by sizes, and the quotient of its last value is below `size`.
// Fusing a loop over an open size with others makes such indices, whose bounds do not tell.
bool IsQuotientBelow(const State& state, const ir::Expr& index, const ir::Size& size, const ir::Ranges& ranges) {
  ir::Expr dividend = index;
  ir::Size divisor = 1;
  while (const ir::Binary* quotient = dividend.As<ir::Binary>()) {
    const std::optional<ir::Size> by = ir::ToSize(quotient->b, state.sizes);
    if (quotient->op != ir::BinaryOp::kFloorDiv || !by.has_value()) break;
    divisor *= *by;
    dividend = ir::Expr(quotient->a);
  }
  const ir::Linear linear = ir::ToLinear(dividend, ranges);
  ir::Linear last = linear;
  for (const auto& [atom, k] : linear.terms) {
    const ir::Var* variable = atom.As<ir::Var>();
    const Loop* loop = variable == nullptr || k < 0 ? nullptr : LoopOf(state, variable->name);
    if (loop == nullptr || !state.IsOpen(loop->extent)) continue;
    const bool is_outermost = std::ranges::none_of(linear.terms, [&](const auto& term) {
      const ir::Var* other = term.first.template As<ir::Var>();
      return other != nullptr && ir::UsesVar(loop->extent, other->name);
    });
    // In a sum, only the inner loop of a split is put at its end; its extent states how much of the outer one's
    // iteration is left.
    if (is_outermost && linear.terms.size() > 1) continue;
    last.Add(atom, -k);
    last.Add(ir::ToLinear(loop->extent - ir::Expr(1), ranges), k);
  }
  return ir::BoundsOf(ir::FromLinear(last) - ir::Expr(divisor * size), ranges).high < 0;
}

// The index in the last iterations of the loops over open sizes that it grows with in equal steps. LoopRanges has their
// largest extents, which may not fit together. varying: only of loops whose length depends on a loop around them, as
// after a peeled split.
ir::Expr AtLastIterations(const State& state, const ir::Expr& index, const ir::Ranges& ranges, bool varying) {
  const ir::Linear linear = ir::ToLinear(index, ranges);
  ir::Linear last = linear;
  for (const auto& [atom, k] : linear.terms) {
    const ir::Var* variable = atom.As<ir::Var>();
    const Loop* loop = variable == nullptr || k < 0 ? nullptr : LoopOf(state, variable->name);
    if (loop == nullptr || !state.IsOpen(loop->extent)) continue;
    if (varying && state.IterationsOf(*loop).has_value()) continue;
    last.Add(atom, -k);
    last.Add(ir::ToLinear(loop->extent - ir::Expr(1), ranges), k);
  }
  return ir::FromLinear(last);
}

// Whether the index is below an open size as the extents of the loops tell, where their ranges alone do not.
bool IsBelowByLoops(const State& state, const ir::Expr& index, const ir::Size& size, const ir::Ranges& ranges) {
  return IsQuotientBelow(state, ir::Simplify(index, ranges), size, ranges) ||
         IsAlwaysBelow(AtLastIterations(state, index, ranges, false), size, ranges) ||
         IsAlwaysBelow(AtLastIterations(state, index, ranges, true), size, ranges);
}

absl::Status CheckComputeAt(const ComputeAt& step, const State& state, const Nest& producer) {
  if (absl::Status status = CheckUnscheduled(state, producer); !status.ok()) return status;
  if (state.IsOutput(producer.stage.buffer.get())) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is an output; it cannot be computed inside a loop", step.stage));
  }
  if (producer.prepared) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is computed before the kernel runs; it cannot be computed inside a loop", step.stage));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Apply(const ComputeAt& step, State& state) {
  Nest* producer = state.FindNest(step.stage);
  if (producer == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  size_t position = 0;
  Nest* target = state.FindLoop(step.loop, &position);
  if (target == nullptr) return absl::NotFoundError(fmt::format("there is no loop {}", step.loop));
  if (target == producer)
    return absl::FailedPreconditionError(fmt::format("loop {} belongs to stage {} itself", step.loop, step.stage));
  if (absl::Status status = CheckComputeAt(step, state, *producer); !status.ok()) return status;
  const Loop& at = target->loops[position];
  if (at.kind == ir::LoopKind::kVectorized || at.kind == ir::LoopKind::kUnrolled) {
    return absl::FailedPreconditionError(fmt::format("loop {} is vectorized or unrolled already", step.loop));
  }
  if (absl::Status status = CheckLoopCanChange(*target, position); !status.ok()) return status;
  const InnerLoops where{state, *target, position, ir::IsShared(producer->storage.scope)};
  HONE_ASSIGN_OR_RETURN(const std::vector<Region> regions, RegionInference(state, *producer, where).Run());

  ir::Ranges ranges = state.LoopRanges();
  ir::Ranges axis_ranges = ir::SizeRanges(state.sizes);
  for (const ir::Axis& axis : producer->stage.reduce_axes) axis_ranges[axis.name] = {0, axis.extent.max() - 1};
  ir::VarMap inside;
  for (size_t d = 0; d < regions.size(); ++d) {
    const ir::Axis& axis = producer->stage.axes[d];
    const Region& region = regions[d];
    Loop& loop = producer->loops[d];
    loop.extent = region.extent;
    loop.max_extent = region.max_extent;
    ranges[axis.name] = {0, region.max_extent - 1};  // the region may be wider than the axis
    const ir::Expr value = ir::Simplify(region.base + ir::MakeVar(axis.name), ranges);
    producer->bindings[axis.name] = value;
    producer->storage.origin.push_back(region.base);
    const bool open_row = d + 1 == regions.size() && state.IsOpen(region.extent);
    producer->storage.shape[d] =
        open_row ? RowStride(region.max_extent, producer->stage.buffer->dtype) : region.max_extent;
    const ir::Expr last = region.base + region.extent - ir::Expr(1);
    axis_ranges[axis.name] = {ir::BoundsOf(region.base, ranges).low, ir::BoundsOf(last, ranges).high};
    // Readers with masked tails or padding may ask for elements outside the producer.
    ir::Expr within;
    const bool below = IsAlwaysBelow(last, axis.extent, ranges) ||
                       (!state.sizes.empty() && IsBelowByLoops(state, last, axis.extent, ranges));
    if (!below) within = ir::MakeVar(axis.name) < ir::Expr(axis.extent);
    if (axis_ranges[axis.name].low < 0) within = And(within, ir::MakeVar(axis.name) >= ir::Expr(0));
    if (within.defined()) inside[axis.name] = within;
  }
  if (!inside.empty()) {
    producer->stage.value = ProtectLoads(producer->stage.value, inside, axis_ranges);
    for (const auto& [axis, within] : inside) CollectConditions(within, &producer->conditions.tail_guards);
  }
  if (!ir::IsShared(producer->storage.scope)) producer->storage.scope = ir::Scope::kLocal;
  producer->place.stage = target->stage.buffer->name;
  producer->place.loop = step.loop;
  RemoveTailGuards(state, *producer);
  return absl::OkStatus();
}

}  // namespace hone::schedule
