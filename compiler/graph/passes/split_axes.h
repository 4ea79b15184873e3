// SPDX-License-Identifier: Apache-2.0
// Gives operators that take the square of an axis a form that takes blocks of it.
#ifndef HONE_COMPILER_GRAPH_PASSES_SPLIT_AXES_H_
#define HONE_COMPILER_GRAPH_PASSES_SPLIT_AXES_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// A TopK compares each element with all others, and a CumSum adds up all before it. On a long axis
//   - CumSum becomes one of every block and one of the blocks' sums; f16 and bf16 are added up in f32;
//   - TopK, where it takes few of many, takes the groups whose maxima are the largest, and then of what is in them; of
//     the smallest, as many of every block, and then of what is left.
// What is made of blocks is split again where it is still long.
absl::Status SplitAxes(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_SPLIT_AXES_H_
