// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/decompose/attributes.h"

#include <string>

#include "compiler/ir/elements.h"

namespace hone::graph::decompose {

std::vector<double> NumbersOf(const Constant& tensor) {
  std::vector<double> numbers;
  const size_t size = static_cast<size_t>(ir::SizeOf(tensor.type.dtype));
  for (size_t at = 0; at < tensor.data->size(); at += size) {
    numbers.push_back(ir::ElementAsDouble(tensor.type.dtype, tensor.data->data() + at));
  }
  return numbers;
}

const Constant* FindTensorAttribute(const Decomposition& b, std::string_view name) {
  auto it = b.node().attributes.find(std::string(name));
  const Constant* tensor = it == b.node().attributes.end() ? nullptr : std::get_if<Constant>(&it->second);
  return tensor == nullptr || tensor->data == nullptr ? nullptr : tensor;
}

std::vector<double> TensorAttribute(const Decomposition& b, std::string_view name) {
  const Constant* tensor = FindTensorAttribute(b, name);
  return tensor == nullptr ? std::vector<double>() : NumbersOf(*tensor);
}

Attributes AttributesWithout(const Decomposition& b, const std::vector<std::string_view>& names) {
  Attributes attributes = b.node().attributes;
  for (std::string_view name : names) attributes.erase(std::string(name));
  return attributes;
}

}  // namespace hone::graph::decompose
