// SPDX-License-Identifier: Apache-2.0
// Attributes that Decomposition has no getter for: tensors, and all attributes of a node but some.
#ifndef HONE_COMPILER_GRAPH_DECOMPOSE_ATTRIBUTES_H_
#define HONE_COMPILER_GRAPH_DECOMPOSE_ATTRIBUTES_H_

#include <string_view>
#include <vector>

#include "compiler/graph/decompose/decomposition.h"

namespace hone::graph::decompose {

// Returns the elements as numbers. 64-bit integers beyond 2^53 are rounded.
std::vector<double> NumbersOf(const Constant& tensor);
// Returns the attribute, or nullptr if there is none or it is no tensor. It belongs to the node.
const Constant* FindTensorAttribute(const Decomposition& b, std::string_view name);
// Returns the elements of the attribute; none if there is no such tensor.
std::vector<double> TensorAttribute(const Decomposition& b, std::string_view name);

// Returns the attributes of the node that are not named, for the operator of ONNX that takes the node's place.
Attributes AttributesWithout(const Decomposition& b, const std::vector<std::string_view>& names);

}  // namespace hone::graph::decompose

#endif  // HONE_COMPILER_GRAPH_DECOMPOSE_ATTRIBUTES_H_
