// SPDX-License-Identifier: Apache-2.0
// Computes at compile time what depends on constants only.
#ifndef HONE_COMPILER_GRAPH_PASSES_CONSTANT_FOLD_H_
#define HONE_COMPILER_GRAPH_PASSES_CONSTANT_FOLD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Nodes with constant inputs become constants, except those that would take the interpreter too long, one by one or all
// together, and those whose results have more elements than any constant input and are much larger than all inputs (an
// Expand of a scalar is better fused than stored). Of nodes that are left because of all others a line of the log
// tells.
absl::Status FoldConstants(Graph& graph);
// With that many evaluations of an element for all nodes together.
absl::Status FoldConstants(Graph& graph, int64_t most_steps);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_CONSTANT_FOLD_H_
