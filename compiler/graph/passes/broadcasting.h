// Operators that work element by element with numpy's broadcasting: the ones that passes may move reshapes and
// transposes across by changing nothing but the shapes of the operands.
#ifndef HONE_COMPILER_GRAPH_PASSES_BROADCASTING_H_
#define HONE_COMPILER_GRAPH_PASSES_BROADCASTING_H_

#include "compiler/graph/graph.h"

namespace hone::graph {

// True if every output element depends only on the operands' elements at the same (broadcast) place, and no attribute
// or operand speaks of axes.
bool IsBroadcasting(const Node& node);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_BROADCASTING_H_
