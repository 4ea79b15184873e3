// SPDX-License-Identifier: Apache-2.0
// Rules for normalizations of com.microsoft, and for those that exporters write without a domain.
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

// The mean of squares along the last dimensions from `axis` on, with dimensions kept, and 1 / sqrt(mean + epsilon).
ValueId InverseRoot(Decomposition& b, ValueId x, int64_t axis, double epsilon) {
  const int64_t rank = static_cast<int64_t>(b.Rank(x));
  std::vector<int64_t> axes;
  for (int64_t k = axis < 0 ? axis + rank : axis; k < rank; ++k) axes.push_back(k);
  const ValueId wide = b.Cast(x, ir::DType::kFloat32);
  const ValueId mean = b.Op("ReduceMean", {b.Mul(wide, wide)}, {{"axes", axes}});
  return b.Op("Reciprocal", {b.Op("Sqrt", {b.Add(mean, b.Like(mean, epsilon))})});
}

// Inputs: x, scale. Outputs: y, 1 / root of the mean of squares.
absl::StatusOr<Values> SimplifiedLayerNormalization(Decomposition& b) {
  const int64_t axis = b.Int("axis", -1);
  const double epsilon = b.Float("epsilon", 1e-5);
  const ValueId y = b.Op("RMSNormalization", {b.Input(0), b.Input(1)}, {{"axis", axis}, {"epsilon", epsilon}});
  return Values{y, b.IsOutputUsed(1) ? InverseRoot(b, b.Input(0), axis, epsilon) : kAbsent};
}

// The sum of x, skip and, if the node has it, a bias.
ValueId SumWithSkip(Decomposition& b, size_t bias) {
  const ValueId sum = b.Add(b.Input(0), b.Input(1));
  return b.Has(bias) ? b.Add(sum, b.Input(bias)) : sum;
}

// Returns y, the mean and the inverse deviation. Statistics that nothing reads are kAbsent.
Values LayerNormalized(Decomposition& b, ValueId x, ValueId scale, ValueId shift, double epsilon) {
  Values inputs = {x, scale};
  if (shift != kAbsent) inputs.push_back(shift);
  const size_t outputs = b.IsOutputUsed(2) ? 3 : b.IsOutputUsed(1) ? 2 : 1;
  Values made = b.Ops("LayerNormalization", inputs, outputs, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  made.resize(3, kAbsent);
  return made;
}

// Inputs: x, skip, scale, shift (optional), bias (optional). Outputs: y, mean, inverse deviation, sum.
absl::StatusOr<Values> SkipLayerNormalization(Decomposition& b) {
  const ValueId sum = SumWithSkip(b, 4);
  Values outputs = LayerNormalized(b, sum, b.Input(2), b.Input(3), b.Float("epsilon", 1e-12));
  outputs.push_back(sum);
  return outputs;
}

// Inputs: x, skip, scale, bias (optional). Outputs: y, nothing, 1 / root of the mean of squares, sum.
absl::StatusOr<Values> SkipSimplifiedLayerNormalization(Decomposition& b) {
  if (b.IsOutputUsed(1)) return Unsupported("output 1 (the mean) is not made, because no mean is subtracted");
  const ValueId sum = SumWithSkip(b, 3);
  const double epsilon = b.Float("epsilon", 1e-5);
  const ValueId y = b.Op("RMSNormalization", {sum, b.Input(2)}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  return Values{y, kAbsent, b.IsOutputUsed(2) ? InverseRoot(b, sum, -1, epsilon) : kAbsent, sum};
}

// The rows of the table of positions: those of the position ids, or the first ones, as many as there are ids.
ValueId EmbeddedPositions(Decomposition& b, ValueId ids, ValueId table, ValueId positions) {
  if (positions != kAbsent) return b.Op("Gather", {table, positions});
  return b.Op("Slice", {table, b.List({0}), b.ShapeOf(ids, 1, 1), b.List({0})});
}

// Per row of the batch, how many elements of the mask are 1, as i32; 0 without a mask.
ValueId CountMask(Decomposition& b, ValueId ids, ValueId mask) {
  if (mask == kAbsent) return b.Op("Expand", {b.Number(ir::DType::kInt32, 0), b.ShapeOf(ids, 0, 1)});
  const ValueId ones = b.Cast(b.Op("Equal", {mask, b.Like(mask, 1)}), ir::DType::kInt32);
  return b.Op("ReduceSum", {ones, b.List({1})}, {{"keepdims", int64_t{0}}});
}

// Inputs: ids, segment ids (optional), tables of words, positions and segments (optional), scale, shift, mask
// (optional), position ids (optional). Outputs: y, count of the mask, sum of the embeddings.
absl::StatusOr<Values> EmbedLayerNormalization(Decomposition& b) {
  const ValueId ids = b.Input(0), segments = b.Input(1);
  if (b.Rank(ids) != 2) return Malformed("input 0 must be [batch, positions]");
  if ((segments == kAbsent) != (b.Input(4) == kAbsent)) {
    return Malformed("segment ids (input 1) and their table (input 4) must be given together");
  }
  ValueId sum = b.Add(b.Op("Gather", {b.Input(2), ids}), EmbeddedPositions(b, ids, b.Input(3), b.Input(8)));
  if (segments != kAbsent) sum = b.Add(sum, b.Op("Gather", {b.Input(4), segments}));
  const ValueId y = b.Op("LayerNormalization", {sum, b.Input(5), b.Input(6)},
                         {{"axis", int64_t{-1}}, {"epsilon", b.Float("epsilon", 1e-12)}});
  return Values{y, b.IsOutputUsed(1) ? CountMask(b, ids, b.Input(7)) : kAbsent, sum};
}

// Group normalization with channels last (the default) or second, and SiLU after it if attribute activation is 1.
ValueId GroupNormalized(Decomposition& b, ValueId x, ValueId scale, ValueId shift) {
  const bool channels_last = b.Int("channels_last", 1) != 0;
  if (b.Rank(x) != 4) b.Fail(Malformed("input 0 must have 4 dimensions"));
  if (channels_last) x = b.Transpose(x, {0, 3, 1, 2});
  ValueId y = b.Op("GroupNormalization", {x, b.Cast(scale, b.ElementType(x)), b.Cast(shift, b.ElementType(x))},
                   {{"num_groups", b.Int("groups", 0)}, {"epsilon", b.Float("epsilon", 1e-5)}});
  if (b.Int("activation", 0) == 1) y = b.Op("Swish", {y});
  return channels_last ? b.Transpose(y, {0, 2, 3, 1}) : y;
}

absl::StatusOr<Values> GroupNorm(Decomposition& b) {
  return Values{GroupNormalized(b, b.Input(0), b.Input(1), b.Input(2))};
}

// Inputs: x, scale, shift, skip ([N, H, W, C], [N, 1, 1, C] or [N, C]), bias (optional). Outputs: y, sum.
absl::StatusOr<Values> SkipGroupNorm(Decomposition& b) {
  const bool channels_last = b.Int("channels_last", 1) != 0;
  ValueId skip = b.Input(3), bias = b.Input(4);
  if (b.Rank(skip) == 2)
    skip = b.Unsqueeze(skip, channels_last ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{2, 3});
  ValueId sum = b.Add(b.Input(0), skip);
  if (bias != kAbsent && !channels_last) bias = b.Unsqueeze(bias, {1, 2});
  if (bias != kAbsent) sum = b.Add(sum, bias);
  return Values{GroupNormalized(b, sum, b.Input(1), b.Input(2)), sum};
}

constexpr Row kNormRows[] = {
    {"EmbedLayerNormalization", EmbedLayerNormalization, 1},
    {"GroupNorm", GroupNorm, 3},
    {"SimplifiedLayerNormalization", SimplifiedLayerNormalization, 2},
    {"SkipGroupNorm", SkipGroupNorm, 4},
    {"SkipLayerNormalization", SkipLayerNormalization, 3},
    {"SkipSimplifiedLayerNormalization", SkipSimplifiedLayerNormalization, 3},
};

}  // namespace

std::span<const Row> NormRows() { return kNormRows; }

}  // namespace hone::graph::decompose
