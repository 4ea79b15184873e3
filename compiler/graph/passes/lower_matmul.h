// SPDX-License-Identifier: Apache-2.0
// Rewrites matrix products to the one form that is tuned best: rows x K times a constant K x N.
//
// Images in NCHW use the mirrored form: constant rows x K times K x pixels.
#ifndef HONE_COMPILER_GRAPH_PASSES_LOWER_MATMUL_H_
#define HONE_COMPILER_GRAPH_PASSES_LOWER_MATMUL_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Gemm with constant weights becomes MatMul and Add. A 1x1 convolution (constant weights, stride 1, no padding, one
// group) and a MatMul of more than two dimensions with a constant matrix become Reshape, MatMul, Add if there is a
// bias, and Reshape. A 1x1 convolution after a depthwise convolution with channels last gets no Reshapes, so that one
// kernel can compute both (fuse.h).
absl::Status LowerMatMuls(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_LOWER_MATMUL_H_
