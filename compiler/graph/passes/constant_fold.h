// SPDX-License-Identifier: Apache-2.0
// Constant folding: computes at compile time the nodes that depend on constants only.
#ifndef HONE_COMPILER_GRAPH_PASSES_CONSTANT_FOLD_H_
#define HONE_COMPILER_GRAPH_PASSES_CONSTANT_FOLD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Replaces nodes with constant inputs by constants. Two kinds stay: nodes that would take the interpreter too long, one
// by one or all together; and nodes whose results have more elements than any constant input and are much larger than
// all inputs (an Expand of a scalar is better fused than stored). Writes one log line if nodes stay because all
// together take too long.
absl::Status FoldConstants(Graph& graph);
// The same with a limit on the evaluations of elements for all nodes together.
absl::Status FoldConstants(Graph& graph, int64_t steps_max);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_CONSTANT_FOLD_H_
