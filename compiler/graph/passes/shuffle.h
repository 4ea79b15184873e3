// SPDX-License-Identifier: Apache-2.0
// Channel shuffles. Models write them as Reshape, Transpose, Reshape with five dimensions, which no other pass can
// handle.
#ifndef HONE_COMPILER_GRAPH_PASSES_SHUFFLE_H_
#define HONE_COMPILER_GRAPH_PASSES_SHUFFLE_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Replaces the three nodes by one Gather along the channels, which the layout pass can move like any other node.
absl::Status NameShuffles(Graph& graph);
// Replaces each Gather whose constant indices are a shuffle by Reshape, Transpose, Reshape along its current axis. This
// form needs no index table at run time.
absl::Status SpellShuffles(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_SHUFFLE_H_
