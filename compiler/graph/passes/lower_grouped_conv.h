// SPDX-License-Identifier: Apache-2.0
// Gives convolutions in groups a form whose groups are a dimension of their own.
#ifndef HONE_COMPILER_GRAPH_PASSES_LOWER_GROUPED_CONV_H_
#define HONE_COMPILER_GRAPH_PASSES_LOWER_GROUPED_CONV_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// A Conv of several groups with more than one output channel each becomes GroupedConv, whose output [N, groups,
// channels of a group, D...] (in NHWC [N, D..., groups, channels of a group]) is the same memory, and Reshape.
// Without it, which inputs an output channel reads is a division of its number, and the channels of a tile belong to
// several groups unless the tiles divide a group.
absl::Status LowerGroupedConvs(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_LOWER_GROUPED_CONV_H_
