// SPDX-License-Identifier: Apache-2.0
// Fusion: partitions the nodes of a graph into clusters, each of which becomes one kernel.
//
// This is the last step on the graph before the plan is made (plan.h). A cluster has one exit node. Only the exit's
// outputs are read outside the cluster, so a cluster is a function of its inputs and clusters can be ordered. Not here:
// how a cluster is computed, which is the schedule's decision.
#ifndef HONE_COMPILER_GRAPH_FUSE_H_
#define HONE_COMPILER_GRAPH_FUSE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

struct Cluster {
  std::vector<int> nodes;  // indices into Graph::nodes, ascending; the last is the exit
  std::string op;          // label of the workload, see Workload::op: "conv2d", "matmul", "softmax", "elementwise", ...
};

// kNone makes each node a cluster of its own, for a plan that computes every value of the graph.
enum class Fusion : uint8_t { kFull, kNone };

// Returns the clusters in execution order. Every node is in exactly one of them, except views (IsView in op_facts.h),
// which are in none. The graph must be tidy (graph_edit.h).
absl::StatusOr<std::vector<Cluster>> Fuse(const Graph& graph, Fusion fusion = Fusion::kFull);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_FUSE_H_
