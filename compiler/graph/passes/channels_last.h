// SPDX-License-Identifier: Apache-2.0
// The channels-last form of a single node (NHWC, also NWC and NDHWC): whether it exists, and how to build it. The
// layout pass decides where to use it.
#ifndef HONE_COMPILER_GRAPH_PASSES_CHANNELS_LAST_H_
#define HONE_COMPILER_GRAPH_PASSES_CHANNELS_LAST_H_

#include <functional>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/passes/permute.h"

namespace hone::graph {

// The permutation from [N, C, ...] to [N, ..., C], and its inverse.
Perm ToChannelsLast(size_t rank);
Perm ToChannelsFirst(size_t rank);

// Returns true if the value has batch and channel dimensions that can be permuted: it has rank 3 to 5 (a signal, an
// image or a volume) and is not constant.
bool HasLayout(const Graph& graph, ValueId id);

// Returns true if the node has a channels-last form. In that form all its values of its data's rank are permuted.
bool HasChannelsLastForm(const Graph& graph, const Node& node);

// Returns true if the channels-last form of the node reads the value permuted. Values of another rank are read
// unchanged.
bool ReadsChannelsLast(const Graph& graph, const Node& node, ValueId id);

// Appends the channels-last form of the node and returns its outputs. `converted` returns the permuted form of an input
// for which HasLayout holds.
absl::StatusOr<std::vector<ValueId>> AddChannelsLast(Graph& graph, const Node& node,
                                                     const std::function<absl::StatusOr<ValueId>(ValueId)>& converted);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_CHANNELS_LAST_H_
