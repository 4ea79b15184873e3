// SPDX-License-Identifier: Apache-2.0
// Rewrites reductions over several trailing dimensions, the last of which is short, as reductions over one long
// dimension.
#ifndef HONE_COMPILER_GRAPH_PASSES_FLATTEN_REDUCTIONS_H_
#define HONE_COMPILER_GRAPH_PASSES_FLATTEN_REDUCTIONS_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// A reduction over axes or a global pool (NCHW) over trailing, adjacent dimensions becomes Reshape, the same reduction
// over one dimension, and Reshape. The pass applies only if the last dimension is shorter than two vectors, or twice
// the lanes that run in step on a device: partial results along it would leave most of them unused. Longer ones stay,
// because a Reshape would keep element-wise operators out of the reduction's kernel. On a device with lanes, longer
// reductions to a single number are rewritten nevertheless, because they are split over groups.
absl::Status FlattenReductions(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_FLATTEN_REDUCTIONS_H_
