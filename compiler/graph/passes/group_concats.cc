// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/passes.h"

namespace hone::graph {
namespace {

constexpr size_t kPartsMax = 32;  // up to so many parts, one kernel is faster than a second copy
constexpr size_t kGroupParts = 16;

absl::StatusOr<ValueId> GroupConcat(Graph& graph, const Node& node) {
  if (!Is(node, "Concat") || node.inputs.size() <= kPartsMax) return kAbsent;
  const std::map<std::string, Attribute> attributes = {{"axis", IntAttribute(node, "axis", 1)}};
  std::vector<ValueId> parts = node.inputs;
  while (parts.size() > 1) {
    std::vector<ValueId> groups;
    for (auto first = parts.begin(); first != parts.end();) {
      const auto last = first + std::min<std::ptrdiff_t>(kGroupParts, parts.end() - first);
      if (last - first == 1) {
        groups.push_back(*first);
      } else {
        HONE_ASSIGN_OR_RETURN(groups.emplace_back(), AddOp(graph, "Concat", {first, last}, attributes));
      }
      first = last;
    }
    parts = std::move(groups);
  }
  return parts[0];
}

}  // namespace

absl::Status GroupConcats(Graph& graph) { return LowerNodes(graph, GroupConcat); }

}  // namespace hone::graph
