// SPDX-License-Identifier: Apache-2.0
// The graph pass pipeline. Each pass is a free function in a file of its own beside this one.
#ifndef HONE_COMPILER_GRAPH_PASSES_PIPELINE_H_
#define HONE_COMPILER_GRAPH_PASSES_PIPELINE_H_

#include <span>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/text.h"
#include "compiler/graph/verify.h"
#include "compiler/pass_runner.h"

namespace hone::graph {

// Returns the passes in the order in which they run. A pass that runs several times is listed several times.
std::span<const Pass<Graph>> GraphPasses();

// Runs the pipeline: rewrites the graph into an equivalent, faster one, which is tidy (graph_edit.h). At log level
// debug, each pass logs its time and the resulting graph size, unless options.after is set. An error names the pass; it
// is a bug in Hone or in the model's nodes.
absl::Status RunPasses(Graph& graph, PassOptions<Graph> options = {});

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_PIPELINE_H_
