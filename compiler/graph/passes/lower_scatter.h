// SPDX-License-Identifier: Apache-2.0
// Gives scatters a form that searches less, or, where the indices are known, not at all.
#ifndef HONE_COMPILER_GRAPH_PASSES_LOWER_SCATTER_H_
#define HONE_COMPILER_GRAPH_PASSES_LOWER_SCATTER_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// A Scatter, ScatterElements or ScatterND with constant indices becomes a Gather, which takes for each place the last
// update that goes there, and Where, which leaves the data where none does. As an operator every element asks all
// updates; the new form is linear. Where updates are combined (reduction) it needs indices that are all distinct: those
// that are not, and more than 2^25 places or updates, stay as they are. A ScatterElements whose indices are one of each
// row becomes a ScatterND.
absl::Status LowerScatters(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_LOWER_SCATTER_H_
