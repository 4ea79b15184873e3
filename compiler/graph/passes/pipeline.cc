// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/passes/pipeline.h"

#include "base/status.h"
#include "compiler/graph/control_flow.h"
#include "compiler/graph/passes/passes.h"
#include "spdlog/spdlog.h"

namespace hone::graph {
namespace {

constexpr Pass<Graph> kPasses[] = {
    {"lower_quantized_ops", LowerQuantizedOps},
    // Clean up the exporter's output.
    {"fold_constants", FoldConstants},
    {"simplify", Simplify},
    {"share_subexpressions", ShareCommonSubexpressions},
    // After folding, because it must be known which indices are constant.
    {"lower_scatters", LowerScatters},
    {"lower_selections", LowerSelections},
    {"split_axes", SplitAxes},
    {"split_recurrences", SplitRecurrences},
    // Recognize patterns, and fold per-channel scaling into weights.
    {"recognize_patterns", RecognizePatterns},
    {"fold_scale", FoldScale},
    // Choose the form of convolutions and matrix products.
    {"name_shuffles", NameShuffles},
    {"choose_layouts", ChooseLayouts},
    {"spell_shuffles", SpellShuffles},
    {"simplify", Simplify},
    {"lower_conv_transposes", LowerConvTransposes},
    {"lower_grouped_convs", LowerGroupedConvs},
    {"lower_matmuls", LowerMatMuls},
    {"group_concats", GroupConcats},
    {"flatten_reductions", FlattenReductions},
    {"simplify", Simplify},
    {"sink_reshapes", SinkReshapes},
    // Fold what the passes before have made constant.
    {"fold_constants", FoldConstants},
    {"share_subexpressions", ShareCommonSubexpressions},
};

absl::Status LogPass(const PassRun& run, const Graph& graph) {
  spdlog::debug("graph pass {}: {} nodes left, {:.1f} ms", run.pass, graph.nodes.size(), run.took.count());
  return absl::OkStatus();
}

}  // namespace

std::span<const Pass<Graph>> GraphPasses() { return kPasses; }

absl::Status RunPasses(Graph& graph, PassOptions<Graph> options) {
  HONE_RETURN_IF_ERROR(ChangeBodies(graph, [&](Graph& body) {
    body.target = graph.target;
    return RunPasses(body, options);
  }));
  if (!options.after) options.after = LogPass;
  options.producer = "import";
  return hone::RunPasses<Graph>(kPasses, graph, options);
}

}  // namespace hone::graph
