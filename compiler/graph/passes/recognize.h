// SPDX-License-Identifier: Apache-2.0
// Recognizes operators that a model spells out as several nodes, and replaces each such pattern by one node.
//
// Models do this when their opset lacks the operator. The kernel of a layer norm is faster than one fused from nine
// nodes, and its workload has a telling label.
#ifndef HONE_COMPILER_GRAPH_PASSES_RECOGNIZE_H_
#define HONE_COMPILER_GRAPH_PASSES_RECOGNIZE_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Recognizes GELU (by erf or tanh), SiLU, Mish, hard swish, layer norm and RMS norm. A pattern stays if other nodes
// read one of its inner values.
absl::Status RecognizePatterns(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_RECOGNIZE_H_
