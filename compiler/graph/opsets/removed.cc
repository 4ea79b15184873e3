// SPDX-License-Identifier: Apache-2.0
// Operators that ONNX had as experiments and removed. Files of every opset use them, because converters went on to
// write them and ONNX Runtime to read them.
#include "compiler/graph/ops/vocabulary.h"
#include "compiler/graph/opsets/table.h"

namespace hone::graph::opsets {
namespace {

ValueId Times(Decomposition& b, ValueId x, double factor) { return b.Mul(x, b.Like(x, factor)); }

// alpha * x + beta
absl::StatusOr<Values> Affine(Decomposition& b) {
  const ValueId scaled = Times(b, b.Input(0), b.Float("alpha", 1));
  return Values{b.Add(scaled, b.Like(scaled, b.Float("beta", 0)))};
}

// Removes border [left, top, right, bottom] from an image. With attribute scale, the height and width of what is left
// are given instead of right and bottom.
absl::StatusOr<Values> Crop(Decomposition& b) {
  const std::vector<int64_t> border = b.Ints("border", {}), size = b.Ints("scale", {});
  if (b.Rank(b.Input(0)) != 4 || border.size() != 4 || (!size.empty() && size.size() != 2)) {
    return Malformed("input 0 must have 4 dimensions, attribute border 4 numbers and attribute scale 2 or none");
  }
  const auto end = [&](size_t dimension) {
    if (!size.empty()) return border[1 - dimension] + size[dimension];
    const int64_t after = border[3 - dimension];
    return after == 0 ? INT64_MAX : -after;
  };
  const ValueId rows = b.Slice(b.Input(0), 2, border[1], end(0));
  return Values{b.Slice(rows, 3, border[0], end(1))};
}

// scale * x + bias of the channel
absl::StatusOr<Values> ImageScaler(Decomposition& b) {
  const std::vector<double> bias = b.Floats("bias", {});
  const ValueId scaled = Times(b, b.Input(0), b.Float("scale", 1));
  if (bias.empty()) return Values{scaled};
  return Values{b.Add(scaled, b.Tensor(b.ElementType(scaled), {static_cast<int64_t>(bias.size()), 1, 1}, bias))};
}

// alpha * log(exp(beta * x) + 1)
absl::StatusOr<Values> ParametricSoftplus(Decomposition& b) {
  return Values{Times(b, b.Op("Softplus", {Times(b, b.Input(0), b.Float("beta", 1))}), b.Float("alpha", 1))};
}

absl::StatusOr<Values> Scale(Decomposition& b) { return Values{Times(b, b.Input(0), b.Float("scale", 1))}; }

// alpha * tanh(beta * x)
absl::StatusOr<Values> ScaledTanh(Decomposition& b) {
  return Values{Times(b, b.Op("Tanh", {Times(b, b.Input(0), b.Float("beta", 1))}), b.Float("alpha", 1))};
}

constexpr Rewrite kRemovedOperators[] = {
    {"Affine", kAnyOpset, Affine},
    {"Crop", kAnyOpset, Crop},
    {"ImageScaler", kAnyOpset, ImageScaler},
    {"ParametricSoftplus", kAnyOpset, ParametricSoftplus},
    {"Scale", kAnyOpset, Scale},
    {"ScaledTanh", kAnyOpset, ScaledTanh},
};

}  // namespace

std::span<const Rewrite> RemovedOperators() { return kRemovedOperators; }

}  // namespace hone::graph::opsets
