// SPDX-License-Identifier: Apache-2.0
// Rewrites grouped convolutions so that the groups are a dimension of their own.
#ifndef HONE_COMPILER_GRAPH_PASSES_LOWER_GROUPED_CONV_H_
#define HONE_COMPILER_GRAPH_PASSES_LOWER_GROUPED_CONV_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// A Conv with several groups and more than one output channel per group becomes GroupedConv and Reshape. The output of
// GroupedConv, [N, groups, channels of a group, D...] (in NHWC [N, D..., groups, channels of a group]), has the same
// memory order as the original. In the original form, an output channel finds its inputs by a division of its index,
// and a tile may cover channels of several groups.
absl::Status LowerGroupedConvs(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_LOWER_GROUPED_CONV_H_
