// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/ops/sort_network.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;

constexpr int64_t kRun = 8;  // length of the runs that are sorted by rank first: a vector of i64

// Packs key and place into one number. No two are equal, and of equal keys the one with the lower place is smaller. The
// padding up to a power of two is above all others.
SortedAxis Pack(StageBuilder& builder, const Buffer& keys, size_t axis, bool descending) {
  const Size extent = keys->shape[axis];
  const auto padded = std::max(kRun, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent.max()))));
  Shape shape = keys->shape;
  shape[axis] = padded;
  Buffer packed = Map(builder, "packed", DType::kInt64, shape, [&](Indices i) {
    const Expr key = AscendingKey(ReadHere(keys, i), descending);
    return MakeSelect(i[axis] < Expr(extent), key, Expr(SortedAxis::kPlaces / 2 - 1)) * Expr(SortedAxis::kPlaces) +
           i[axis];
  });
  return {packed, axis, {padded}};
}

// Returns true if a block must be in descending order: every second block of a size, so that two adjacent blocks form a
// bitonic sequence. The final block, the whole axis, is ascending.
Expr Falls(const Expr& block) { return Equals(FloorMod(block, Expr(2)), Expr(1)); }

// The buffer's shape with the axis split into other parts.
Shape ShapeIn(const SortedAxis& row, const Dims& parts) {
  const Shape& shape = row.buffer->shape;
  Shape seen(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(row.axis));
  seen.insert(seen.end(), parts.begin(), parts.end());
  seen.insert(seen.end(), shape.begin() + static_cast<std::ptrdiff_t>(row.axis + row.parts.size()), shape.end());
  return seen;
}

// Sorts runs of kRun, each in the direction of the block of `size` that contains it.
SortedAxis OrderRuns(StageBuilder& builder, const SortedAxis& row, int64_t size) {
  const Dims dims = {row.Length() / kRun, kRun};
  const size_t run = row.axis;
  const auto at = [&](Indices i, const Expr& k) { return row.At(i, i[run] * Expr(kRun) + k, dims.size()); };
  const Shape shape = ShapeIn(row, dims);
  Buffer rank = builder.Compute("rank", DType::kInt64, shape, [&](Indices i) {
    const Expr falls = Falls(FloorDiv(i[run], Expr(size / kRun))), own = at(i, i[run + 1]);
    Expr before(0);
    for (int64_t k = 0; k < kRun; ++k) {
      const Expr other = at(i, Expr(k));
      before = before + To(DType::kInt64, MakeSelect(falls, other > own, other < own));
    }
    return before;
  });
  Buffer ordered = builder.Compute("run", DType::kInt64, shape, [&](Indices i) {
    Exprs source(i.begin(), i.end());
    Expr found = at(i, Expr(0));
    for (int64_t k = 1; k < kRun; ++k) {
      source[run + 1] = Expr(k);
      found = MakeSelect(Equals(MakeLoad(rank, source), i[run + 1]), at(i, Expr(k)), found);
    }
    return found;
  });
  return {ordered, row.axis, dims};
}

// Exchanges elements `distance` apart that violate the direction of their block of `size`; with `twice`, then also
// elements half as far apart.
SortedAxis Exchange(StageBuilder& builder, const SortedAxis& row, int64_t size, int64_t distance, bool twice) {
  const int64_t near = twice ? distance / 2 : distance;
  Dims dims = {row.Length() / (2 * distance), 2};
  if (twice) dims.push_back(2);
  dims.push_back(near);
  const size_t group = row.axis, last = group + dims.size() - 1;
  Buffer exchanged = builder.Compute("exchange", DType::kInt64, ShapeIn(row, dims), [&](Indices i) {
    const Expr falls = Falls(FloorDiv(i[group], Expr(size / (2 * distance))));
    const auto exchange = [&](const Expr& which, const Expr& a, const Expr& b) {
      const Expr greater = ir::MakeBinary(ir::BinaryOp::kXor, Equals(which, Expr(1)), falls);
      return MakeSelect(greater, Max(a, b), Min(a, b));
    };
    const auto first = [&](const Expr& offset) {
      const Expr start = i[group] * Expr(2 * distance) + offset;
      return exchange(i[group + 1], row.At(i, start, dims.size()), row.At(i, start + Expr(distance), dims.size()));
    };
    if (!twice) return first(i[last]);
    return exchange(i[group + 2], first(i[last]), first(i[last] + Expr(near)));
  });
  return {exchanged, row.axis, std::move(dims)};
}

}  // namespace

Expr AscendingKey(const Expr& key, bool descending) {
  Expr signed_key = To(DType::kInt64, key);
  if (key.type().dtype == DType::kUInt32) signed_key = signed_key - Expr(SortedAxis::kPlaces / 2);
  if (key.type().dtype == DType::kUInt64) {
    signed_key = ir::MakeBinary(ir::BinaryOp::kXor, signed_key, Expr(std::numeric_limits<int64_t>::min()));
  }
  return descending ? Expr(-1) - signed_key : signed_key;
}

Expr SortedAxis::At(Indices i, const Expr& position, size_t seen) const {
  Exprs source(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(axis));
  for (Expr& index : Unflatten(position, parts)) source.push_back(std::move(index));
  source.insert(source.end(), i.begin() + static_cast<std::ptrdiff_t>(axis + seen), i.end());
  return MakeLoad(buffer, std::move(source));
}

Expr SortedAxis::PlaceAt(Indices i, const Expr& position) const {
  return ir::MakeBinary(ir::BinaryOp::kAnd, At(i, position), Expr(kPlaces - 1));
}

SortedAxis SortByNetwork(StageBuilder& builder, const Buffer& keys, size_t axis, bool descending) {
  SortedAxis row = OrderRuns(builder, Pack(builder, keys, axis, descending), kRun);
  const int64_t length = row.Length();
  for (int64_t size = 2 * kRun; size <= length; size *= 2) {
    for (int64_t distance = size / 2; distance >= kRun; distance /= 2) {
      const bool twice = distance >= 2 * kRun;
      row = Exchange(builder, row, size, distance, twice);
      if (twice) distance /= 2;
    }
    row = OrderRuns(builder, row, size);
  }
  return row;
}

Buffer FirstOfKeys(StageBuilder& builder, const SortedAxis& sorted, const Shape& shape, const Size& bounds) {
  Shape searched = shape;
  searched[sorted.axis] = bounds;
  Buffer first;
  const auto step = [&](int64_t size) {
    first = builder.Compute("first", DType::kInt64, searched, [&](Indices i) {
      const Expr known = first != nullptr ? MakeLoad(first, {i.begin(), i.end()}) : Expr(0);
      const Expr next = sorted.At(i, known + Expr(size - 1));
      return known + MakeSelect(next < i[sorted.axis] * Expr(SortedAxis::kPlaces), Expr(size), Expr(0));
    });
  };
  for (int64_t size = sorted.Length() / 2; size >= 1; size /= 2) step(size);
  step(1);  // the last step, which the loop leaves out
  return first;
}

}  // namespace hone::graph
