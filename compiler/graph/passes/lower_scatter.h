// SPDX-License-Identifier: Apache-2.0
// Rewrites scatters to forms that search less or, if the indices are constant, not at all.
#ifndef HONE_COMPILER_GRAPH_PASSES_LOWER_SCATTER_H_
#define HONE_COMPILER_GRAPH_PASSES_LOWER_SCATTER_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// A Scatter, ScatterElements or ScatterND with constant indices becomes Gather and Where. For each place, Gather takes
// the last update that goes there; Where keeps the data if there is none. The original operator makes every element
// look at all updates; the new form takes linear time. If the updates are combined (attribute reduction), the indices
// must be distinct. Scatters with repeated indices and a reduction, or with more than 2^25 places or updates, stay. A
// ScatterElements whose indices are equal along each row becomes a ScatterND.
absl::Status LowerScatters(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_LOWER_SCATTER_H_
