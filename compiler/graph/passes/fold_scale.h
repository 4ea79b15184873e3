// SPDX-License-Identifier: Apache-2.0
// Batch normalization and other scaling per channel, computed into the weights of the layer before.
#ifndef HONE_COMPILER_GRAPH_PASSES_FOLD_SCALE_H_
#define HONE_COMPILER_GRAPH_PASSES_FOLD_SCALE_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// A BatchNormalization in inference, or a product or sum with constants per channel, that alone reads a Conv,
// ConvTranspose or Gemm with constant weights goes into those weights and the bias, where they can hold the results. A
// BatchNormalization that is left becomes a product and a sum.
absl::Status FoldScale(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_FOLD_SCALE_H_
