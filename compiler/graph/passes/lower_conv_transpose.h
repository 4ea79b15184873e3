// SPDX-License-Identifier: Apache-2.0
// Rewrites transposed convolutions so that their sums need no division: as one small convolution per phase, or as one
// matrix product followed by sums of its elements.
#ifndef HONE_COMPILER_GRAPH_PASSES_LOWER_CONV_TRANSPOSE_H_
#define HONE_COMPILER_GRAPH_PASSES_LOWER_CONV_TRANSPOSE_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Rewrites each ConvTranspose in NHWC with constant weights, a stride over 1, no dilation and one group. It becomes
// PhasedConvTranspose, or, if it has few output channels or a kernel that the stride does not divide, MatMul, Reshape
// and SumTaps. The result of either, [N, D / stride, stride, ..., C], has the same memory order as the original output.
// Reshape restores its shape, with Add before it for a bias and Slice after it if the stride does not divide the
// output.
absl::Status LowerConvTransposes(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_LOWER_CONV_TRANSPOSE_H_
