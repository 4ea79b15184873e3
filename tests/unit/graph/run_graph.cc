// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/graph/run_graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/interpret_plan.h"
#include "compiler/graph/onnx_import.h"
#include "compiler/graph/passes/pipeline.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"

namespace hone::graph {
namespace {

ir::Bytes RandomBytes(const TensorType& type, uint64_t seed) {
  ir::Bytes bytes(ByteSize(type));
  if (type.dtype == ir::DType::kFloat32) {
    const std::vector<float> values = RandomFloats(type.elements().value(), seed);
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    Random random(seed);
    const int64_t size = ir::SizeOf(type.dtype);
    for (int64_t i = 0; i < type.elements().value(); ++i) bytes[i * size] = static_cast<std::byte>(random.Below(2));
  }
  return bytes;
}

}  // namespace

Graph Import(const std::string& model, const ImportOptions& options) {
  absl::StatusOr<Graph> graph = ImportOnnxBytes(model, ".", options);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

absl::Status ImportError(const std::string& model, const ImportOptions& options) {
  return ImportOnnxBytes(model, ".", options).status();
}

Graph Optimize(const std::string& model) {
  Graph graph = Import(model);
  const absl::Status status = RunPasses(graph, {.verify = true});
  EXPECT_TRUE(status.ok()) << status;
  return graph;
}

Plan PlanOf(const Graph& graph) {
  absl::StatusOr<Plan> plan = BuildPlan(graph);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : Plan();
}

std::vector<float> RunOnRandom(const Graph& graph, uint64_t seed) {
  const Plan plan = PlanOf(graph);
  std::vector<ir::Bytes> inputs;
  for (TensorId id : plan.inputs) inputs.push_back(RandomBytes(plan.tensors[id].type, seed++));
  absl::StatusOr<std::vector<ir::Bytes>> outputs = InterpretPlan(plan, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  std::vector<float> numbers;
  for (size_t i = 0; outputs.ok() && i < outputs->size(); ++i) {
    const TensorType& type = plan.tensors[plan.outputs[i]].type;
    if (type.dtype != ir::DType::kFloat32) continue;
    std::vector<float> values(static_cast<size_t>(type.elements().value()));
    EXPECT_EQ((*outputs)[i].size(), values.size() * sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), (*outputs)[i].data(), values.size() * sizeof(float));
    numbers.insert(numbers.end(), values.begin(), values.end());
  }
  return numbers;
}

Graph ExpectPassesKeepMeaning(const std::string& model) {
  const Graph before = Import(model);
  const Graph after = Optimize(model);
  const std::vector<float> expected = RunOnRandom(before, 1), actual = RunOnRandom(after, 1);
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    EXPECT_NEAR(expected[i], actual[i], 1e-4 * std::max(1.0f, std::fabs(expected[i]))) << "at " << i;
    if (testing::Test::HasFailure()) break;
  }
  return after;
}

std::vector<std::string> Ops(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes) ops.push_back(node.op);
  return ops;
}

int CountOps(const Graph& graph, const std::string& op) {
  const std::vector<std::string> ops = Ops(graph);
  return static_cast<int>(std::count(ops.begin(), ops.end(), op));
}

std::vector<std::string> CallLabels(const Plan& plan) {
  std::vector<std::string> labels;
  for (const PlanCall& call : plan.calls) labels.push_back(plan.workloads[call.workload].op);
  return labels;
}

}  // namespace hone::graph
