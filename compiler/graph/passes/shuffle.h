// SPDX-License-Identifier: Apache-2.0
// Channel shuffles: models spell them Reshape, Transpose, Reshape in five dimensions, which nothing else understands.
#ifndef HONE_COMPILER_GRAPH_PASSES_SHUFFLE_H_
#define HONE_COMPILER_GRAPH_PASSES_SHUFFLE_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// The three nodes become one Gather along the channels, which the layout pass can move like any other node.
absl::Status NameShuffles(Graph& graph);
// Gathers whose constant indices are a shuffle become Reshape, Transpose, Reshape again, along whatever axis they now
// have: that needs no table at run time.
absl::Status SpellShuffles(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_SHUFFLE_H_
