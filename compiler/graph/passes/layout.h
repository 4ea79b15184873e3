// SPDX-License-Identifier: Apache-2.0
// Channels last: activations of 2-D convolutional networks in NHWC, which is what our CPU kernels are written for.
//
// Vectors run along the output channels, so a convolution is a matrix product of pixels and channels. Nodes that know
// channels (convolutions, pools) and nodes that can live with any order form connected regions; a region changes as a
// whole, with a Transpose wherever a tensor enters or leaves it, if that pays. Weights stay as they are.
#ifndef HONE_COMPILER_GRAPH_PASSES_LAYOUT_H_
#define HONE_COMPILER_GRAPH_PASSES_LAYOUT_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Expects what Simplify leaves. Run Simplify afterwards: it cancels pairs of Transposes that meet at borders.
absl::Status ChooseLayouts(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_LAYOUT_H_
