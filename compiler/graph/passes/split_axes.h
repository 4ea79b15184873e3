// SPDX-License-Identifier: Apache-2.0
// Splits long axes into blocks for operators whose work is quadratic in the axis length.
#ifndef HONE_COMPILER_GRAPH_PASSES_SPLIT_AXES_H_
#define HONE_COMPILER_GRAPH_PASSES_SPLIT_AXES_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// TopK compares each element with all others, and CumSum sums all elements before each one. On a long axis
//   - CumSum becomes a CumSum within every block and one of the blocks' sums; f16 and bf16 are summed in f32;
//   - TopK of the largest elements, if k is small, becomes a TopK of the groups' maxima and then a TopK of the elements
//     of the chosen groups;
//   - TopK of the smallest elements, if k is small, becomes a TopK of every block and then a TopK of those results.
// The new nodes are split again while their axes are long.
absl::Status SplitAxes(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_SPLIT_AXES_H_
