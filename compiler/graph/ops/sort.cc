// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/sort_network.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

// Sorting without data-dependent control flow. Short axes are sorted by rank: the rank of an element is the number of
// elements that precede it, and position k of the result takes the element of rank k. Long axes use a sorting network
// (sort_network.h).

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

// k is an attribute before opset 10.
absl::StatusOr<Size> ReadCount(const OpArgs& args, const Size& extent) {
  Size count = args.Int("k", -1);
  if (!HasAttribute(args, "k")) {
    HONE_ASSIGN_OR_RETURN(const Shape counts, args.ConstantSizes(1));
    if (counts.size() != 1) return Malformed("k (input 1) must be one number");
    count = counts[0];
  }
  if (count.min() < 0 || !AlwaysAtMost(count, extent))
    return Malformed(fmt::format("k is {}; the axis has {} elements", count, extent));
  return count;
}

// Converts a float to an integer of the same size whose order is the float's order. Zeros of both signs are equal; all
// NaNs are equal and above all numbers. (Comparing floats would give several NaNs the same rank.)
Expr KeyOf(const Expr& x) {
  const bool wide = ir::SizeOf(x.type().dtype) == 8;
  const ir::Type type{wide ? DType::kInt64 : DType::kInt32, 1};
  const Expr highest =
      ir::MakeInt(type, wide ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int32_t>::max());
  const Expr bits = ir::MakeCall(type, ir::Intrinsic::kReinterpret, {x}), zero = ir::MakeInt(type, 0);
  const Expr ordered = MakeSelect(bits < zero, ir::MakeBinary(ir::BinaryOp::kXor, bits, highest), bits);
  const Expr number = MakeSelect(Equals(x, Like(x, 0)), zero, ordered);
  return MakeSelect(Apply(ir::Intrinsic::kIsNan, x), highest, number);
}

// The buffer of comparison keys: a new stage if the type needs a conversion.
Buffer EmitKeys(StageBuilder& builder, const Buffer& x) {
  if (!ir::IsFloat(x->dtype)) return x;
  const DType dtype = ir::SizeOf(x->dtype) == 8 ? DType::kInt64 : DType::kInt32;
  return Map(builder, "key", dtype, x->shape, [&](Indices i) { return KeyOf(ReadHere(x, i)); });
}

// Returns true if `a` precedes `b`: larger (or smaller) values first, equal ones in their original order (`earlier`).
Expr IsBefore(const Expr& a, const Expr& b, bool largest, const Expr& earlier) {
  return (largest ? a > b : a < b) || (Equals(a, b) && earlier);
}

// Ranking takes work quadratic in the axis length; the network takes about a hundred short stages.
bool TakesNetwork(const Buffer& x, const Size& extent) {
  constexpr int64_t kShort = 256, kComparisonsMax = int64_t{1} << 23;
  if (ir::SizeOf(x->dtype) > 4 || extent.max() <= kShort) return false;
  return Product(x->shape).max() > kComparisonsMax / extent.max();
}

// --- By ranks

Buffer PlacesByRank(StageBuilder& builder, const Buffer& keys, size_t a, const Size& count, bool largest) {
  const Size extent = keys->shape[a];
  const auto at = [&](Indices i, const Expr& position) {
    Exprs source(i.begin(), i.end());
    source[a] = position;
    return source;
  };
  const DType narrow = NarrowestIndex(extent);
  Buffer rank = builder.Reduce("rank", narrow, keys->shape, {extent}, Reduction::kSum, [&](Indices i, Indices r) {
    return To(narrow, IsBefore(Read(keys, at(i, r[0])), ReadHere(keys, i), largest, r[0] < i[a]));
  });
  Shape shape = keys->shape;
  shape[a] = count;
  return builder.Reduce("place", narrow, shape, {extent}, Reduction::kMax, [&](Indices i, Indices r) {
    return MakeSelect(Equals(MakeLoad(rank, at(i, r[0])), To(narrow, i[a])), To(narrow, r[0]), Number(narrow, 0));
  });
}

OpResult TopK(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", -1), Rank(x)));
  const size_t a = static_cast<size_t>(axis);
  const Size extent = x->shape[a];
  HONE_ASSIGN_OR_RETURN(const Size count, ReadCount(args, extent));
  const bool largest = args.Int("largest", 1) != 0;
  const Buffer keys = EmitKeys(builder, x);
  Shape shape = x->shape;
  shape[a] = count;
  Buffer position;
  if (TakesNetwork(x, extent)) {
    const SortedAxis sorted = SortByNetwork(builder, keys, a, largest);
    position = Map(builder, "position", DType::kInt64, shape, [&](Indices i) { return sorted.PlaceAt(i, i[a]); });
  } else {
    const Buffer place = PlacesByRank(builder, keys, a, count, largest);
    position = Map(builder, "position", DType::kInt64, shape,
                   [&](Indices i) { return To(DType::kInt64, ReadHere(place, i)); });
  }
  Buffer values = Map(builder, "topk", x->dtype, shape, [&](Indices i) {
    Exprs source(i.begin(), i.end());
    source[a] = ReadHere(position, i);
    return Read(x, std::move(source));
  });
  return Buffers{values, position};
}

constexpr OpDef kSortOps[] = {
    {"TopK", Checked<TopK, 1, Elements::kNumber>},
};

}  // namespace

std::span<const OpDef> SortOps() { return kSortOps; }

}  // namespace hone::graph
