// SPDX-License-Identifier: Apache-2.0
// Where all ways that a node's outputs can take come together again: the question behind fusing across branches.
#ifndef HONE_COMPILER_GRAPH_POST_DOMINATOR_H_
#define HONE_COMPILER_GRAPH_POST_DOMINATOR_H_

#include <vector>

#include "compiler/graph/graph.h"

namespace hone::graph {

// Per node the first node that every path from it to a graph output passes through, or -1 if there is none (an output
// of the node is a graph output, or the paths meet only outside the graph). The graph must be tidy.
std::vector<int> ImmediatePostDominators(const Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_POST_DOMINATOR_H_
