// SPDX-License-Identifier: Apache-2.0
// Moves reshapes behind the elementwise work that follows them, so that this work can be fused with what is before.
#ifndef HONE_COMPILER_GRAPH_PASSES_SINK_RESHAPES_H_
#define HONE_COMPILER_GRAPH_PASSES_SINK_RESHAPES_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// f(Reshape(x), y) becomes Reshape(f(x, Reshape(y))) where x has fewer dimensions (a matrix product as rows) and that
// costs nothing: reshapes of whole tensors move no byte.
// Expects what Simplify leaves, and leaves it again.
absl::Status SinkReshapes(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_SINK_RESHAPES_H_
