// SPDX-License-Identifier: Apache-2.0
// Puts what selections take into constants.
#ifndef HONE_COMPILER_GRAPH_PASSES_LOWER_SELECTION_H_
#define HONE_COMPILER_GRAPH_PASSES_LOWER_SELECTION_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// A Compress, whose condition is known, becomes a Gather with constant indices, and a NonZero a constant. As operators
// they have the positions in their expressions: the text of a workload with a long list of them is larger than its
// parser takes.
absl::Status LowerSelections(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_LOWER_SELECTION_H_
