// SPDX-License-Identifier: Apache-2.0
// Builds ONNX models in memory, one node at a time, with seeded random weights.
//
// For the tests' own models only; knows no operator and checks nothing, so that it can write broken models too. Start
// with Node, which appends an operator and hands back the name of its (first) output.
#ifndef HONE_TESTS_MODELS_MODEL_BUILDER_H_
#define HONE_TESTS_MODELS_MODEL_BUILDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/random.h"
#include "compiler/graph/onnx_proto.h"

namespace hone::models {

using Attribute = std::variant<int64_t, float, std::string, std::vector<int64_t>>;
using Attributes = std::vector<std::pair<std::string_view, Attribute>>;
using Shape = std::vector<int64_t>;

class ModelBuilder {
 public:
  // The graph's name also seeds the weights: the same name and calls give the same bytes.
  ModelBuilder(std::string_view graph_name, int64_t opset);

  // A float32 input unless `type` says otherwise. A dimension of -1 becomes the symbol "batch".
  std::string Input(std::string_view name, const Shape& shape, int32_t type = onnx::TensorProto::FLOAT);
  // Marks `value` as a graph output; its shape is left to inference.
  void Output(const std::string& value, int32_t type = onnx::TensorProto::FLOAT);

  // Float weights, uniform in [-bound, bound] with bound = sqrt(gain * 3 / fan_in): activations keep their size.
  std::string Weight(const Shape& shape, int64_t fan_in, double gain = 2.0);
  // Float values, uniform in [low, high].
  std::string Uniform(const Shape& shape, double low, double high);
  // 8-bit integers (INT8 or UINT8), uniform in [low, high].
  std::string Bytes(const Shape& shape, int32_t type, int64_t low, int64_t high);
  std::string Scalar(float value);
  std::string Int64s(const std::vector<int64_t>& values);

  // Appends a node and returns the name of its output.
  std::string Node(std::string_view op, const std::vector<std::string>& inputs, const Attributes& attributes = {});
  // The node appended last, for models that need what Node cannot say (several outputs, cycles, foreign domains).
  onnx::NodeProto& last_node();

  const onnx::ModelProto& model() const { return model_; }
  onnx::ModelProto& mutable_model() { return model_; }

 private:
  std::string NewName(std::string_view stem);
  onnx::TensorProto& NewTensor(const Shape& shape, int32_t type);

  onnx::ModelProto model_;
  Random random_;
  int next_ = 0;
};

}  // namespace hone::models

#endif  // HONE_TESTS_MODELS_MODEL_BUILDER_H_
