// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/decompose/attention_core.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

using ir::DType;

// The least finite number of a float type.
double LeastOf(DType dtype) {
  if (dtype == DType::kFloat16) return -65504;
  if (dtype == DType::kFloat64) return -1.7976931348623157e308;
  return dtype == DType::kBFloat16 ? -3.3895313892515355e38 : -3.4028234663852886e38;
}

// Splits the dimension of heads, x[batch, heads or 1, ...], in two: [batch, key heads or 1, heads of a group or 1,
// ...].
ValueId SplitGroups(Decomposition& b, ValueId x, const Heads& heads) {
  if (b.Rank(x) < 4) return x;
  if (b.KnownExtent(x, 1) == 1) return b.Unsqueeze(x, {1});
  const ValueId groups = b.List({heads.key_heads, heads.heads / heads.key_heads});
  return b.Op("Reshape", {x, b.Concat({b.ShapeOf(x, 0, 1), groups, b.ShapeOf(x, 2, 2)}, 0)});
}

// Softmax along the last dimension with one more score, which takes its share and has no column.
ValueId SoftmaxWithSink(Decomposition& b, ValueId scores, ValueId sink) {
  const Attributes last = {{"axes", std::vector<int64_t>{-1}}};
  const ValueId most = b.Op("Max", {b.Op("ReduceMax", {scores}, last), sink});
  const ValueId powers = b.Op("Exp", {b.Sub(scores, most)});
  const ValueId sum = b.Op("ReduceSum", {powers, b.List({-1})});
  return b.Div(powers, b.Add(sum, b.Op("Exp", {b.Sub(sink, most)})));
}

// The scores of the products, with everything that is added to them and hidden from them.
ValueId FinishScores(Decomposition& b, ValueId products, const Heads& heads, const Scores& scores, bool grouped) {
  if (scores.softcap != 0) {
    const ValueId cap = b.Like(products, scores.softcap);
    products = b.Mul(b.Op("Tanh", {b.Div(products, cap)}), cap);
  }
  for (ValueId bias : scores.biases) products = b.Add(products, grouped ? SplitGroups(b, bias, heads) : bias);
  if (scores.visible == kAbsent) return products;
  const ValueId visible = grouped ? SplitGroups(b, scores.visible, heads) : scores.visible;
  return b.Where(visible, products, b.Like(products, LeastOf(b.ElementType(products))));
}

// The sink per head, in a shape that broadcasts to the scores.
ValueId SinkOf(Decomposition& b, const Heads& heads, ValueId sink, DType dtype, bool grouped) {
  sink = b.Cast(sink, dtype);
  if (b.Rank(sink) == 0) return sink;
  if (!grouped) return b.Reshape(sink, {heads.heads, 1, 1});
  return b.Reshape(sink, {heads.key_heads, heads.heads / heads.key_heads, 1, 1});
}

// The mask of com.microsoft's Attention as bool, with 4 dimensions.
absl::StatusOr<ValueId> MaskOf(Decomposition& b, ValueId mask, ValueId queries, ValueId keys) {
  switch (b.Rank(mask)) {
    case 1: {
      if (b.SameExtent(mask, 0, queries, 0)) return KeysBefore(b, keys, 2, mask);
      const std::optional<int64_t> count = b.KnownExtent(mask, 0), batch = b.KnownExtent(queries, 0);
      if (count && batch && *count != 2 * *batch) {
        return Unsupported("a mask of cumulative lengths is not supported; use a mask of one number per key");
      }
      const Values ends_and_starts = b.Ops("Split", {mask}, 2, {{"axis", int64_t{0}}});
      return b.Op("And", {KeysBefore(b, keys, 2, ends_and_starts[0]),
                          b.Op("Not", {KeysBefore(b, keys, 2, ends_and_starts[1])})});
    }
    case 2:
      return b.Op("Greater", {b.Unsqueeze(mask, {1, 2}), b.Like(mask, 0)});
    case 3:
      return b.Op("Greater", {b.Unsqueeze(mask, {1}), b.Like(mask, 0)});
    case 4: {
      // [batch, 1, positions, positions] for the longest sequence: the rows are those of the queries.
      const ValueId total = b.ShapeOf(keys, 2, 1);
      const ValueId first = b.Sub(total, b.ShapeOf(queries, 1, 1));
      mask = b.Op("Slice", {mask, b.Concat({first, b.List({0})}, 0), b.Concat({total, total}, 0), b.List({2, 3})});
      return b.Op("Greater", {mask, b.Like(mask, 0)});
    }
    default:
      return Malformed(fmt::format("the mask has {} dimensions; it must have 1 to 4", b.Rank(mask)));
  }
}

}  // namespace

int64_t ReadHeads(Decomposition& b) {
  const int64_t heads = b.Int("num_heads", 0);
  if (heads < 1) b.Fail(Malformed(fmt::format("attribute num_heads is {}; it must be 1 or more", heads)));
  return std::max<int64_t>(heads, 1);
}

ValueId SplitHeads(Decomposition& b, ValueId x, int64_t heads) {
  return b.Transpose(b.Reshape(x, {0, 0, heads, -1}), {0, 2, 1, 3});
}

ValueId PerHead(Decomposition& b, ValueId scores, const Heads& heads) {
  if (heads.heads == heads.key_heads) return scores;
  return b.Op("Reshape",
              {scores, b.Concat({b.ShapeOf(scores, 0, 1), b.List({heads.heads}), b.ShapeOf(scores, 3, 2)}, 0)});
}

ValueId KeysBefore(Decomposition& b, ValueId keys, int64_t key_axis, ValueId limits) {
  return b.Op("Less", {b.Positions(keys, key_axis), b.Unsqueeze(b.Cast(limits, DType::kInt64), {1, 2, 3})});
}

ValueId CausalMask(Decomposition& b, ValueId queries, int64_t query_axis, ValueId keys, int64_t key_axis,
                   ValueId first) {
  const ValueId rows = b.Unsqueeze(b.Add(b.Positions(queries, query_axis), first), {1});
  return b.Op("LessOrEqual", {b.Positions(keys, key_axis), rows});
}

Attended Attend(Decomposition& b, const Heads& heads, const Scores& scores) {
  const int64_t group = heads.heads / heads.key_heads;
  const bool grouped = group > 1;
  const double size = static_cast<double>(b.Extent(heads.k, 3));
  const DType dtype = b.ElementType(heads.q);
  const ValueId scale = b.Number(dtype, scores.scale == 0 ? 1 / std::sqrt(size) : scores.scale);
  ValueId q = grouped ? b.Transpose(b.Reshape(heads.q, {0, 0, heads.key_heads, group, -1}), {0, 2, 3, 1, 4})
                      : SplitHeads(b, heads.q, heads.heads);
  ValueId k = b.Transpose(heads.k, {0, 1, 3, 2}), v = heads.v;
  if (grouped) {
    k = b.Unsqueeze(k, {2});
    v = b.Unsqueeze(v, {2});
  }
  // Sums of 16-bit products could overflow before they are scaled.
  const bool narrow = ir::SizeOf(dtype) == 2;
  if (narrow) q = b.Mul(q, scale);
  ValueId products = b.MatMul(q, k);
  if (!narrow) products = b.Mul(products, scale);
  const ValueId finished = FinishScores(b, products, heads, scores, grouped);
  const ValueId probabilities = scores.sink == kAbsent
                                    ? b.Op("Softmax", {finished}, {{"axis", int64_t{-1}}})
                                    : SoftmaxWithSink(b, finished, SinkOf(b, heads, scores.sink, dtype, grouped));
  const ValueId sums = b.MatMul(probabilities, v);
  const ValueId rows =
      b.Transpose(sums, grouped ? std::vector<int64_t>{0, 3, 1, 2, 4} : std::vector<int64_t>{0, 2, 1, 3});
  const int64_t width = heads.heads * b.Extent(heads.v, 3);
  return {b.Reshape(rows, {0, 0, width}), finished, probabilities};
}

absl::StatusOr<Values> AttendProjected(Decomposition& b, const ProjectedAttention& projected) {
  const int64_t heads = ReadHeads(b);
  ValueId k = SplitHeads(b, projected.k, heads), v = SplitHeads(b, projected.v, heads);
  ValueId first = b.Number(DType::kInt64, 0);
  if (projected.past != kAbsent) {
    const Values past = b.Split(projected.past, 0, {1, 1});
    first = b.Squeeze(b.ShapeOf(projected.past, 3, 1), {0});
    k = b.Concat({b.Squeeze(past[0], {0}), k}, 2);
    v = b.Concat({b.Squeeze(past[1], {0}), v}, 2);
  }
  Scores scores{.scale = b.Float("scale", 0)};
  if (projected.mask != kAbsent) {
    HONE_ASSIGN_OR_RETURN(const ValueId mask, MaskOf(b, projected.mask, projected.q, k));
    const DType dtype = b.ElementType(projected.q);
    const double hidden = b.Float("mask_filter_value", -10000);
    scores.biases.push_back(b.Where(mask, b.Number(dtype, 0), b.Number(dtype, hidden)));
  }
  if (projected.bias != kAbsent) scores.biases.push_back(projected.bias);
  if (b.Int("unidirectional", 0) != 0) scores.visible = CausalMask(b, projected.q, 1, k, 2, first);
  const Attended attended = Attend(b, {.q = projected.q, .k = k, .v = v, .heads = heads, .key_heads = heads}, scores);
  Values outputs = {attended.output, kAbsent};
  if (b.IsOutputUsed(1)) outputs[1] = b.Concat({b.Unsqueeze(k, {0}), b.Unsqueeze(v, {0})}, 0);
  return outputs;
}

}  // namespace hone::graph::decompose
