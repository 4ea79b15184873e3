// Gives transposed convolutions a form without divisions inside their sums: one small convolution per phase.
#ifndef HONE_COMPILER_GRAPH_PASSES_LOWER_CONV_TRANSPOSE_H_
#define HONE_COMPILER_GRAPH_PASSES_LOWER_CONV_TRANSPOSE_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// A ConvTranspose in NHWC (constant weights, a stride over 1, no dilation, one group) becomes PhasedConvTranspose,
// whose output [N, D / stride, stride, ..., C] is the same memory (and Add), Reshape, and Slice where the stride does
// not divide the output.
absl::Status LowerConvTransposes(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_LOWER_CONV_TRANSPOSE_H_
