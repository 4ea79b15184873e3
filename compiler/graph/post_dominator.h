// SPDX-License-Identifier: Apache-2.0
// Post-dominators: the node at which all paths from a node's outputs meet again. Fusion across branches needs them.
#ifndef HONE_COMPILER_GRAPH_POST_DOMINATOR_H_
#define HONE_COMPILER_GRAPH_POST_DOMINATOR_H_

#include <vector>

#include "compiler/graph/graph.h"

namespace hone::graph {

// Returns per node the index of the first node that lies on every path from it to the graph outputs. The entry is -1 if
// there is none: an output of the node is a graph output, or the paths end in different graph outputs. The graph must
// be tidy.
std::vector<int> ImmediatePostDominators(const Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_POST_DOMINATOR_H_
