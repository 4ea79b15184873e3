// Computes at compile time what depends on constants only.
#ifndef HONE_COMPILER_GRAPH_PASSES_CONSTANT_FOLD_H_
#define HONE_COMPILER_GRAPH_PASSES_CONSTANT_FOLD_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Nodes with constant inputs become constants, except those that would take the interpreter too long or whose result
// is much larger than what it is made from (an Expand of a scalar is better fused than stored).
absl::Status FoldConstants(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_CONSTANT_FOLD_H_
