// SPDX-License-Identifier: Apache-2.0
// The graph verifier: checks the legality rules of a graph. The pass runner calls it between passes.
#ifndef HONE_COMPILER_GRAPH_VERIFY_H_
#define HONE_COMPILER_GRAPH_VERIFY_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Checks that every value is defined once (as an input, a constant or a node's output) and before its first use; that a
// constant's bytes fit its type; that node outputs have the types that the operator infers; and that graph outputs are
// defined and named; and that every node has an origin in the file, if the graph has origins. Errors: InvalidArgument
// naming the node or value, or the operator's own error if it rejects the node.
absl::Status Verify(const Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_VERIFY_H_
