// SPDX-License-Identifier: Apache-2.0
// The activation that operators such as FusedConv and FusedGemm name in an attribute and apply to their result.
//
// Not here: activations that are operators of com.microsoft themselves (activation.cc).
#ifndef HONE_COMPILER_GRAPH_DECOMPOSE_FUSED_ACTIVATION_H_
#define HONE_COMPILER_GRAPH_DECOMPOSE_FUSED_ACTIVATION_H_

#include <optional>
#include <string>

#include "compiler/graph/decompose/decomposition.h"

namespace hone::graph::decompose {

// Parameters of the activation in the order of ONNX's attributes alpha, beta and gamma; for Clip, the least and the
// largest value. A parameter that the node leaves out has the default of ONNX's operator.
struct ActivationParameters {
  std::optional<double> alpha = {}, beta = {}, gamma = {};
};

// Applies ONNX's operator `name` to x. Returns x itself if the name is empty. Other names are an error.
ValueId ApplyActivation(Decomposition& b, ValueId x, const std::string& name, const ActivationParameters& parameters);

}  // namespace hone::graph::decompose

#endif  // HONE_COMPILER_GRAPH_DECOMPOSE_FUSED_ACTIVATION_H_
