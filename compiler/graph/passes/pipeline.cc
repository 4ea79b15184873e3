#include "compiler/graph/passes/pipeline.h"

#include <chrono>
#include <string_view>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/constant_fold.h"
#include "compiler/graph/passes/cse.h"
#include "compiler/graph/passes/fold_scale.h"
#include "compiler/graph/passes/layout.h"
#include "compiler/graph/passes/lower_matmul.h"
#include "compiler/graph/passes/recognize.h"
#include "compiler/graph/passes/shuffle.h"
#include "compiler/graph/passes/simplify.h"
#include "compiler/graph/passes/sink_reshapes.h"
#include "spdlog/spdlog.h"

namespace hone::graph {
namespace {

using Pass = absl::Status (*)(Graph&);

struct NamedPass {
  std::string_view name;
  Pass run;
};

constexpr NamedPass kPasses[] = {
    // Clean up what exporters leave.
    {"fold constants", FoldConstants},
    {"simplify", Simplify},
    {"share common subexpressions", ShareCommonSubexpressions},
    // Name what is spelled out, and put what is per channel into weights.
    {"recognize patterns", RecognizePatterns},
    {"fold scale", FoldScale},
    // Choose the form in which convolutions and matrix products are computed.
    {"name shuffles", NameShuffles},
    {"choose layouts", ChooseLayouts},
    {"spell shuffles", SpellShuffles},
    {"simplify after layouts", Simplify},
    {"lower matrix products", LowerMatMuls},
    {"simplify after lowering", Simplify},
    {"sink reshapes", SinkReshapes},
    // What the steps before made of constants.
    {"fold constants again", FoldConstants},
    {"share common subexpressions again", ShareCommonSubexpressions},
};

}  // namespace

absl::Status RunPasses(Graph& graph) {
  for (const NamedPass& pass : kPasses) {
    const auto start = std::chrono::steady_clock::now();
    HONE_RETURN_IF_ERROR(Annotate(pass.run(graph), pass.name));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    spdlog::debug("graph pass '{}': {} nodes left, {:.1f} ms", pass.name, graph.nodes.size(), took.count());
  }
  return absl::OkStatus();
}

}  // namespace hone::graph
