// SPDX-License-Identifier: Apache-2.0
// Moves reshapes behind the element-wise nodes that read them, so that these nodes can be fused with the kernel before
// the reshape.
#ifndef HONE_COMPILER_GRAPH_PASSES_SINK_RESHAPES_H_
#define HONE_COMPILER_GRAPH_PASSES_SINK_RESHAPES_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// f(Reshape(x), y) becomes Reshape(f(x, Reshape(y))) if x has fewer dimensions than its reshape (a matrix product as
// rows) and the new reshapes are free, that is, move no bytes. Requires a graph that Simplify has processed, and keeps
// its properties.
absl::Status SinkReshapes(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_SINK_RESHAPES_H_
