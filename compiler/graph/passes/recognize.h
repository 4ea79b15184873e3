// SPDX-License-Identifier: Apache-2.0
// Finds operators that a model spells out in many nodes because its opset had no name for them, and gives them one:
// a kernel for a layer norm is faster than one fused from its nine parts, and its workload says what it is.
#ifndef HONE_COMPILER_GRAPH_PASSES_RECOGNIZE_H_
#define HONE_COMPILER_GRAPH_PASSES_RECOGNIZE_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// GELU (by erf or tanh), SiLU, Mish, hard swish, layer norm and RMS norm. Parts that others read stay.
absl::Status RecognizePatterns(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_RECOGNIZE_H_
