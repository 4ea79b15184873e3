// SPDX-License-Identifier: Apache-2.0
// Removes nodes that do nothing, merges chains of transposes and reshapes, and writes a few things the cheaper way.
#ifndef HONE_COMPILER_GRAPH_PASSES_SIMPLIFY_H_
#define HONE_COMPILER_GRAPH_PASSES_SIMPLIFY_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Until nothing changes any more. Afterwards Squeeze, Unsqueeze and Flatten are Reshapes with a constant shape, no
// Reshape or Transpose reads another of its kind, reductions over several dimensions keep them, and outputs that nobody
// reads are kAbsent.
absl::Status Simplify(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_SIMPLIFY_H_
