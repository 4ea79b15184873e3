// SPDX-License-Identifier: Apache-2.0
// Gives every matrix product that can have it the one form that is tuned best: rows x K times a constant K x N.
//
// Images in NCHW have the other: constant rows x K times K x pixels.
#ifndef HONE_COMPILER_GRAPH_PASSES_LOWER_MATMUL_H_
#define HONE_COMPILER_GRAPH_PASSES_LOWER_MATMUL_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Gemm with constant weights becomes MatMul and Add; a 1x1 convolution (constant weights, stride 1, no padding, one
// group) and a MatMul of more than two dimensions with a constant matrix become Reshape, MatMul (and Add), Reshape.
// After a depthwise convolution with channels last, pixels stay as they are, so that one kernel can do both (fuse.h).
absl::Status LowerMatMuls(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_LOWER_MATMUL_H_
