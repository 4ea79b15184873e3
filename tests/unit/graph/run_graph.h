// SPDX-License-Identifier: Apache-2.0
// From model bytes to numbers: what most tests of import, passes and fusion compare.
#ifndef HONE_TESTS_UNIT_GRAPH_RUN_GRAPH_H_
#define HONE_TESTS_UNIT_GRAPH_RUN_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/plan.h"

namespace hone::graph {

// The imported model, no pass run; fails the test and returns an empty graph on error.
Graph Import(const std::string& model, const ImportOptions& options = {});
absl::Status ImportError(const std::string& model, const ImportOptions& options = {});
// The same after all passes.
Graph Optimize(const std::string& model);

// All float32 outputs, one after the other, on random inputs made from the seed.
std::vector<float> RunOnRandom(const Graph& graph, uint64_t seed);

// The model gives the same numbers with passes and without (one kernel per cluster of nodes either way). Returns the
// graph after the passes.
Graph ExpectPassesKeepMeaning(const std::string& model);

// Operators of the graph in order, for comparison.
std::vector<std::string> Ops(const Graph& graph);
// How often the graph has the operator.
int CountOps(const Graph& graph, const std::string& op);
// Labels of the plan's calls in order.
std::vector<std::string> CallLabels(const Plan& plan);
Plan PlanOf(const Graph& graph);

}  // namespace hone::graph

#endif  // HONE_TESTS_UNIT_GRAPH_RUN_GRAPH_H_
