// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;

absl::Status CheckIndices(const OpArgs& args, size_t input) {
  const Buffer& indices = args.inputs[input];
  if (!ir::IsInt(indices->dtype)) return Malformed(fmt::format("the indices (input {}) must be integers", input));
  return absl::OkStatus();
}

// Rejects reads from a dimension of extent 0, unless the result is empty.
absl::Status CheckReadable(const Size& extent, const Shape& result) {
  if (extent == 0 && Product(result) != 0) return Malformed("there is no element to read: the indexed dimension is 0");
  return absl::OkStatus();
}

OpResult Gather(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckIndices(args, 1));
  const Buffer& x = args.inputs[0];
  const Buffer& indices = args.inputs[1];
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", 0), Rank(x)));
  const Size extent = x->shape[static_cast<size_t>(axis)];
  HONE_RETURN_IF_ERROR(CheckConstantIndices(args, 1, {extent}));
  Shape shape(x->shape.begin(), x->shape.begin() + axis);
  shape.insert(shape.end(), indices->shape.begin(), indices->shape.end());
  shape.insert(shape.end(), x->shape.begin() + axis + 1, x->shape.end());
  HONE_RETURN_IF_ERROR(CheckReadable(extent, shape));
  return Buffers{Map(builder, "gather", x->dtype, shape, [&](Indices i) {
    auto first = i.begin() + axis;
    auto last = first + static_cast<std::ptrdiff_t>(Rank(indices));
    Exprs source(i.begin(), first);
    source.push_back(ReadIndex(indices, Exprs(first, last), extent));
    source.insert(source.end(), last, i.end());
    return Read(x, std::move(source));
  })};
}

OpResult GatherElements(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckIndices(args, 1));
  const Buffer& x = args.inputs[0];
  const Buffer& indices = args.inputs[1];
  if (Rank(x) != Rank(indices)) return Malformed("inputs 0 and 1 must be of one rank");
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", 0), Rank(x)));
  const size_t a = static_cast<size_t>(axis);
  for (size_t d = 0; d < Rank(x); ++d) {
    if (d != a && !AlwaysAtMost(indices->shape[d], x->shape[d])) {
      return Malformed(fmt::format("dimension {} of the indices is larger than that of input 0", d));
    }
  }
  HONE_RETURN_IF_ERROR(CheckConstantIndices(args, 1, {x->shape[a]}));
  HONE_RETURN_IF_ERROR(CheckReadable(x->shape[a], indices->shape));
  return Buffers{Map(builder, "gather_elements", x->dtype, indices->shape, [&](Indices i) {
    Exprs source(i.begin(), i.end());
    source[a] = ReadIndex(indices, source, x->shape[a]);
    return Read(x, std::move(source));
  })};
}

OpResult GatherND(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckIndices(args, 1));
  const Buffer& x = args.inputs[0];
  const Buffer& indices = args.inputs[1];
  const int64_t batch = args.Int("batch_dims", 0);
  if (batch < 0 || Rank(indices) < 1 || batch >= static_cast<int64_t>(std::min(Rank(x), Rank(indices)))) {
    return Malformed(fmt::format("attribute batch_dims is {}; it must be less than both ranks", batch));
  }
  HONE_ASSIGN_OR_RETURN(const int64_t depth, FixedSize(indices->shape.back(), "the number of indices in a tuple"));
  if (depth < 1 || batch + depth > static_cast<int64_t>(Rank(x))) {
    return Malformed(fmt::format("index tuples have {} indices, which does not fit rank {}", depth, Rank(x)));
  }
  HONE_RETURN_IF_ERROR(
      CheckConstantIndices(args, 1, Shape(x->shape.begin() + batch, x->shape.begin() + batch + depth)));
  Shape shape(indices->shape.begin(), indices->shape.end() - 1);
  shape.insert(shape.end(), x->shape.begin() + batch + depth, x->shape.end());
  for (int64_t d = 0; d < batch + depth; ++d) {
    const size_t k = static_cast<size_t>(d);
    HONE_RETURN_IF_ERROR(CheckReadable(x->shape[k], shape));
    if (d < batch && indices->shape[k] != x->shape[k]) return Malformed("the batch dimensions differ");
  }
  return Buffers{Map(builder, "gather_nd", x->dtype, shape, [&](Indices i) {
    Exprs tuple(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(Rank(indices)) - 1);
    Exprs source(i.begin(), i.begin() + batch);
    tuple.push_back(Expr(0));
    for (int64_t d = 0; d < depth; ++d) {
      tuple.back() = Expr(d);
      source.push_back(ReadIndex(indices, tuple, x->shape[static_cast<size_t>(batch + d)]));
    }
    source.insert(source.end(), i.begin() + static_cast<std::ptrdiff_t>(Rank(indices)) - 1, i.end());
    return Read(x, std::move(source));
  })};
}

OpResult ReverseSequence(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  const int64_t batch = args.Int("batch_axis", 1), time = args.Int("time_axis", 0);
  if (Rank(x) < 2 || batch == time || batch < 0 || batch > 1 || time < 0 || time > 1) {
    return Malformed("batch_axis and time_axis must be 0 and 1, one each");
  }
  const size_t b = static_cast<size_t>(batch), t = static_cast<size_t>(time);
  if (args.inputs[1]->shape != Shape{x->shape[b]}) return Malformed("input 1 must have one length per batch entry");
  return Buffers{Map(builder, "reverse_sequence", x->dtype, x->shape, [&](Indices i) {
    Exprs source(i.begin(), i.end());
    Expr length = Min(To(DType::kInt64, Read(args.inputs[1], {i[b]})), Expr(x->shape[t]));
    source[t] = MakeSelect(i[t] < length, length - Expr(1) - i[t], i[t]);
    return Read(x, std::move(source));
  })};
}

// --- Operators whose output size is determined by a constant input.

// Limit on positions: each takes about 400 bytes of expressions.
absl::Status CheckSelected(size_t positions) {
  constexpr size_t kPositionsMax = size_t{1} << 20;
  if (positions <= kPositionsMax) return absl::OkStatus();
  return Unsupported(fmt::format("it selects {} elements; at most {} are supported", positions, kPositionsMax));
}

OpResult Compress(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(std::vector<double> condition, ConstantNumbers(args, 1));
  const bool flat = !HasAttribute(args, "axis");
  size_t axis = 0;
  if (!flat) {
    HONE_ASSIGN_OR_RETURN(int64_t normal, NormalizeAxis(args.Int("axis", 0), Rank(x)));
    axis = static_cast<size_t>(normal);
  }
  HONE_ASSIGN_OR_RETURN(const int64_t extent, FixedSize(flat ? Product(x->shape) : x->shape[axis], "the dimension"));
  Dims kept;
  for (size_t k = 0; k < condition.size() && static_cast<int64_t>(k) < extent; ++k) {
    if (condition[k] != 0) kept.push_back(static_cast<int64_t>(k));
  }
  HONE_RETURN_IF_ERROR(CheckSelected(kept.size()));
  Shape shape = flat ? Shape{0} : x->shape;
  shape[axis] = static_cast<int64_t>(kept.size());
  Buffer table;  // a stage of its own, because the condition may be long
  if (!kept.empty()) {
    table = builder.Compute("kept", DType::kInt64, {shape[axis]}, [&](Indices i) { return Table(i[0], kept); });
  }
  return Buffers{Map(builder, "compress", x->dtype, shape, [&](Indices i) {
    Expr position = table == nullptr ? Expr(0) : MakeLoad(table, {i[axis]});
    if (flat) return Read(x, Unflatten(position, x->shape));
    Exprs source(i.begin(), i.end());
    source[axis] = position;
    return Read(x, std::move(source));
  })};
}

OpResult NonZero(const OpArgs& args, StageBuilder& builder) {
  const Shape& from = args.inputs[0]->shape;
  HONE_ASSIGN_OR_RETURN(std::vector<double> values, ConstantNumbers(args, 0));
  Dims positions;
  for (size_t k = 0; k < values.size(); ++k) {
    if (values[k] != 0) positions.push_back(static_cast<int64_t>(k));
  }
  HONE_RETURN_IF_ERROR(CheckSelected(positions.size()));
  const Shape shape = {static_cast<int64_t>(from.size()), static_cast<int64_t>(positions.size())};
  return Buffers{builder.Compute("nonzero", DType::kInt64, shape, [&](Indices i) {
    if (positions.empty() || from.empty()) return Expr(0);
    return Choose(i[0], Unflatten(Table(i[1], positions), from));
  })};
}

// The index range for random test data: the elements of the indexed dimension.
void IndexRange(const OpArgs& args, size_t input, double* low, double* high) {
  if (input != 1) return;
  const Shape& shape = args.inputs[0]->shape;
  int64_t extent = 0;
  if (args.node.op == "GatherND") {
    for (const Size& size : shape) extent = extent == 0 ? size.max() : std::min(extent, size.max());
  } else {
    absl::StatusOr<int64_t> axis = NormalizeAxis(args.Int("axis", 0), shape.size());
    if (axis.ok()) extent = shape[static_cast<size_t>(*axis)].max();
  }
  *low = 0;
  *high = static_cast<double>(std::max<int64_t>(extent - 1, 0));
}

void LengthRange(const OpArgs& args, size_t input, double* low, double* high) {
  if (input != 1) return;
  const size_t time = args.Int("time_axis", 0) == 0 ? 0 : 1;
  *low = 1;
  const int64_t longest = Rank(args.inputs[0]) > time ? args.inputs[0]->shape[time].max() : 1;
  *high = static_cast<double>(std::max<int64_t>(1, longest));  // also of nothing
}

constexpr OpDef kGatherOps[] = {
    {"Compress", Checked<Compress, 2>, {.movement = Movement::kOnce}},
    {"Gather", Checked<Gather, 2>, {.axes = {AxisForm::kAxis}}, IndexRange},
    {"GatherElements", Checked<GatherElements, 2>, {}, IndexRange},
    {"GatherND", Checked<GatherND, 2>, {}, IndexRange},
    {"NonZero", Checked<NonZero, 1>},
    {"ReverseSequence", Checked<ReverseSequence, 2>, {}, LengthRange},
};

}  // namespace

std::span<const OpDef> GatherOps() { return kGatherOps; }

}  // namespace hone::graph
