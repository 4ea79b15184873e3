// SPDX-License-Identifier: Apache-2.0
// Rules for activation functions of com.microsoft.
#include "compiler/graph/decompose/table.h"

namespace hone::graph::decompose {
namespace {

ValueId AddBias(Decomposition& b, ValueId x, size_t bias) { return b.Has(bias) ? b.Add(x, b.Input(bias)) : x; }

absl::StatusOr<Values> Gelu(Decomposition& b) { return Values{b.Op("Gelu", {b.Input(0)})}; }

// Inputs: x, bias.
absl::StatusOr<Values> BiasGelu(Decomposition& b) { return Values{b.Op("Gelu", {AddBias(b, b.Input(0), 1)})}; }

// Inputs: x, bias (optional). The approximation by tanh.
absl::StatusOr<Values> FastGelu(Decomposition& b) {
  return Values{b.Op("Gelu", {AddBias(b, b.Input(0), 1)}, {{"approximate", std::string("tanh")}})};
}

// x * sigmoid(alpha * x)
absl::StatusOr<Values> QuickGelu(Decomposition& b) {
  return Values{b.Op("Swish", {b.Input(0)}, {{"alpha", b.Float("alpha", 1.702)}})};
}

// Inputs: x [batch, positions, 2 * channels], bias. The first half times Gelu of the second.
absl::StatusOr<Values> BiasSplitGelu(Decomposition& b) {
  const ValueId x = b.Add(b.Input(0), b.Input(1));
  const int64_t half = b.Extent(x, -1) / 2;
  const Values halves = b.Split(x, -1, {half, half});
  return Values{b.Mul(halves[0], b.Op("Gelu", {halves[1]}))};
}

constexpr Row kActivationRows[] = {
    {"BiasGelu", BiasGelu, 2}, {"BiasSplitGelu", BiasSplitGelu, 2}, {"FastGelu", FastGelu}, {"Gelu", Gelu, 1, 20},
    {"QuickGelu", QuickGelu},
};

}  // namespace

std::span<const Row> ActivationRows() { return kActivationRows; }

}  // namespace hone::graph::decompose
