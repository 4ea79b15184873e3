// SPDX-License-Identifier: Apache-2.0
// From a cluster of nodes to a workload: the operators' stages one after the other, in canonical form.
#ifndef HONE_COMPILER_GRAPH_KERNEL_H_
#define HONE_COMPILER_GRAPH_KERNEL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/fuse.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/workload.h"

namespace hone::graph {

struct Kernel {
  ir::Workload workload;         // canonical; params are only those that the stages read
  std::vector<ValueId> inputs;   // per param
  std::vector<ValueId> outputs;  // per workload output
};

// Constants of one element become immediates, but for floats that differ from layer to layer (op_facts.h). Errors come
// from the operators.
absl::StatusOr<Kernel> BuildKernel(const Graph& graph, const Cluster& cluster);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_KERNEL_H_
