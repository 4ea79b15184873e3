// SPDX-License-Identifier: Apache-2.0
// Simplification: removes nodes without effect, merges chains of transposes and reshapes, and rewrites some nodes to
// cheaper ones.
#ifndef HONE_COMPILER_GRAPH_PASSES_SIMPLIFY_H_
#define HONE_COMPILER_GRAPH_PASSES_SIMPLIFY_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Repeats its rules until nothing changes. Afterwards Squeeze, Unsqueeze and Flatten are Reshapes with a constant
// shape; no Reshape reads a Reshape and no Transpose reads a Transpose; reductions over several dimensions keep them
// with extent 1; and unused outputs are kAbsent.
absl::Status Simplify(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_SIMPLIFY_H_
