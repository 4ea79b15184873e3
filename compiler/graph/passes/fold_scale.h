// Batch normalization and other scaling per channel, computed into the weights of the layer before.
#ifndef HONE_COMPILER_GRAPH_PASSES_FOLD_SCALE_H_
#define HONE_COMPILER_GRAPH_PASSES_FOLD_SCALE_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// BatchNormalization in inference becomes a product and a sum with constants per channel. A product or sum with
// constants per channel that alone reads a Conv, ConvTranspose or Gemm with constant weights goes into those weights
// and the bias. float32 only.
absl::Status FoldScale(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_FOLD_SCALE_H_
