// SPDX-License-Identifier: Apache-2.0
// Builds the workload of a cluster of nodes: the stages of its operators in sequence, brought into canonical form.
#ifndef HONE_COMPILER_GRAPH_KERNEL_H_
#define HONE_COMPILER_GRAPH_KERNEL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/fuse.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/workload.h"

namespace hone::graph {

struct Kernel {
  ir::Workload workload;         // canonical; its params are only the buffers that the stages read
  std::vector<ValueId> inputs;   // one per param
  std::vector<ValueId> outputs;  // one per workload output
  std::vector<ir::Size> sizes;   // one per open size of the workload: its value, from the open sizes of the graph
};

// Builds the kernel. Constants of one element become immediates, except floats that typically differ from layer to
// layer (OpFacts::floats_differ). Errors come from the operators.
absl::StatusOr<Kernel> BuildKernel(const Graph& graph, const Cluster& cluster);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_KERNEL_H_
