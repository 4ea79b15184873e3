// SPDX-License-Identifier: Apache-2.0
// One node with its channels last instead of first (NHWC, but also NWC and NDHWC): whether it has such a form, and what
// it is. The layout pass decides where to use it.
#ifndef HONE_COMPILER_GRAPH_PASSES_CHANNELS_LAST_H_
#define HONE_COMPILER_GRAPH_PASSES_CHANNELS_LAST_H_

#include <functional>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/passes/permute.h"

namespace hone::graph {

// From [N, C, ...] to [N, ..., C], and back.
Perm ToChannelsLast(size_t rank);
Perm ToChannelsFirst(size_t rank);

// A value whose order the change is about: a signal, an image or a volume with batch and channels (rank 3 to 5), not
// constant.
bool HasLayout(const Graph& graph, ValueId id);

// Whether the node has that form: all its values of its rank change their order.
bool HasChannelsLastForm(const Graph& graph, const Node& node);

// Whether that form of the node reads that form of the value; what has another rank it reads as it is.
bool ReadsChannelsLast(const Graph& graph, const Node& node, ValueId id);

// Appends the node with its channels last and returns its outputs. `converted` gives that form of an input that
// HasLayout.
absl::StatusOr<std::vector<ValueId>> AddChannelsLast(Graph& graph, const Node& node,
                                                     const std::function<absl::StatusOr<ValueId>(ValueId)>& converted);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_CHANNELS_LAST_H_
