#include "compiler/graph/passes/pipeline.h"

#include <chrono>
#include <string_view>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/constant_fold.h"
#include "spdlog/spdlog.h"

namespace hone::graph {
namespace {

using Pass = absl::Status (*)(Graph&);

struct NamedPass {
  std::string_view name;
  Pass run;
};

// Read from top to bottom.
constexpr NamedPass kPasses[] = {
    {"fold constants", FoldConstants},
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
