// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/sort_network.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

// Short axes are sorted by rank: the rank of an element is the number of elements that precede it, and position k of
// the result takes the element of rank k. Long axes use a sorting network (sort_network.h). Neither has control flow
// that depends on data. Threads sort long axes by the digits of keys; passes/split_axes.cc chooses.

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

// --- By digits (Reduction::kOrder)

constexpr int64_t kPlaceMask = SortedAxis::kPlaces - 1;

// Puts the pairs of every line in order, and returns the first `count` of each. The axis is the last dimension.
Buffer OrderPairs(StageBuilder& builder, Shape shape, const Size& count, const std::function<Expr(Indices i)>& pair) {
  const Buffer pairs = Map(builder, "pair", DType::kInt64, shape, pair);
  const Size extent = shape.back();
  shape.back() = count;
  return builder.Reduce("sorted", DType::kInt64, shape, {extent}, Reduction::kOrder, [&](Indices i, Indices r) {
    Exprs source(i.begin(), i.end());
    source.back() = r[0];
    return MakeLoad(pairs, std::move(source));
  });
}

Expr PlaceOf(const Expr& pair) { return ir::MakeBinary(ir::BinaryOp::kAnd, pair, Expr(kPlaceMask)); }

// The first `count` places of each line. The axis becomes the last dimension.
Buffer PlacesByDigits(StageBuilder& builder, const Buffer& keys, size_t a, const Size& count, bool largest) {
  const auto axis = static_cast<std::ptrdiff_t>(a);
  Shape shape = keys->shape;
  shape.erase(shape.begin() + axis);
  shape.push_back(keys->shape[a]);
  const auto key = [&](Indices i, const Expr& place) {
    Exprs source(i.begin(), i.end() - 1);
    source.insert(source.begin() + axis, place);
    return AscendingKey(Read(keys, std::move(source)), largest);
  };
  const auto high = [&](Indices i) { return key(i, i.back()) * Expr(SortedAxis::kPlaces) + i.back(); };
  if (ir::SizeOf(keys->dtype) <= 4) return OrderPairs(builder, shape, count, high);
  // Keys of 64 bits are sorted by their low half, which has no sign, and then by the high half.
  const Buffer by_low = OrderPairs(builder, shape, shape.back(), [&](Indices i) {
    return ir::MakeBinary(ir::BinaryOp::kXor, high(i), Expr(std::numeric_limits<int64_t>::min()));
  });
  return OrderPairs(builder, shape, count, [&](Indices i) {
    const Expr place = PlaceOf(ReadHere(by_low, i));
    return ir::MakeBinary(ir::BinaryOp::kAnd, key(i, place), Expr(~kPlaceMask)) + place;
  });
}

// --- The operators

// What a TopK takes from which axis.
struct Chosen {
  Buffer x, keys;
  size_t axis;
  Size count;
  bool largest;

  Shape TakenShape() const {
    Shape shape = x->shape;
    shape[axis] = count;
    return shape;
  }
};

absl::StatusOr<Chosen> ReadChosen(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(args.Int("axis", -1), Rank(x)));
  const auto a = static_cast<size_t>(axis);
  HONE_ASSIGN_OR_RETURN(const Size count, ReadCount(args, x->shape[a]));
  return Chosen{x, EmitKeys(builder, x), a, count, args.Int("largest", 1) != 0};
}

// The outputs, given where the elements are.
Buffers EmitChosen(StageBuilder& builder, const Chosen& chosen, const StageBuilder::Body& place) {
  const Buffer position = Map(builder, "position", DType::kInt64, chosen.TakenShape(), place);
  const Buffer values = Map(builder, "topk", chosen.x->dtype, chosen.TakenShape(), [&](Indices i) {
    Exprs source(i.begin(), i.end());
    source[chosen.axis] = ReadHere(position, i);
    return Read(chosen.x, std::move(source));
  });
  return {values, position};
}

OpResult TopK(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(const Chosen c, ReadChosen(args, builder));
  if (TakesNetwork(c.x, c.x->shape[c.axis])) {
    const SortedAxis sorted = SortByNetwork(builder, c.keys, c.axis, c.largest);
    return EmitChosen(builder, c, [&](Indices i) { return sorted.PlaceAt(i, i[c.axis]); });
  }
  const Buffer place = PlacesByRank(builder, c.keys, c.axis, c.count, c.largest);
  return EmitChosen(builder, c, [&](Indices i) { return To(DType::kInt64, ReadHere(place, i)); });
}

// The same for targets whose kernels run on threads.
OpResult DigitTopK(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(const Chosen c, ReadChosen(args, builder));
  const Buffer sorted = PlacesByDigits(builder, c.keys, c.axis, c.count, c.largest);
  return EmitChosen(builder, c, [&](Indices i) {
    Exprs source(i.begin(), i.end());
    source.erase(source.begin() + static_cast<std::ptrdiff_t>(c.axis));
    source.push_back(i[c.axis]);
    return PlaceOf(MakeLoad(sorted, std::move(source)));
  });
}

constexpr OpDef kSortOps[] = {
    {"TopK", Checked<TopK, 1, Elements::kNumber>},
};

constexpr OpDef kDigitSortOps[] = {
    {"DigitTopK", Checked<DigitTopK, 1, Elements::kNumber>, {.label = {"top_k"}}},
};

}  // namespace

std::span<const OpDef> SortOps() { return kSortOps; }
std::span<const OpDef> DigitSortOps() { return kDigitSortOps; }

}  // namespace hone::graph
