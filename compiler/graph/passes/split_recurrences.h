// SPDX-License-Identifier: Apache-2.0
// Cuts recurrences over long sequences into pieces.
#ifndef HONE_COMPILER_GRAPH_PASSES_SPLIT_RECURRENCES_H_
#define HONE_COMPILER_GRAPH_PASSES_SPLIT_RECURRENCES_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// An RNN, GRU or LSTM over more than 32 steps becomes a chain of nodes over 16 to 32 steps each, where a node begins
// with the state in which the one before ended; the last may have fewer. A node is compiled with all its steps in one
// block, which takes the square of their number; pieces of one length are one workload, compiled and tuned once. Of two
// directions each becomes a chain. States between pieces have the type of the model, f16 for example. Nodes of two
// directions whose activations have coefficients stay as they are.
absl::Status SplitRecurrences(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_SPLIT_RECURRENCES_H_
