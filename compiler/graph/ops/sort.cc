#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

// Sorting without data-dependent control flow: the rank of an element is the number of elements that go before it,
// and place k of the result takes the element of rank k.

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

// Whether `a` goes before `b`, where the largest (or the smallest) is first and equals keep their order (`earlier`).
// NaN compares false with everything, which would give several elements one rank: it counts as larger than all numbers.
Expr IsBefore(const Expr& a, const Expr& b, bool largest, const Expr& earlier) {
  Expr before = (largest ? a > b : a < b) || (Equals(a, b) && earlier);
  if (!ir::IsFloat(b.type().dtype)) return before;
  const Expr a_nan = Apply(ir::Intrinsic::kIsNan, a), b_nan = Apply(ir::Intrinsic::kIsNan, b);
  if (largest) return MakeSelect(b_nan, a_nan && earlier, a_nan || before);
  return MakeSelect(b_nan, Not(a_nan) || earlier, before);
}

OpResult TopK(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", -1), Rank(x)));
  const size_t a = static_cast<size_t>(axis);
  const int64_t extent = x->shape[a];
  HONE_ASSIGN_OR_RETURN(int64_t count, ReadCount(args, extent));
  const bool largest = args.Int("largest", 1) != 0;
  auto at = [&](Indices i, const Expr& position) {
    Exprs source(i.begin(), i.end());
    source[a] = position;
    return source;
  };
  Buffer rank = builder.Reduce("rank", DType::kInt64, x->shape, {extent}, Reduction::kSum, [&](Indices i, Indices r) {
    return To(DType::kInt64, IsBefore(Read(x, at(i, r[0])), Read(x, at(i, i[a])), largest, r[0] < i[a]));
  });
  Dims shape = x->shape;
  shape[a] = count;
  Buffer position = builder.Reduce(
      "position", DType::kInt64, shape, {extent}, Reduction::kMax,
      [&](Indices i, Indices r) { return MakeSelect(Equals(MakeLoad(rank, at(i, r[0])), i[a]), r[0], Expr(0)); });
  Buffer values =
      Map(builder, "topk", x->dtype, shape, [&](Indices i) { return Read(x, at(i, ReadHere(position, i))); });
  return Buffers{values, position};
}

constexpr OpDef kSortOps[] = {
    {"TopK", Checked<TopK, 1, Elements::kNumber>},
};

}  // namespace

std::span<const OpDef> SortOps() { return kSortOps; }

}  // namespace hone::graph
