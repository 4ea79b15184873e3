// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/post_dominator.h"

#include <cstddef>

#include "compiler/graph/graph_edit.h"

namespace hone::graph {

std::vector<int> ImmediatePostDominators(const Graph& graph) {
  const std::vector<std::vector<int>> consumers = Consumers(graph);
  const int count = static_cast<int>(graph.nodes.size());
  const int outside = count;  // a virtual node that follows all graph outputs
  std::vector<int> parent(graph.nodes.size() + 1, outside);
  // A post-dominator has a higher index than its node: raising the lower of two candidates until both are equal finds
  // the common one.
  auto meet = [&](int a, int b) {
    while (a != b) (a < b ? a : b) = parent[a < b ? a : b];
    return a;
  };
  for (int i = count - 1; i >= 0; --i) {
    int common = -1;
    for (ValueId id : graph.nodes[i].outputs) {
      if (id == kAbsent) continue;
      if (IsOutput(graph, id)) common = outside;
      for (int consumer : consumers[id]) common = common < 0 ? consumer : meet(common, consumer);
    }
    parent[i] = common < 0 ? outside : common;
  }
  parent.pop_back();
  for (int& p : parent) p = p == outside ? -1 : p;
  return parent;
}

}  // namespace hone::graph
