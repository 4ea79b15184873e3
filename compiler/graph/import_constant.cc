// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/import_constant.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fmt/format.h"

namespace hone::graph {
namespace {

template <typename T>
Constant Numbers(ir::DType dtype, ir::Shape shape, const std::vector<T>& values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes->data(), values.data(), bytes->size());
  return {{dtype, std::move(shape)}, std::move(bytes)};
}

}  // namespace

absl::StatusOr<Constant> ConstantOf(const RawNode& node) {
  if (node.attributes.size() != 1 || node.outputs.size() != 1) {
    return absl::InvalidArgumentError("a Constant must have exactly one attribute and one output");
  }
  const auto& [name, attribute] = *node.attributes.begin();
  if (const auto* tensor = std::get_if<Constant>(&attribute.value); tensor != nullptr && name == "value") {
    if (tensor->data == nullptr) return absl::InvalidArgumentError("the value is missing");
    return *tensor;
  }
  if (const auto* f = std::get_if<double>(&attribute.value); f != nullptr && name == "value_float") {
    return Numbers<float>(ir::DType::kFloat32, {}, {static_cast<float>(*f)});
  }
  if (const auto* i = std::get_if<int64_t>(&attribute.value); i != nullptr && name == "value_int") {
    return Numbers<int64_t>(ir::DType::kInt64, {}, {*i});
  }
  if (const auto* fs = std::get_if<std::vector<double>>(&attribute.value); fs != nullptr && name == "value_floats") {
    return Numbers<float>(ir::DType::kFloat32, {fs->size()}, {fs->begin(), fs->end()});
  }
  if (const auto* is = std::get_if<std::vector<int64_t>>(&attribute.value); is != nullptr && name == "value_ints") {
    return Numbers<int64_t>(ir::DType::kInt64, {is->size()}, *is);
  }
  return absl::UnimplementedError(fmt::format("constants given as '{}' are not supported", name));
}

}  // namespace hone::graph
