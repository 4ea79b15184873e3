// SPDX-License-Identifier: Apache-2.0
// Folds batch normalization and other per-channel scaling into the weights of the preceding layer.
#ifndef HONE_COMPILER_GRAPH_PASSES_FOLD_SCALE_H_
#define HONE_COMPILER_GRAPH_PASSES_FOLD_SCALE_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Folds a BatchNormalization in inference mode, or a product or sum with per-channel constants, into the weights and
// bias of a Conv, ConvTranspose or Gemm. The layer's weights must be constant, the folded node must be its only reader,
// and the weights' type must be able to hold the results. Every remaining BatchNormalization becomes a product and a
// sum.
absl::Status FoldScale(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_FOLD_SCALE_H_
