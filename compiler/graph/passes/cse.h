// SPDX-License-Identifier: Apache-2.0
// Common subexpressions: equal nodes and equal constants become one.
#ifndef HONE_COMPILER_GRAPH_PASSES_CSE_H_
#define HONE_COMPILER_GRAPH_PASSES_CSE_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Operators that draw random numbers do not get here: none is supported.
absl::Status ShareCommonSubexpressions(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_CSE_H_
