// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/opsets/import_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/element_type.h"
#include "base/status.h"
#include "compiler/graph/interpret_plan.h"
#include "compiler/graph/onnx_import.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"

namespace hone::graph {
namespace {

std::string AttributeText(const std::string& name, const Attribute& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return Attr(name, *number);
  if (const auto* number = std::get_if<double>(&value)) return Attr(name, static_cast<float>(*number));
  if (const auto* text = std::get_if<std::string>(&value)) return Attr(name, text->c_str());
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&value)) return Attr(name, *numbers);
  const auto& floats = std::get<std::vector<double>>(value);
  return FloatsAttr(name, {floats.begin(), floats.end()});
}

// A model with the node alone, and the bytes of its inputs.
struct ImportModel {
  std::string bytes;
  std::vector<ir::Bytes> inputs;
};

ImportModel ModelOf(const OpCase& test_case, const ImportOf& import) {
  GraphBuilder b;
  ImportModel model;
  std::vector<std::string> inputs, outputs, attributes;
  for (size_t i = 0; i < test_case.inputs.size(); ++i) {
    const Constant& input = test_case.inputs[i];
    const std::string name = input.data == nullptr ? "" : "x" + std::to_string(i);
    if (!import.captured.contains(i)) inputs.push_back(name);
    if (input.data == nullptr) continue;
    const auto* raw = reinterpret_cast<const char*>(input.data->data());
    const std::vector<int64_t> shape = ir::Values(input.type.shape);
    if (import.constants.contains(i)) {
      b.Initializer(TensorOfBytes(name, OnnxNumber(input.type.dtype), shape, {raw, input.data->size()}));
      continue;
    }
    b.Input(name, Dims(std::vector<Dim>(shape.begin(), shape.end())), OnnxNumber(input.type.dtype));
    model.inputs.emplace_back(input.data->begin(), input.data->end());
  }
  for (int k = 0; k < test_case.outputs; ++k) {
    const bool unused = import.unused.contains(static_cast<size_t>(k));
    outputs.push_back(unused ? "" : "y" + std::to_string(k));
    if (!unused) b.Output(outputs.back());
  }
  for (const auto& [name, value] : test_case.attributes) attributes.push_back(AttributeText(name, value));
  attributes.insert(attributes.end(), import.graphs.begin(), import.graphs.end());
  b.Node(test_case.op, inputs, outputs, attributes, test_case.domain);
  model.bytes = b.Model(test_case.opset);
  return model;
}

}  // namespace

absl::StatusOr<std::vector<Constant>> RunImported(const OpCase& test_case, const ImportOf& import) {
  const ImportModel model = ModelOf(test_case, import);
  HONE_ASSIGN_OR_RETURN(const Graph graph, ImportOnnxBytes(model.bytes, ".", {}));
  HONE_ASSIGN_OR_RETURN(const Plan plan, BuildPlan(graph));
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::Bytes> outputs, InterpretPlan(plan, model.inputs));
  std::vector<Constant> results;
  size_t next = 0;
  for (int k = 0; k < test_case.outputs; ++k) {
    results.emplace_back();
    if (import.unused.contains(static_cast<size_t>(k))) continue;
    results.back().type = graph.values[graph.outputs[next]].type;
    results.back().data = std::make_shared<std::vector<std::byte>>(outputs[next].begin(), outputs[next].end());
    ++next;
  }
  return results;
}

void ExpectImported(const OpCase& test_case, const Shape& shape, const std::vector<double>& numbers,
                    const ImportOf& import, size_t output, double tolerance) {
  SCOPED_TRACE(test_case.op + " of opset " + std::to_string(test_case.opset));
  const absl::StatusOr<std::vector<Constant>> results = RunImported(test_case, import);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_LT(output, results->size());
  const Constant& result = (*results)[output];
  EXPECT_TRUE(std::equal(result.type.shape.begin(), result.type.shape.end(), shape.begin(), shape.end()));
  const std::vector<double> got = Numbers(result);
  ASSERT_EQ(got.size(), numbers.size());
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (std::isfinite(numbers[k])) {
      EXPECT_NEAR(got[k], numbers[k], tolerance * std::max(1.0, std::abs(numbers[k]))) << "element " << k;
    } else {
      EXPECT_TRUE(got[k] == numbers[k] || (std::isnan(got[k]) && std::isnan(numbers[k]))) << "element " << k;
    }
  }
}

void ExpectRefused(const OpCase& test_case, absl::StatusCode code, const std::string& text, const ImportOf& import) {
  SCOPED_TRACE(test_case.op + " of opset " + std::to_string(test_case.opset));
  const absl::Status status = RunImported(test_case, import).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(text));
}

}  // namespace hone::graph
