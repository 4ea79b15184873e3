// SPDX-License-Identifier: Apache-2.0
// Imports, optimizes and runs small models, for most tests of import, passes and fusion.
#ifndef HONE_TESTS_UNIT_GRAPH_RUN_GRAPH_H_
#define HONE_TESTS_UNIT_GRAPH_RUN_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/plan.h"

namespace hone::graph {

// Imports the model without running any pass. On error it fails the test and returns an empty graph.
Graph Import(const std::string& model, const ImportOptions& options = {});
absl::Status ImportError(const std::string& model, const ImportOptions& options = {});
// Imports the model and runs all passes.
Graph Optimize(const std::string& model);

// Returns all float32 outputs, one after the other, for random inputs made from the seed.
std::vector<float> RunOnRandom(const Graph& graph, uint64_t seed);

// Expects the same numbers with and without passes (one kernel per cluster of nodes in both cases). Returns the graph
// after the passes.
Graph ExpectPassesKeepMeaning(const std::string& model);

// The graph's operators in order.
std::vector<std::string> Ops(const Graph& graph);
// Number of nodes with this operator.
int CountOps(const Graph& graph, const std::string& op);
// Labels of the plan's calls in order.
std::vector<std::string> CallLabels(const Plan& plan);
Plan PlanOf(const Graph& graph);

}  // namespace hone::graph

#endif  // HONE_TESTS_UNIT_GRAPH_RUN_GRAPH_H_
