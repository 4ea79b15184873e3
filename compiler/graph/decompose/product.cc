// SPDX-License-Identifier: Apache-2.0
// Rules for products of matrices with something before or after them, of com.microsoft.
#include <numeric>

#include "compiler/graph/decompose/fused_activation.h"
#include "compiler/graph/decompose/table.h"

namespace hone::graph::decompose {
namespace {

// The activation that the attributes activation and activation_alpha, _beta and _gamma name.
ValueId ActivationOf(Decomposition& b, ValueId x) {
  ActivationParameters parameters;
  const auto read = [&](const char* name, std::optional<double>& parameter) {
    if (b.HasAttribute(name)) parameter = b.Float(name, 0);
  };
  read("activation_alpha", parameters.alpha);
  read("activation_beta", parameters.beta);
  read("activation_gamma", parameters.gamma);
  // FusedGemm's own name for the slope, in files of old versions.
  if (!parameters.alpha) read("leaky_relu_alpha", parameters.alpha);
  return ApplyActivation(b, x, b.String("activation", ""), parameters);
}

// An operand with its dimensions in the order of the product [batch..., row, column]. `batch` (transBatchA,
// transBatchB) means that the batch dimensions follow the first dimension: [row, batch..., column]. `swap` (transA,
// transB) means that rows and columns are exchanged.
ValueId Operand(Decomposition& b, ValueId x, bool swap, bool batch) {
  const size_t rank = b.Rank(x);
  if (rank < 2 || (!swap && !batch)) return x;
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), int64_t{0});
  if (batch) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (swap) std::swap(order[rank - 2], order[rank - 1]);
  return b.Transpose(x, order);
}

ValueId Product(Decomposition& b) {
  const ValueId left = Operand(b, b.Input(0), b.Int("transA", 0) != 0, b.Int("transBatchA", 0) != 0);
  const ValueId right = Operand(b, b.Input(1), b.Int("transB", 0) != 0, b.Int("transBatchB", 0) != 0);
  const ValueId product = b.MatMul(left, right);
  const double alpha = b.Float("alpha", 1);
  return alpha == 1 ? product : b.Mul(product, b.Like(product, alpha));
}

absl::StatusOr<Values> FusedMatMul(Decomposition& b) { return Values{Product(b)}; }

absl::StatusOr<Values> FusedMatMulActivation(Decomposition& b) { return Values{ActivationOf(b, Product(b))}; }

absl::StatusOr<Values> FusedGemm(Decomposition& b) {
  Values inputs = {b.Input(0), b.Input(1)};
  if (b.Has(2)) inputs.push_back(b.Input(2));
  Attributes attributes;
  for (const char* name : {"alpha", "beta"}) {
    if (b.HasAttribute(name)) attributes[name] = b.Float(name, 1);
  }
  for (const char* name : {"transA", "transB"}) {
    if (b.HasAttribute(name)) attributes[name] = b.Int(name, 0);
  }
  return Values{ActivationOf(b, b.Op("Gemm", inputs, attributes))};
}

// Inputs: x, w, bias (optional). Gelu by tanh of the product.
absl::StatusOr<Values> GemmFastGelu(Decomposition& b) {
  ValueId y = b.MatMul(b.Input(0), b.Input(1));
  if (b.Has(2)) y = b.Add(y, b.Input(2));
  return Values{b.Op("Gelu", {y}, {{"approximate", std::string("tanh")}})};
}

constexpr Row kProductRows[] = {
    {"FusedGemm", FusedGemm, 2},
    {"FusedMatMul", FusedMatMul, 2},
    {"FusedMatMulActivation", FusedMatMulActivation, 2},
    {"GemmFastGelu", GemmFastGelu, 2},
    {"TransposeMatMul", FusedMatMul, 2},
};

}  // namespace

std::span<const Row> ProductRows() { return kProductRows; }

}  // namespace hone::graph::decompose
