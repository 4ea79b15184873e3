// SPDX-License-Identifier: Apache-2.0
// Gives reductions over several last dimensions, of which the last is short, one long dimension instead.
#ifndef HONE_COMPILER_GRAPH_PASSES_FLATTEN_REDUCTIONS_H_
#define HONE_COMPILER_GRAPH_PASSES_FLATTEN_REDUCTIONS_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// A reduction over named axes or a global pool (NCHW) over dimensions that lie together at the end of its data becomes
// Reshape, the same over one dimension, and Reshape. Only where the last dimension does not fill two vectors, or
// the lanes of a device that run in step twice: partial results along it would leave most of them unused. Longer ones
// stay, since a Reshape would part a reduction from element-wise operators that become part of its kernel; but for
// those to one number on a device with lanes, which are taken apart.
absl::Status FlattenReductions(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_FLATTEN_REDUCTIONS_H_
