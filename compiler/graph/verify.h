// SPDX-License-Identifier: Apache-2.0
// The legality rules of the graph, checked between passes.
#ifndef HONE_COMPILER_GRAPH_VERIFY_H_
#define HONE_COMPILER_GRAPH_VERIFY_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Every value is defined once (an input, a constant or the output of a node) and before it is used; constants have the
// bytes of their types; every node has outputs of the types that its operator infers; every output is defined and
// named. Errors: InvalidArgument naming the node or value; that of the operator if it refuses the node.
absl::Status Verify(const Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_VERIFY_H_
