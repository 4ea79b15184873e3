// SPDX-License-Identifier: Apache-2.0
#include "tests/models/broken_models.h"

#include <cstdint>
#include <utility>

#include "base/random.h"
#include "tests/models/model_builder.h"

namespace hone::models {
namespace {

// Two layers on a small matrix: what the broken models are made from.
ModelBuilder TwoLayers(std::string_view name) {
  ModelBuilder b(name, 13);
  const std::string x = b.Input("input", {4, 8});
  const std::string hidden = b.Node("Relu", {b.Node("MatMul", {x, b.Weight({8, 8}, 8)})});
  b.Output(b.Node("MatMul", {hidden, b.Weight({8, 4}, 8)}));
  return b;
}

std::string Cyclic() {
  ModelBuilder b = TwoLayers("cyclic");
  onnx::GraphProto& graph = *b.mutable_model().mutable_graph();
  graph.mutable_node(0)->set_input(0, graph.node(1).output(0));
  return b.model().SerializeAsString();
}

std::string UnknownOperator() {
  ModelBuilder b = TwoLayers("unknown_operator");
  b.mutable_model().mutable_graph()->mutable_node(1)->set_op_type("Frobnicate");
  return b.model().SerializeAsString();
}

std::string DanglingInput() {
  ModelBuilder b = TwoLayers("dangling_input");
  b.mutable_model().mutable_graph()->mutable_node(1)->set_input(0, "nowhere");
  return b.model().SerializeAsString();
}

std::string MismatchedShapes() {
  ModelBuilder b("mismatched_shapes", 13);
  const std::string x = b.Input("input", {4, 8});
  b.Output(b.Node("MatMul", {x, b.Weight({9, 4}, 9)}));
  return b.model().SerializeAsString();
}

std::string ShortWeights() {
  ModelBuilder b = TwoLayers("short_weights");
  std::string& data = *b.mutable_model().mutable_graph()->mutable_initializer(0)->mutable_raw_data();
  data.resize(data.size() - 5);
  return b.model().SerializeAsString();
}

std::string MissingExternalData() {
  ModelBuilder b = TwoLayers("missing_external_data");
  onnx::TensorProto& weight = *b.mutable_model().mutable_graph()->mutable_initializer(0);
  weight.clear_raw_data();
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto& location = *weight.add_external_data();
  location.set_key("location");
  location.set_value("nowhere.bin");
  return b.model().SerializeAsString();
}

std::string EscapingExternalData() {
  ModelBuilder b = TwoLayers("escaping_external_data");
  onnx::TensorProto& weight = *b.mutable_model().mutable_graph()->mutable_initializer(0);
  weight.clear_raw_data();
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto& location = *weight.add_external_data();
  location.set_key("location");
  location.set_value("../../../../../../etc/passwd");
  return b.model().SerializeAsString();
}

// Dimensions whose product does not fit in 64 bits.
std::string HugeShape() {
  ModelBuilder b("huge_shape", 13);
  const std::string x = b.Input("input", {int64_t{1} << 40, int64_t{1} << 40});
  b.Output(b.Node("Relu", {x}));
  return b.model().SerializeAsString();
}

}  // namespace

std::vector<BrokenModel> BrokenModels() {
  const std::string whole = TwoLayers("two_layers").model().SerializeAsString();
  std::vector<BrokenModel> models;
  models.push_back({"empty", "", "the file has no bytes"});
  models.push_back({"not_a_model", "This is a letter, not a network.\n", "the file is a line of text"});
  models.push_back({"truncated", whole.substr(0, whole.size() / 2), "the second half is missing"});
  models.push_back({"cyclic", Cyclic(), "the first two nodes need each other's output"});
  models.push_back({"unknown_operator", UnknownOperator(), "a node is a Frobnicate"});
  models.push_back({"dangling_input", DanglingInput(), "a node reads a value that nothing makes"});
  models.push_back({"mismatched_shapes", MismatchedShapes(), "a 4x8 matrix is multiplied by a 9x4 matrix"});
  models.push_back({"short_weights", ShortWeights(), "a weight has five bytes fewer than its shape says"});
  models.push_back({"missing_external_data", MissingExternalData(), "the file with a weight is not there"});
  models.push_back({"escaping_external_data", EscapingExternalData(), "a weight is said to be in a file elsewhere"});
  models.push_back({"huge_shape", HugeShape(), "an input has 2^80 elements"});
  return models;
}

std::vector<std::string> BitFlips(const std::string& model_bytes, int count) {
  Random random(7);
  std::vector<std::string> flipped(count, model_bytes);
  for (std::string& bytes : flipped) {
    const int64_t bit = random.Below(static_cast<int64_t>(bytes.size()) * 8);
    bytes[bit / 8] = static_cast<char>(static_cast<unsigned char>(bytes[bit / 8]) ^ (1u << (bit % 8)));
  }
  return flipped;
}

}  // namespace hone::models
