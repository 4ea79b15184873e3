#include "compiler/graph/fuse.h"

#include "compiler/graph/graph_edit.h"

namespace hone::graph {

bool IsAlias(const Graph&, const Node& node) {
  return Is(node, "Reshape") || Is(node, "Flatten") || Is(node, "Squeeze") || Is(node, "Unsqueeze") ||
         Is(node, "Identity");
}

absl::StatusOr<std::vector<Group>> Fuse(const Graph& graph) {
  std::vector<Group> groups;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!IsAlias(graph, graph.nodes[i])) groups.push_back({{static_cast<int>(i)}, "elementwise"});
  }
  return groups;
}

}  // namespace hone::graph
