// SPDX-License-Identifier: Apache-2.0
// All passes over the graph, in order. Each pass is a free function in a file of its own name beside this one.
#ifndef HONE_COMPILER_GRAPH_PASSES_PIPELINE_H_
#define HONE_COMPILER_GRAPH_PASSES_PIPELINE_H_

#include <span>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/text.h"
#include "compiler/graph/verify.h"
#include "compiler/pass_runner.h"

namespace hone::graph {

// The whole pipeline, top to bottom; a pass that runs again stands there again.
std::span<const Pass<Graph>> GraphPasses();

// Rewrites the graph into an equal, faster one; afterwards it is tidy (graph_edit.h). At log level debug it says what
// each pass took and left. An error names the pass and is a bug of ours or of the model's nodes.
absl::Status RunPasses(Graph& graph, PassOptions<Graph> options = {});

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_PIPELINE_H_
