// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/decompose/decompose_case.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "gtest/gtest.h"

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
  HONE_ASSIGN_OR_RETURN(result.outputs,
                        decompose::Decompose(*row, node, {graph, add, [](ValueId) { return absl::OkStatus(); }}));
  return result;
}

}  // namespace

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

std::vector<std::string> DecomposedOps(const OpCase& test_case, const DecomposeOptions& options) {
  const absl::StatusOr<Decomposed> replaced = Replace(test_case, options);
  EXPECT_TRUE(replaced.ok()) << replaced.status();
  std::vector<std::string> ops;
  if (!replaced.ok()) return ops;
  for (const Node& node : replaced->graph.nodes) ops.push_back(node.op);
  return ops;
}

}  // namespace hone::graph
