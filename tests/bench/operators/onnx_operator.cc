// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/operators/onnx_operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>

namespace hone::models {
namespace {

const onnx::AttributeProto* Find(const onnx::NodeProto& node, std::string_view name) {
  const auto it = std::find_if(node.attribute().begin(), node.attribute().end(),
                               [&](const onnx::AttributeProto& a) { return a.name() == name; });
  return it == node.attribute().end() ? nullptr : &*it;
}

Constant ReadConstant(const onnx::TensorProto& tensor) {
  Constant constant{{tensor.dims().begin(), tensor.dims().end()}, {}};
  const auto count = static_cast<size_t>(ElementsOf(constant.shape));
  constant.values.resize(count);
  if (tensor.data_type() == onnx::TensorProto::INT64) {
    std::vector<int64_t> numbers(count);
    std::memcpy(numbers.data(), tensor.raw_data().data(), count * sizeof(int64_t));
    std::copy(numbers.begin(), numbers.end(), constant.values.begin());
  } else {
    std::memcpy(constant.values.data(), tensor.raw_data().data(), count * sizeof(float));
  }
  return constant;
}

bool IsOnlyOnFloats(const onnx::GraphProto& graph) {
  return graph.input_size() == 1 && graph.output_size() == 1 &&
         graph.input(0).type().tensor_type().elem_type() == onnx::TensorProto::FLOAT &&
         graph.output(0).type().tensor_type().elem_type() == onnx::TensorProto::FLOAT;
}

}  // namespace

int64_t ElementsOf(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<int64_t> OnnxOperator::Ints(std::string_view name, std::vector<int64_t> without) const {
  const onnx::AttributeProto* found = Find(node, name);
  return found == nullptr ? std::move(without) : std::vector<int64_t>(found->ints().begin(), found->ints().end());
}

int64_t OnnxOperator::Int(std::string_view name, int64_t without) const {
  const onnx::AttributeProto* found = Find(node, name);
  return found == nullptr ? without : found->i();
}

float OnnxOperator::Float(std::string_view name, float without) const {
  const onnx::AttributeProto* found = Find(node, name);
  return found == nullptr ? without : found->f();
}

absl::StatusOr<OnnxOperator> ReadOperator(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(fmt::format("{}: cannot be read", path));
  onnx::ModelProto model;
  if (!model.ParseFromIstream(&file)) return absl::DataLossError(fmt::format("{}: is no ONNX model", path));
  const onnx::GraphProto& graph = model.graph();
  const bool transposed = graph.node_size() == 2 && graph.node(0).op_type() == "Transpose";
  if (!IsOnlyOnFloats(graph) || (graph.node_size() != 1 && !transposed)) {
    return absl::UnimplementedError(fmt::format("{}: is not one operator on one f32 input", path));
  }
  OnnxOperator op = {.node = graph.node(graph.node_size() - 1),
                     .by_itself_transposed = transposed,
                     .shape = {},
                     .constants = {},
                     .output = graph.output(0).name()};
  for (const auto& dim : graph.input(0).type().tensor_type().shape().dim()) op.shape.push_back(dim.dim_value());
  for (const onnx::TensorProto& tensor : graph.initializer()) op.constants.push_back(ReadConstant(tensor));
  return op;
}

}  // namespace hone::models
