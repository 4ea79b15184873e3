// SPDX-License-Identifier: Apache-2.0
// Replaces selections with constant conditions by constants or gathers.
#ifndef HONE_COMPILER_GRAPH_PASSES_LOWER_SELECTION_H_
#define HONE_COMPILER_GRAPH_PASSES_LOWER_SELECTION_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// A Compress becomes a Gather with constant indices, and a NonZero becomes a constant. Their conditions are always
// known at compile time. The original operators would write all positions into their expressions; for a long list the
// workload's text would exceed the parser's size limit.
absl::Status LowerSelections(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_LOWER_SELECTION_H_
