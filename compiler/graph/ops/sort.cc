#include <bit>
#include <limits>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

// Sorting without data-dependent control flow. Short axes by ranks: the rank of an element is the number of elements
// that go before it, and place k of the result takes the element of rank k. Long ones by Batcher's bitonic network
// ("Sorting networks and their applications", 1968), whose comparisons are the same whatever the data.

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

// k was an attribute before opset 10.
absl::StatusOr<int64_t> ReadCount(const OpArgs& args, int64_t extent) {
  int64_t count = args.Int("k", -1);
  if (!HasAttribute(args, "k")) {
    HONE_ASSIGN_OR_RETURN(Dims counts, args.ConstantInts(1));
    if (counts.size() != 1) return Malformed("k (input 1) must be one number");
    count = counts[0];
  }
  if (count < 0 || count > extent) return Malformed(fmt::format("k is {}; the axis has {} elements", count, extent));
  return count;
}

// The float as an integer of as many bits in the same order. Zeros of either sign are equal, and NaNs are, above all
// numbers: with comparisons of floats, which are false for them, several elements would have one rank.
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

// What is compared, in a buffer of its own where it has to be made.
Buffer EmitKeys(StageBuilder& builder, const Buffer& x) {
  if (!ir::IsFloat(x->dtype)) return x;
  const DType dtype = ir::SizeOf(x->dtype) == 8 ? DType::kInt64 : DType::kInt32;
  return Map(builder, "key", dtype, x->shape, [&](Indices i) { return KeyOf(ReadHere(x, i)); });
}

// Whether `a` goes before `b`, where the largest (or the smallest) is first and equals keep their order (`earlier`).
Expr IsBefore(const Expr& a, const Expr& b, bool largest, const Expr& earlier) {
  return (largest ? a > b : a < b) || (Equals(a, b) && earlier);
}

// --- By a network

constexpr int64_t kRun = 8;  // elements that are brought into order by their ranks: a vector of i64
constexpr int64_t kPlaces = int64_t{1} << 32;

// Elements that differ, to be put in ascending order: `leading` dimensions, those that the axis is seen as, the rest.
struct Row {
  Buffer buffer;
  size_t leading;
  Dims axis;  // product: a power of two

  Dims ShapeAs(const Dims& other) const {
    Dims shape(buffer->shape.begin(), buffer->shape.begin() + static_cast<std::ptrdiff_t>(leading));
    shape.insert(shape.end(), other.begin(), other.end());
    const auto rest = buffer->shape.begin() + static_cast<std::ptrdiff_t>(leading + axis.size());
    shape.insert(shape.end(), rest, buffer->shape.end());
    return shape;
  }
  // At a position of the axis; the other indices are those of an element of ShapeAs(dims), `seen` being dims.size().
  Expr At(Indices i, size_t seen, const Expr& position) const {
    Exprs source(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(leading));
    for (Expr& index : Unflatten(position, axis)) source.push_back(std::move(index));
    source.insert(source.end(), i.begin() + static_cast<std::ptrdiff_t>(leading + seen), i.end());
    return MakeLoad(buffer, std::move(source));
  }
};

// The key and the place in one number: of equal keys the first is the least, and no two are equal. What the axis lacks
// to a power of two is above all.
Row Pack(StageBuilder& builder, const Buffer& keys, size_t axis, bool largest, int64_t padded) {
  const int64_t extent = keys->shape[axis];
  Dims shape = keys->shape;
  shape[axis] = padded;
  Buffer packed = Map(builder, "packed", DType::kInt64, shape, [&](Indices i) {
    Expr key = To(DType::kInt64, ReadHere(keys, i));
    if (keys->dtype == DType::kUInt32) key = key - Expr(kPlaces / 2);
    if (largest) key = Expr(-1) - key;
    return MakeSelect(i[axis] < Expr(extent), key, Expr(kPlaces / 2 - 1)) * Expr(kPlaces) + i[axis];
  });
  return {packed, axis, {padded}};
}

// Whether a block is to be in descending order: every second one of its size, so that two that follow one another rise
// and fall. Of the last, which is all, there is but one.
Expr Falls(const Expr& block) { return Equals(FloorMod(block, Expr(2)), Expr(1)); }

// Runs of kRun, in the order of the block of `size` that they are in.
Row OrderRuns(StageBuilder& builder, const Row& row, int64_t size) {
  const Dims dims = {Product(row.axis) / kRun, kRun};
  const size_t run = row.leading;
  const auto at = [&](Indices i, const Expr& k) { return row.At(i, dims.size(), i[run] * Expr(kRun) + k); };
  const Dims shape = row.ShapeAs(dims);
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
  return {ordered, row.leading, dims};
}

// Elements `distance` apart are exchanged where they are not in the order of the block of `size` that they are in; then
// those half of that apart, if `twice`.
Row Exchange(StageBuilder& builder, const Row& row, int64_t size, int64_t distance, bool twice) {
  const int64_t near = twice ? distance / 2 : distance;
  Dims dims = {Product(row.axis) / (2 * distance), 2};
  if (twice) dims.push_back(2);
  dims.push_back(near);
  const size_t group = row.leading, last = group + dims.size() - 1;
  Buffer exchanged = builder.Compute("exchange", DType::kInt64, row.ShapeAs(dims), [&](Indices i) {
    const Expr falls = Falls(FloorDiv(i[group], Expr(size / (2 * distance))));
    const auto exchange = [&](const Expr& which, const Expr& a, const Expr& b) {
      const Expr greater = ir::MakeBinary(ir::BinaryOp::kXor, Equals(which, Expr(1)), falls);
      return MakeSelect(greater, Max(a, b), Min(a, b));
    };
    const auto first = [&](const Expr& offset) {
      const Expr start = i[group] * Expr(2 * distance) + offset;
      return exchange(i[group + 1], row.At(i, dims.size(), start), row.At(i, dims.size(), start + Expr(distance)));
    };
    if (!twice) return first(i[last]);
    return exchange(i[group + 2], first(i[last]), first(i[last] + Expr(near)));
  });
  return {exchanged, row.leading, std::move(dims)};
}

Row SortByNetwork(StageBuilder& builder, Row row) {
  const int64_t extent = Product(row.axis);
  row = OrderRuns(builder, row, kRun);
  for (int64_t size = 2 * kRun; size <= extent; size *= 2) {
    for (int64_t distance = size / 2; distance >= kRun; distance /= 2) {
      const bool twice = distance >= 2 * kRun;
      row = Exchange(builder, row, size, distance, twice);
      if (twice) distance /= 2;
    }
    row = OrderRuns(builder, row, size);
  }
  return row;
}

// Ranks take the square of the axis, the network about a hundred short stages.
bool TakesNetwork(const Buffer& x, int64_t extent) {
  constexpr int64_t kShort = 256, kFewComparisons = int64_t{1} << 23;
  if (ir::SizeOf(x->dtype) > 4 || extent <= kShort) return false;
  return extent > kFewComparisons / extent || Product(x->shape) > kFewComparisons / extent;
}

// --- By ranks

Buffer PlacesByRank(StageBuilder& builder, const Buffer& keys, size_t a, int64_t count, bool largest) {
  const int64_t extent = keys->shape[a];
  const auto at = [&](Indices i, const Expr& position) {
    Exprs source(i.begin(), i.end());
    source[a] = position;
    return source;
  };
  const DType narrow = NarrowestIndex(extent);
  Buffer rank = builder.Reduce("rank", narrow, keys->shape, {extent}, Reduction::kSum, [&](Indices i, Indices r) {
    return To(narrow, IsBefore(Read(keys, at(i, r[0])), ReadHere(keys, i), largest, r[0] < i[a]));
  });
  Dims shape = keys->shape;
  shape[a] = count;
  return builder.Reduce("place", narrow, shape, {extent}, Reduction::kMax, [&](Indices i, Indices r) {
    return MakeSelect(Equals(MakeLoad(rank, at(i, r[0])), To(narrow, i[a])), To(narrow, r[0]), Number(narrow, 0));
  });
}

OpResult TopK(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", -1), Rank(x)));
  const size_t a = static_cast<size_t>(axis);
  const int64_t extent = x->shape[a];
  HONE_ASSIGN_OR_RETURN(int64_t count, ReadCount(args, extent));
  const bool largest = args.Int("largest", 1) != 0;
  const Buffer keys = EmitKeys(builder, x);
  Dims shape = x->shape;
  shape[a] = count;
  Buffer position;
  if (TakesNetwork(x, extent)) {
    const auto padded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
    const Row row = SortByNetwork(builder, Pack(builder, keys, a, largest, padded));
    position = Map(builder, "position", DType::kInt64, shape, [&](Indices i) {
      return ir::MakeBinary(ir::BinaryOp::kAnd, row.At(i, 1, i[a]), Expr(kPlaces - 1));
    });
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
