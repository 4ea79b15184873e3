// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/decompose/decompose_case.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "base/element_type.h"
#include "base/status.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"

namespace hone::graph {
namespace {

constexpr int64_t kStepsMax = 1 << 22;

absl::Status EvaluateNode(Graph& graph, const Node& node) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Constant> results, Evaluate(graph, node, kStepsMax));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kAbsent) graph.values[node.outputs[i]].data = results[i].data;
  }
  return absl::OkStatus();
}

// The graph after the node was replaced, and the values of the node's outputs. `data` is that of the inputs which are
// known only when the model runs.
struct Decomposed {
  Graph graph;
  std::vector<ValueId> outputs;
  std::vector<std::pair<ValueId, TensorData>> data;
};

absl::StatusOr<Decomposed> Replace(const OpCase& test_case, const DecomposeOptions& options) {
  Decomposed result;
  Graph& graph = result.graph;
  Node node{.name = "node",
            .op = test_case.op,
            .domain = test_case.domain.empty() ? std::string(decompose::kMicrosoft) : test_case.domain,
            .opset = 1,
            .inputs = {},
            .outputs = {},
            .attributes = test_case.attributes};
  for (size_t i = 0; i < test_case.inputs.size(); ++i) {
    const Constant& input = test_case.inputs[i];
    if (input.data == nullptr) {
      node.inputs.push_back(kAbsent);
      continue;
    }
    const bool constant = options.constants.contains(i);
    node.inputs.push_back(AddValue(graph, "input", input.type, constant ? input.data : nullptr));
    if (!constant) result.data.emplace_back(node.inputs.back(), input.data);
  }
  for (int k = 0; k < test_case.outputs; ++k) {
    node.outputs.push_back(options.unused.contains(static_cast<size_t>(k)) ? kAbsent : kNewValue);
  }
  const decompose::Row* row = decompose::FindRow(node.domain, node.op, test_case.opset);
  if (row == nullptr) return absl::NotFoundError("there is no decomposition of " + node.op);
  const auto add = [&](const Node& part) -> absl::StatusOr<std::vector<ValueId>> {
    HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, AddNode(graph, part));
    const Node added = graph.nodes.back();
    HONE_ASSIGN_OR_RETURN(const bool known, IsKnown(graph, added));
    if (!known) return outputs;
    graph.nodes.pop_back();
    HONE_RETURN_IF_ERROR(EvaluateNode(graph, added));
    return outputs;
  };
  HONE_ASSIGN_OR_RETURN(
      result.outputs,
      decompose::Decompose(*row, node,
                           {graph, add, [](ValueId) { return absl::OkStatus(); },
                            [&](const std::string& name) { return fmt::format("{}.{}", name, graph.values.size()); }}));
  return result;
}

// A model without inputs: all inputs of the case are initializers. The outputs have the types of `results`.
std::string WriteModel(const OpCase& test_case, const DecomposeOptions& options, const std::vector<Constant>& results) {
  const std::string domain = test_case.domain.empty() ? std::string(decompose::kMicrosoft) : test_case.domain;
  GraphBuilder graph;
  std::vector<std::string> inputs, outputs, attributes;
  for (size_t i = 0; i < test_case.inputs.size(); ++i) {
    const Constant& input = test_case.inputs[i];
    inputs.push_back(input.data == nullptr ? "" : "input" + std::to_string(i));
    if (input.data == nullptr) continue;
    const std::string raw(reinterpret_cast<const char*>(input.data->data()), input.data->size());
    graph.Initializer(TensorOfBytes(inputs.back(), OnnxNumber(input.type.dtype), ir::Values(input.type.shape), raw));
  }
  for (int k = 0; k < test_case.outputs; ++k) {
    outputs.push_back(options.unused.contains(static_cast<size_t>(k)) ? "" : "output" + std::to_string(k));
    if (outputs.back().empty()) continue;
    graph.TypedOutput(outputs.back(), OnnxNumber(results[static_cast<size_t>(k)].type.dtype));
  }
  for (const auto& [name, value] : test_case.attributes) {
    if (const auto* i = std::get_if<int64_t>(&value)) attributes.push_back(Attr(name, *i));
    if (const auto* f = std::get_if<double>(&value)) attributes.push_back(Attr(name, static_cast<float>(*f)));
    if (const auto* s = std::get_if<std::string>(&value)) attributes.push_back(Attr(name, s->c_str()));
    if (const auto* is = std::get_if<std::vector<int64_t>>(&value)) attributes.push_back(Attr(name, *is));
  }
  graph.Node(test_case.op, inputs, outputs, attributes, domain);
  Message model;
  model.Int(1, 8).Text(8, SerializeOpset("", test_case.opset)).Text(7, graph.bytes());
  if (domain == decompose::kMicrosoft) model.Text(8, SerializeOpset(domain, 1));
  return model.bytes();
}

struct ExpectedOutput {
  Shape shape;
  std::vector<double> numbers;
};

// The case with f32 inputs rounded to the numbers of `dtype`, and, with `shortened`, in that type.
OpCase Rounded(OpCase test_case, ir::DType dtype, bool shortened) {
  for (Constant& input : test_case.inputs) {
    if (input.data == nullptr || input.type.dtype != ir::DType::kFloat32) continue;
    const Constant rounded = Tensor(dtype, ir::Values(input.type.shape), Numbers(input));
    input = shortened ? rounded : Floats(ir::Values(input.type.shape), Numbers(rounded));
  }
  return test_case;
}

// Expects the outputs in f16 to be those in f32 from the same numbers, within a few units in the last place of the
// largest one: each of the operators that take the node's place rounds its results.
void ExpectShortAsFloats(const OpCase& test_case, const DecomposeOptions& options) {
  constexpr double kUnitsMax = 4, kUnit = 1.0 / 1024;
  const auto wide = RunDecomposed(Rounded(test_case, ir::DType::kFloat16, false), options);
  const auto narrow = RunDecomposed(Rounded(test_case, ir::DType::kFloat16, true), options);
  ASSERT_TRUE(wide.ok()) << wide.status();
  ASSERT_TRUE(narrow.ok()) << "in f16: " << narrow.status();
  for (size_t output = 0; output < wide->size(); ++output) {
    if ((*wide)[output].data == nullptr) continue;
    SCOPED_TRACE("in f16, output " + std::to_string(output));
    const std::vector<double> numbers = Numbers((*wide)[output]), got = Numbers((*narrow)[output]);
    ASSERT_EQ(got.size(), numbers.size());
    double largest = 0;
    for (const double number : numbers) largest = std::isfinite(number) ? std::max(largest, std::abs(number)) : largest;
    for (size_t k = 0; k < numbers.size(); ++k) {
      if (got[k] == numbers[k]) continue;  // infinities
      EXPECT_NEAR(got[k], numbers[k], kUnitsMax * kUnit * largest) << "element " << k;
    }
  }
}

// The lines of expected_outputs.txt: case, output, dimensions joined by "x" ("-" for a scalar), numbers.
std::map<std::string, std::map<size_t, ExpectedOutput>> ReadExpectedOutputs() {
  std::map<std::string, std::map<size_t, ExpectedOutput>> expected;
  std::ifstream file(std::string(HONE_SOURCE_DIR) + "/tests/unit/decompose/expected_outputs.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, shape;
    size_t output = 0;
    if (line.empty() || line[0] == '#' || !(words >> name >> output >> shape)) continue;
    ExpectedOutput& found = expected[name][output];
    std::istringstream dimensions(shape == "-" ? "" : shape);
    for (std::string extent; std::getline(dimensions, extent, 'x');) found.shape.push_back(std::stoll(extent));
    for (std::string number; words >> number;) found.numbers.push_back(std::stod(number));
  }
  return expected;
}

}  // namespace

Constant RandomTensor(Shape shape, uint64_t seed) {
  const std::vector<float> numbers = RandomFloats(TensorType{ir::DType::kFloat32, shape}.elements().value(), seed);
  return Floats(std::move(shape), std::vector<double>(numbers.begin(), numbers.end()));
}

Constant Int32s(Shape shape, std::vector<double> numbers) {
  return Tensor(ir::DType::kInt32, std::move(shape), std::move(numbers));
}

absl::StatusOr<std::vector<Constant>> RunDecomposed(const OpCase& test_case, const DecomposeOptions& options) {
  HONE_ASSIGN_OR_RETURN(Decomposed replaced, Replace(test_case, options));
  for (auto& [value, data] : replaced.data) replaced.graph.values[value].data = data;
  for (const Node& node : std::vector<Node>(replaced.graph.nodes)) {
    HONE_RETURN_IF_ERROR(EvaluateNode(replaced.graph, node));
  }
  std::vector<Constant> results;
  for (ValueId id : replaced.outputs) {
    results.push_back(id == kAbsent ? Constant()
                                    : Constant{replaced.graph.values[id].type, replaced.graph.values[id].data});
  }
  return results;
}

void ExpectTensor(const Constant& result, const Shape& shape, const std::vector<double>& numbers, double tolerance) {
  EXPECT_EQ(result.type.shape, shape);
  ASSERT_NE(result.data, nullptr);
  const std::vector<double> got = Numbers(result);
  ASSERT_EQ(got.size(), numbers.size());
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (std::isinf(numbers[k])) {
      EXPECT_EQ(got[k], numbers[k]) << "element " << k;
    } else {
      EXPECT_NEAR(got[k], numbers[k], tolerance * std::max(1.0, std::abs(numbers[k]))) << "element " << k;
    }
  }
}

void ExpectDecomposed(const OpCase& test_case, const Shape& shape, const std::vector<double>& numbers,
                      const DecomposeOptions& options, size_t output, double tolerance) {
  SCOPED_TRACE(test_case.op);
  const absl::StatusOr<std::vector<Constant>> results = RunDecomposed(test_case, options);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_LT(output, results->size());
  ExpectTensor((*results)[output], shape, numbers, tolerance);
}

void ExpectAsOnnxRuntime(const std::string& name, const OpCase& test_case, const DecomposeOptions& options,
                         double tolerance) {
  SCOPED_TRACE(name);
  if (const char* folder = std::getenv("HONE_WRITE_DECOMPOSE_CASES")) {
    const absl::StatusOr<std::vector<Constant>> results = RunDecomposed(test_case, options);
    ASSERT_TRUE(results.ok()) << results.status();
    std::ofstream(std::string(folder) + "/" + name + ".onnx", std::ios::binary)
        << WriteModel(test_case, options, *results);
  }
  static const auto kExpected = ReadExpectedOutputs();
  const auto expected = kExpected.find(name);
  ASSERT_NE(expected, kExpected.end()) << "expected_outputs.txt lacks this case";
  ExpectShortAsFloats(test_case, options);
  DecomposeOptions all_constant = options;
  for (size_t i = 0; i < test_case.inputs.size(); ++i) all_constant.constants.insert(i);
  for (const DecomposeOptions& form : {options, all_constant}) {
    const absl::StatusOr<std::vector<Constant>> results = RunDecomposed(test_case, form);
    ASSERT_TRUE(results.ok()) << results.status();
    for (const auto& [output, tensor] : expected->second) {
      SCOPED_TRACE("output " + std::to_string(output));
      ASSERT_LT(output, results->size());
      ExpectTensor((*results)[output], tensor.shape, tensor.numbers, tolerance);
    }
  }
}

std::vector<std::string> DecomposedOps(const OpCase& test_case, const DecomposeOptions& options) {
  const absl::StatusOr<Decomposed> replaced = Replace(test_case, options);
  EXPECT_TRUE(replaced.ok()) << replaced.status();
  std::vector<std::string> ops;
  if (!replaced.ok()) return ops;
  for (const Node& node : replaced->graph.nodes) ops.push_back(node.op);
  return ops;
}

}  // namespace hone::graph
