// SPDX-License-Identifier: Apache-2.0
#include "tests/models/model_builder.h"

#include <cmath>
#include <cstring>

#include "fmt/format.h"

namespace hone::models {
namespace {

// FNV-1a: a seed out of a name, the same on every platform.
uint64_t SeedOf(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

int64_t Elements(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  return elements;
}

void SetAttribute(onnx::NodeProto& node, std::string_view name, const Attribute& value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(std::string(name));
  if (const auto* number = std::get_if<int64_t>(&value)) {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(*number);
  } else if (const auto* real = std::get_if<float>(&value)) {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(*real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(*text);
  } else {
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const int64_t number : std::get<std::vector<int64_t>>(value)) attribute.add_ints(number);
  }
}

}  // namespace

ModelBuilder::ModelBuilder(std::string_view graph_name, int64_t opset) : random_(SeedOf(graph_name)) {
  model_.set_ir_version(8);
  model_.set_producer_name("hone-make-models");
  onnx::OperatorSetIdProto& operators = *model_.add_opset_import();
  operators.set_domain("");
  operators.set_version(opset);
  model_.mutable_graph()->set_name(std::string(graph_name));
}

std::string ModelBuilder::Input(std::string_view name, const Shape& shape, int32_t type) {
  onnx::ValueInfoProto& input = *model_.mutable_graph()->add_input();
  input.set_name(std::string(name));
  onnx::TypeProto::Tensor& tensor = *input.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  for (const int64_t extent : shape) {
    auto& dim = *tensor.mutable_shape()->add_dim();
    if (extent < 0) {
      dim.set_dim_param("batch");
    } else {
      dim.set_dim_value(extent);
    }
  }
  return std::string(name);
}

void ModelBuilder::Output(const std::string& value, int32_t type) {
  onnx::ValueInfoProto& output = *model_.mutable_graph()->add_output();
  output.set_name(value);
  output.mutable_type()->mutable_tensor_type()->set_elem_type(type);
}

std::string ModelBuilder::Weight(const Shape& shape, int64_t fan_in, double gain) {
  const double bound = std::sqrt(gain * 3.0 / static_cast<double>(fan_in));
  return Uniform(shape, -bound, bound);
}

std::string ModelBuilder::Uniform(const Shape& shape, double low, double high) {
  std::vector<float> values(Elements(shape));
  for (float& value : values) value = static_cast<float>(low + (high - low) * random_.Uniform());
  onnx::TensorProto& tensor = NewTensor(shape, onnx::TensorProto::FLOAT);
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  return tensor.name();
}

std::string ModelBuilder::Bytes(const Shape& shape, int32_t type, int64_t low, int64_t high) {
  onnx::TensorProto& tensor = NewTensor(shape, type);
  std::string bytes(static_cast<size_t>(Elements(shape)), '\0');
  for (char& byte : bytes) byte = static_cast<char>(low + random_.Below(high - low + 1));
  tensor.set_raw_data(std::move(bytes));
  return tensor.name();
}

std::string ModelBuilder::Scalar(float value) {
  onnx::TensorProto& tensor = NewTensor({}, onnx::TensorProto::FLOAT);
  tensor.set_raw_data(&value, sizeof(value));
  return tensor.name();
}

std::string ModelBuilder::Int64s(const std::vector<int64_t>& values) {
  onnx::TensorProto& tensor = NewTensor({static_cast<int64_t>(values.size())}, onnx::TensorProto::INT64);
  tensor.set_raw_data(values.data(), values.size() * sizeof(int64_t));
  return tensor.name();
}

std::string ModelBuilder::Node(std::string_view op, const std::vector<std::string>& inputs,
                               const Attributes& attributes) {
  onnx::NodeProto& node = *model_.mutable_graph()->add_node();
  node.set_op_type(std::string(op));
  node.set_name(NewName(op));
  for (const std::string& input : inputs) node.add_input(input);
  for (const auto& [name, value] : attributes) SetAttribute(node, name, value);
  node.add_output(node.name() + "_output");
  return node.output(0);
}

onnx::NodeProto& ModelBuilder::last_node() {
  return *model_.mutable_graph()->mutable_node(model_.graph().node_size() - 1);
}

std::string ModelBuilder::NewName(std::string_view stem) { return fmt::format("{}_{}", stem, next_++); }

onnx::TensorProto& ModelBuilder::NewTensor(const Shape& shape, int32_t type) {
  onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(NewName("weight"));
  tensor.set_data_type(type);
  for (const int64_t extent : shape) tensor.add_dims(extent);
  return tensor;
}

}  // namespace hone::models
