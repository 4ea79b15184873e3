// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/decompose/fused_activation.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

// Activations that are ONNX operators of one input with attributes alpha, beta and gamma, or some of them.
constexpr std::array<std::string_view, 14> kActivations = {
    "Celu", "Elu",  "Gelu",    "HardSigmoid", "HardSwish", "LeakyRelu", "Mish",
    "Relu", "Selu", "Sigmoid", "Softplus",    "Softsign",  "Tanh",      "ThresholdedRelu"};

}  // namespace

ValueId ApplyActivation(Decomposition& b, ValueId x, const std::string& name, const ActivationParameters& parameters) {
  if (name.empty()) return x;
  if (name == "Clip") {
    const double infinity = std::numeric_limits<double>::infinity();
    return b.Op("Clip",
                {x, b.Like(x, parameters.alpha.value_or(-infinity)), b.Like(x, parameters.beta.value_or(infinity))});
  }
  if (std::find(kActivations.begin(), kActivations.end(), name) == kActivations.end()) {
    b.Fail(Unsupported(fmt::format("the activation '{}' is not supported", name)));
    return kAbsent;
  }
  Attributes attributes;
  for (const auto& [key, value] : {std::pair("alpha", parameters.alpha), std::pair("beta", parameters.beta),
                                   std::pair("gamma", parameters.gamma)}) {
    if (value) attributes[key] = *value;
  }
  return b.Op(name, {x}, std::move(attributes));
}

}  // namespace hone::graph::decompose
