// SPDX-License-Identifier: Apache-2.0
// Gives transposed convolutions a form without divisions inside their sums: one small convolution per phase, or one
// product of matrices and sums of what it gives.
#ifndef HONE_COMPILER_GRAPH_PASSES_LOWER_CONV_TRANSPOSE_H_
#define HONE_COMPILER_GRAPH_PASSES_LOWER_CONV_TRANSPOSE_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// A ConvTranspose in NHWC (constant weights, a stride over 1, no dilation, one group) becomes PhasedConvTranspose, or,
// with few output channels or a kernel that the stride does not divide, MatMul, Reshape and SumTaps. The output of
// either, [N, D / stride, stride, ..., C], is the same memory; (Add,) Reshape, and Slice where the stride does not
// divide the output, make the rest of it.
absl::Status LowerConvTransposes(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_LOWER_CONV_TRANSPOSE_H_
