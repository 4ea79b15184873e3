// SPDX-License-Identifier: Apache-2.0
// Dropout in training, which zeroes random elements. At inference the node is kept: it is a view of its input.
#include <optional>

#include "compiler/graph/ops/vocabulary.h"
#include "compiler/graph/opsets/table.h"

namespace hone::graph::opsets {
namespace {

// Returns whether the node trains. Opsets before 7 had attribute is_test, opsets since 12 have input 2.
bool IsTraining(Decomposition& b) {
  if (b.node().opset < 7) return b.Int("is_test", 0) == 0;
  const std::optional<std::vector<double>> training = b.Known(b.Input(2));
  return training && !training->empty() && (*training)[0] != 0;
}

double RatioOf(Decomposition& b) {
  if (b.node().opset < 12) return b.Float("ratio", 0.5);
  if (!b.Has(1)) return 0.5;
  const std::optional<std::vector<double>> ratio = b.Known(b.Input(1));
  if (!ratio) b.Fail(absl::InvalidArgumentError(OpArgs::NotConstantMessage(1)));
  if (ratio && ratio->size() != 1) b.Fail(Malformed("the ratio (input 1) must be one number"));
  return b.status().ok() ? (*ratio)[0] : 0;
}

// Elements that are kept are scaled, so that the mean stays the same. With ratio 0 there are no others.
absl::StatusOr<Values> Dropout(Decomposition& b) {
  if (!IsTraining(b)) return Values{};
  const double ratio = RatioOf(b);
  HONE_RETURN_IF_ERROR(b.status());
  if (ratio == 0) return Values{};
  if (!(ratio >= 0 && ratio < 1)) return Malformed("the ratio must be at least 0 and below 1");
  const ValueId x = b.Input(0);
  Attributes attributes = {{"dtype", ToOnnxType(ir::DType::kFloat32)}};
  if (b.HasAttribute("seed")) attributes["seed"] = static_cast<double>(b.Int("seed", 0));
  const ValueId uniform = b.Op("RandomUniformLike", {x}, attributes);
  const ValueId kept = b.Op("GreaterOrEqual", {uniform, b.Number(ir::DType::kFloat32, ratio)});
  const ValueId y = b.Op("Where", {kept, b.Mul(x, b.Like(x, 1 / (1 - ratio))), b.Like(x, 0)});
  return Values{y, b.node().opset >= 10 ? kept : b.Cast(kept, b.ElementType(x))};
}

constexpr Rewrite kDropoutRewrites[] = {
    {"Dropout", kAnyOpset, Dropout},
};

}  // namespace

std::span<const Rewrite> DropoutRewrites() { return kDropoutRewrites; }

}  // namespace hone::graph::opsets
