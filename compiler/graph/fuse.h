// SPDX-License-Identifier: Apache-2.0
// Which nodes become one kernel. The last step of the graph before it is a plan.
//
// A cluster has one exit node, whose outputs are all that leaves it; every other value in it is read only inside. So a
// cluster is a function of its inputs and clusters can be ordered. Not here: how a cluster is computed (schedule).
#ifndef HONE_COMPILER_GRAPH_FUSE_H_
#define HONE_COMPILER_GRAPH_FUSE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

struct Cluster {
  std::vector<int> nodes;  // indices into Graph::nodes, ascending; the last is the exit
  std::string op;          // what it is, as Workload::op has it: "conv2d", "matmul", "softmax", "elementwise", ...
};

// Clusters in execution order; every node that is no view (op_facts.h) is in exactly one. The graph must be tidy
// (graph_edit.h).
absl::StatusOr<std::vector<Cluster>> Fuse(const Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_FUSE_H_
