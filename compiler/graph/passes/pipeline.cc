// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/passes/pipeline.h"

#include "compiler/graph/passes/constant_fold.h"
#include "compiler/graph/passes/cse.h"
#include "compiler/graph/passes/flatten_reductions.h"
#include "compiler/graph/passes/fold_scale.h"
#include "compiler/graph/passes/layout.h"
#include "compiler/graph/passes/lower_conv_transpose.h"
#include "compiler/graph/passes/lower_grouped_conv.h"
#include "compiler/graph/passes/lower_matmul.h"
#include "compiler/graph/passes/lower_scatter.h"
#include "compiler/graph/passes/lower_selection.h"
#include "compiler/graph/passes/recognize.h"
#include "compiler/graph/passes/shuffle.h"
#include "compiler/graph/passes/simplify.h"
#include "compiler/graph/passes/sink_reshapes.h"
#include "compiler/graph/passes/split_axes.h"
#include "compiler/graph/passes/split_recurrences.h"
#include "spdlog/spdlog.h"

namespace hone::graph {
namespace {

constexpr Pass<Graph> kPasses[] = {
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
  if (!options.after) options.after = LogPass;
  options.producer = "import";
  return hone::RunPasses<Graph>(kPasses, graph, options);
}

}  // namespace hone::graph
