// One node in NHWC instead of NCHW: whether it has such a form, and what it is. The layout pass decides where to use
// it.
#ifndef HONE_COMPILER_GRAPH_PASSES_CHANNELS_LAST_H_
#define HONE_COMPILER_GRAPH_PASSES_CHANNELS_LAST_H_

#include <functional>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/passes/permute.h"

namespace hone::graph {

inline const Perm kToChannelsLast = {0, 2, 3, 1};
inline const Perm kToChannelsFirst = {0, 3, 1, 2};

// A value whose order the change is about: of rank 4 and not constant.
bool HasLayout(const Graph& graph, ValueId id);

// Whether ToChannelsLast works for the node: all its values of rank 4 change order.
bool HasChannelsLastForm(const Graph& graph, const Node& node);

// Appends the node in NHWC and returns its outputs. `converted` gives the NHWC form of an input that HasLayout.
absl::StatusOr<std::vector<ValueId>> ToChannelsLast(Graph& graph, const Node& node,
                                                    const std::function<absl::StatusOr<ValueId>(ValueId)>& converted);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_CHANNELS_LAST_H_
