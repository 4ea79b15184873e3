// SPDX-License-Identifier: Apache-2.0
// Every node of a network is named by exactly the calls that compute it.
//
// What a call computes is derived here from the file alone: the nodes between the values that its inputs hold and those
// that its outputs hold. HONE_NETWORKS names a folder of further ONNX files to check.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "compiler/graph/plan.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/sample_models.h"

namespace hone::models {
namespace {

using Names = std::set<std::string>;

// The nodes of a file and what they depend on.
class FileGraph {
 public:
  // removed: names of nodes that the plan says it does not need.
  FileGraph(const onnx::GraphProto& graph, const Names& removed) : removed_(removed) {
    Names known;  // values that depend on inputs
    std::set<std::string> constants;
    for (const auto& weight : graph.initializer()) constants.insert(weight.name());
    for (const auto& input : graph.input()) {
      if (!constants.contains(input.name())) known.insert(input.name());
    }
    for (int i = 0; i < graph.node_size(); ++i) {
      const onnx::NodeProto& node = graph.node(i);
      const std::string name = node.name().empty() ? fmt::format("{}_{}", node.op_type(), i) : node.name();
      const bool varies =
          std::any_of(node.input().begin(), node.input().end(), [&](const auto& id) { return known.contains(id); });
      if (!varies || node.op_type() == "Shape") continue;  // shapes are fixed here
      for (const std::string& output : node.output()) {
        known.insert(output);
        makers_[output] = {name, &node};
      }
      if (Computes(name, node)) computing_.insert(name);
    }
  }

  const Names& computing() const { return computing_; }

  // The computing nodes on the way from `inputs` to `outputs`.
  Names Between(const Names& inputs, const Names& outputs) const {
    Names nodes, seen;
    std::vector<std::string> pending(outputs.begin(), outputs.end());
    while (!pending.empty()) {
      const std::string value = pending.back();
      pending.pop_back();
      const auto maker = makers_.find(value);
      if (inputs.contains(value) || maker == makers_.end() || !seen.insert(value).second) continue;
      if (Computes(maker->second.name, *maker->second.node)) nodes.insert(maker->second.name);
      pending.insert(pending.end(), maker->second.node->input().begin(), maker->second.node->input().end());
    }
    return nodes;
  }

  // The computing nodes that make the values.
  Names MakersOf(const Names& values) const {
    Names nodes;
    for (const std::string& value : values) {
      const auto maker = makers_.find(value);
      if (maker != makers_.end()) nodes.insert(maker->second.name);
    }
    return OnlyComputing(nodes);
  }

  Names OnlyComputing(const Names& nodes) const {
    Names result;
    std::ranges::set_intersection(nodes, computing_, std::inserter(result, result.end()));
    return result;
  }

 private:
  struct Maker {
    std::string name;
    const onnx::NodeProto* node;
  };

  // Other nodes give a tensor another shape, or none. Some that move elements may turn out to leave all in place.
  bool Computes(const std::string& name, const onnx::NodeProto& node) const {
    static const Names kNothing = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Constant"};
    static const Names kMovement = {"Concat", "Pad", "Slice", "Transpose", "Expand", "Cast"};
    return !kNothing.contains(node.op_type()) && !(kMovement.contains(node.op_type()) && removed_.contains(name));
  }

  const Names removed_;
  std::map<std::string, Maker> makers_;  // by value
  Names computing_;
};

struct Checked {
  size_t calls = 0, exact = 0;
};

// Checks all calls whose tensors hold values of the file, and that every node is named.
Checked CheckPlan(const onnx::GraphProto& proto, const graph::Plan& plan) {
  Names uncalled;
  for (const graph::Origin& origin : plan.uncalled) uncalled.insert(origin.name);
  const FileGraph file(proto, uncalled);
  const auto root = [&](graph::TensorId id) { return plan.Root(id); };
  std::map<graph::TensorId, Names> held;
  for (const graph::PlanValue& value : plan.values) held[root(value.tensor)].insert(value.name);
  for (const graph::TensorId id : plan.inputs) held[root(id)].insert(plan.tensors[id].name);
  Checked checked;
  Names named;
  for (const graph::PlanCall& call : plan.calls) {
    ++checked.calls;
    Names names, inputs, outputs;
    for (const graph::Origin& origin : call.origins) names.insert(origin.name);
    EXPECT_FALSE(names.empty()) << "call " << checked.calls << " of " << plan.workloads[call.workload].op;
    named.insert(names.begin(), names.end());
    const size_t params = plan.workloads[call.workload].params.size();
    bool is_known = true;
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      const graph::TensorId id = root(call.arguments[a]);
      if (plan.tensors[id].data != nullptr) continue;
      const auto values = held.find(id);
      is_known = is_known && values != held.end();
      if (is_known) (a < params ? inputs : outputs).insert(values->second.begin(), values->second.end());
    }
    if (!is_known) continue;
    ++checked.exact;
    const Names expected = file.Between(inputs, outputs);
    Names actual = file.OnlyComputing(names);
    // A kernel that brings a result into another layout may count as a part of the node that made the result.
    if (plan.workloads[call.workload].op == "transpose") {
      for (const std::string& maker : file.MakersOf(inputs)) {
        if (!expected.contains(maker)) actual.erase(maker);
      }
    }
    EXPECT_EQ(actual, expected) << fmt::format("call of {} from {} to {}", plan.workloads[call.workload].op, inputs,
                                               outputs);
  }
  Names missing;
  std::ranges::set_difference(file.computing(), named, std::inserter(missing, missing.end()));
  EXPECT_EQ(missing, Names()) << "no call names these";
  return checked;
}

Checked CheckModel(const std::string& path) {
  onnx::ModelProto model;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(model.ParseFromIstream(&file)) << path;
  const absl::StatusOr<graph::Plan> plan = graph::BuildPlan(path, {.ranges = {{"batch", 2}}}, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? CheckPlan(model.graph(), *plan) : Checked();
}

void ExpectMostExact(const Checked& checked, const std::string& name) {
  EXPECT_GE(2 * checked.exact, checked.calls) << name << ": few calls could be checked exactly: " << checked.exact;
}

TEST(OriginsOfNetworks, NodesOfTheSampleModelsAreNamedExactly) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  for (const SampleModel& sample : SampleModels()) {
    SCOPED_TRACE(sample.name);
    const std::string path = folder / (sample.name + ".onnx");
    std::ofstream(path, std::ios::binary) << sample.model.SerializeAsString();
    ExpectMostExact(CheckModel(path), sample.name);
  }
}

TEST(OriginsOfNetworks, NodesOfGivenNetworksAreNamedExactly) {
  const char* folder = std::getenv("HONE_NETWORKS");
  if (folder == nullptr) GTEST_SKIP() << "HONE_NETWORKS names no folder";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    SCOPED_TRACE(entry.path().string());
    const Checked checked = CheckModel(entry.path().string());
    fmt::print("{}: {} of {} calls checked exactly\n", entry.path().stem().string(), checked.exact, checked.calls);
    ExpectMostExact(checked, entry.path().stem().string());
  }
}

}  // namespace
}  // namespace hone::models
