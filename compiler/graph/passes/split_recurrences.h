// SPDX-License-Identifier: Apache-2.0
// Splits recurrences over long sequences into pieces.
#ifndef HONE_COMPILER_GRAPH_PASSES_SPLIT_RECURRENCES_H_
#define HONE_COMPILER_GRAPH_PASSES_SPLIT_RECURRENCES_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// An RNN, GRU or LSTM over more than 32 steps becomes a chain of nodes over 16 to 32 steps each; the last may have
// fewer. Each node starts with the final state of the one before. A node is compiled with all its steps in one block,
// whose compile time grows with the square of the number of steps; pieces of equal length are one workload, compiled
// and tuned once. Each of two directions becomes a chain of its own. States between pieces have the model's type, f16
// for example. Nodes with two directions whose activations have coefficients are not split.
absl::Status SplitRecurrences(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_SPLIT_RECURRENCES_H_
