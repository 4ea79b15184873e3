// SPDX-License-Identifier: Apache-2.0
// BatchNormalization and MeanVarianceNormalization as opsets 1 to 8 wrote them.
#include "compiler/graph/ops/vocabulary.h"
#include "compiler/graph/opsets/table.h"

namespace hone::graph::opsets {
namespace {

// Attribute spatial 0: every element of an image has a scale, offset, mean and variance of its own.
ValueId NormalizePerElement(Decomposition& b) {
  const ValueId x = b.Input(0);
  const ValueId deviation = b.Op("Sqrt", {b.Add(b.Input(4), b.Like(x, b.Float("epsilon", 1e-5)))});
  return b.Add(b.Mul(b.Sub(x, b.Input(3)), b.Div(b.Input(1), deviation)), b.Input(2));
}

absl::StatusOr<Values> BatchNormalization8(Decomposition& b) {
  if (b.Int("spatial", 1) == 0) return Values{NormalizePerElement(b)};
  return b.Ops("BatchNormalization", b.node().inputs, b.IsOutputUsed(1) || b.IsOutputUsed(2) ? 3 : 1,
               {{"epsilon", b.Float("epsilon", 1e-5)}, {"momentum", b.Float("momentum", 0.9)}});
}

// Attribute is_test said whether mean and variance are inputs. Without it they are those of the batch.
absl::StatusOr<Values> BatchNormalization6(Decomposition& b) {
  if (b.Int("is_test", 0) != 0) return BatchNormalization8(b);
  if (b.Int("spatial", 1) == 0) {
    return Unsupported("training (attribute is_test is 0) with attribute spatial 0 is not supported");
  }
  return b.Ops(
      "BatchNormalization", b.node().inputs, 3,
      {{"epsilon", b.Float("epsilon", 1e-5)}, {"momentum", b.Float("momentum", 0.9)}, {"training_mode", int64_t{1}}});
}

// Attributes: across_channels says whether the channels of an image have one mean and variance, and
// normalize_variance 0 leaves the division by the deviation out.
absl::StatusOr<Values> MeanVarianceNormalization8(Decomposition& b) {
  if (b.HasAttribute("axes")) return Values{};  // written as since opset 9
  const ValueId x = b.Input(0);
  if (b.Rank(x) != 4) return Malformed("input 0 must have 4 dimensions");
  const std::vector<int64_t> axes =
      b.Int("across_channels", 0) != 0 ? std::vector<int64_t>{1, 2, 3} : std::vector<int64_t>{2, 3};
  if (b.Int("normalize_variance", 1) != 0) return Values{b.Op("MeanVarianceNormalization", {x}, {{"axes", axes}})};
  return Values{b.Sub(x, b.Op("ReduceMean", {x}, {{"axes", axes}}))};
}

constexpr Rewrite kNormalizationRewrites[] = {
    {"BatchNormalization", 7, BatchNormalization6, 5},
    {"BatchNormalization", 9, BatchNormalization8, 5},
    {"MeanVarianceNormalization", 9, MeanVarianceNormalization8},
};

}  // namespace

std::span<const Rewrite> NormalizationRewrites() { return kNormalizationRewrites; }

}  // namespace hone::graph::opsets
