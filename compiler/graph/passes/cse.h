// SPDX-License-Identifier: Apache-2.0
// Common-subexpression elimination: equal nodes become one node, and equal constants one constant.
#ifndef HONE_COMPILER_GRAPH_PASSES_CSE_H_
#define HONE_COMPILER_GRAPH_PASSES_CSE_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Assumes that nodes are deterministic. Import rejects operators that draw random numbers.
absl::Status ShareCommonSubexpressions(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_CSE_H_
