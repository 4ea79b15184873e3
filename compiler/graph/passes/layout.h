// SPDX-License-Identifier: Apache-2.0
// Layout selection: moves activations of convolutional networks to channels last (NHWC), for which the CPU kernels are
// written.
//
// Vectors run along the output channels, so a convolution is a matrix product of pixels and channels. Nodes with
// channels (convolutions, pools) and nodes that work in any order form connected regions. A region changes as a whole
// if the estimated gain exceeds the cost of the Transposes where tensors enter or leave it. Weights keep their order.
#ifndef HONE_COMPILER_GRAPH_PASSES_LAYOUT_H_
#define HONE_COMPILER_GRAPH_PASSES_LAYOUT_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Requires a graph that Simplify has processed. Run Simplify afterwards as well: it cancels pairs of Transposes that
// meet at the borders of regions.
absl::Status ChooseLayouts(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_LAYOUT_H_
