// SPDX-License-Identifier: Apache-2.0
// Inverse of com.microsoft: inverses of square matrices.
#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;

constexpr int64_t kInverseSizeMax = 32;

// One step of Gauss-Jordan elimination with row exchange. `a` is [batch..., m, columns], whose column 0 is column
// `step` of the matrix. Returns [batch..., m, columns - 1]: without that column, which has become a unit vector.
Buffer EliminateColumn(StageBuilder& builder, const Buffer& a, int64_t step) {
  const DType wide = a->dtype;
  const size_t rows_axis = Rank(a) - 2;
  const int64_t m = a->shape[rows_axis].value();
  const Shape batch(a->shape.begin(), a->shape.end() - 2);
  const auto at = [&](Indices i, const Expr& row, const Expr& column) {
    Exprs source(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(batch.size()));
    source.push_back(row);
    source.push_back(column);
    return Read(a, std::move(source));
  };
  const Expr first(step), zero(0), one(1);
  const auto magnitude = [&](Indices i, const Expr& r) { return MakeUnary(ir::UnaryOp::kAbs, at(i, r + first, zero)); };
  const Buffer largest = builder.Reduce("largest", wide, batch, {m - step}, ir::Reduction::kMax,
                                        [&](Indices i, Indices r) { return magnitude(i, r[0]); });
  const Buffer row =
      builder.Reduce("row", DType::kInt64, batch, {m - step}, ir::Reduction::kMin, [&](Indices i, Indices r) {
        return MakeSelect(magnitude(i, r[0]) < ReadHere(largest, i), Expr(m - 1), r[0] + first);
      });
  Shape shape = a->shape;
  shape.back() -= 1;
  return builder.Compute("eliminated", wide, shape, [&](Indices i) {
    const Expr chosen = MakeLoad(row, Exprs(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(batch.size())));
    const Expr& own = i[rows_axis];
    const Expr source = MakeSelect(Equals(own, chosen), first, own);  // the first row is where the chosen one was
    const Expr column = i[rows_axis + 1] + one;
    const Expr scaled = at(i, chosen, column) / at(i, chosen, zero);
    return MakeSelect(Equals(own, first), scaled, at(i, source, column) - at(i, source, zero) * scaled);
  });
}

OpResult Inverse(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  if (Rank(x) < 2 || x->shape.back() != x->shape[Rank(x) - 2]) return Malformed("input 0 must be square matrices");
  HONE_ASSIGN_OR_RETURN(const int64_t m, FixedSize(x->shape.back(), "the number of rows"));
  if (m > kInverseSizeMax) {
    return Unsupported(fmt::format("input 0 has {} rows; the inverse of at most {} is supported", m, kInverseSizeMax));
  }
  if (m == 0) return Buffers{x};
  const DType wide = ComputeType(x->dtype);
  Shape shape = x->shape;
  shape.back() = 2 * m;
  Buffer state = Map(builder, "with_unit", wide, shape, [&](Indices i) {
    const Expr& row = i[Rank(x) - 2];
    const Expr& column = i[Rank(x) - 1];
    Exprs source(i.begin(), i.end());
    source.back() = Min(column, Expr(m - 1));
    const Expr unit = MakeSelect(Equals(column - Expr(m), row), Number(wide, 1), Number(wide, 0));
    return MakeSelect(column < Expr(m), Read(x, std::move(source)), unit);
  });
  for (int64_t step = 0; step < m; ++step) state = EliminateColumn(builder, state, step);
  return Buffers{Map(builder, "inverse", x->dtype, x->shape, [&](Indices i) { return ReadHere(state, i); })};
}

constexpr OpDef kInverseOps[] = {
    {"Inverse", Checked<Inverse, 1, Elements::kFloat>},
};

}  // namespace

std::span<const OpDef> InverseOps() { return kInverseOps; }

}  // namespace hone::graph
