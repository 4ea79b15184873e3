// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "compiler/graph/graph_edit.h"
#include "compiler/graph/origins.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/ir/text.h"

namespace hone::graph {
namespace {

bool SameAttribute(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&]<typename T>(const T& value) {
        const T& other = std::get<T>(b);
        if constexpr (std::is_same_v<T, Constant>) {
          return value.type == other.type && *value.data == *other.data;
        } else {
          return value == other;
        }
      },
      a);
}

bool SameNode(const Node& a, const Node& b) {
  if (std::tie(a.op, a.domain, a.opset, a.inputs) != std::tie(b.op, b.domain, b.opset, b.inputs)) return false;
  if (a.outputs.size() != b.outputs.size()) return false;
  return std::equal(
      a.attributes.begin(), a.attributes.end(), b.attributes.begin(), b.attributes.end(),
      [](const auto& x, const auto& y) { return x.first == y.first && SameAttribute(x.second, y.second); });
}

// Replaces equal constants, and equal lists of sizes, by the first of them. Large constants are compared by pointer
// only: a model that repeats weights repeats their name.
std::map<ValueId, ValueId> EqualConstants(const Graph& graph) {
  constexpr size_t kComparedBytesMax = 1 << 14;
  using Key = std::tuple<ir::DType, std::vector<int64_t>, const void*, std::string, std::string>;
  std::map<Key, ValueId> first;
  std::map<ValueId, ValueId> replacements;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
    const Value& value = graph.values[id];
    if (value.data == nullptr && value.elements == nullptr) continue;
    Key key{value.type.dtype, ir::Values(value.type.shape), value.data.get(), "", ""};
    if (value.data == nullptr) {
      for (const ir::Expr& element : *value.elements) std::get<4>(key) += ir::Print(element) + ",";
    } else if (value.data->size() <= kComparedBytesMax) {
      std::get<2>(key) = nullptr;
      std::get<3>(key) = std::string(reinterpret_cast<const char*>(value.data->data()), value.data->size());
    }
    auto [it, added] = first.emplace(std::move(key), id);
    if (!added) replacements[id] = it->second;
  }
  return replacements;
}

}  // namespace

absl::Status ShareCommonSubexpressions(Graph& graph) {
  ReplaceUses(graph, EqualConstants(graph));
  std::map<ValueId, ValueId> replacements;
  auto resolve = [&](ValueId id) {
    auto it = replacements.find(id);
    return it == replacements.end() ? id : it->second;
  };
  std::map<std::pair<std::string, std::vector<ValueId>>, std::vector<size_t>> seen;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    for (ValueId& id : node.inputs) id = resolve(id);
    std::vector<size_t>& candidates = seen[{node.op, node.inputs}];
    auto twin = std::find_if(candidates.begin(), candidates.end(),
                             [&](size_t other) { return SameNode(graph.nodes[other], node); });
    if (twin == candidates.end()) {
      candidates.push_back(i);
      continue;
    }
    std::vector<ValueId>& kept = graph.nodes[*twin].outputs;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k] == kAbsent) continue;
      // Outputs that only the duplicate has become outputs of the first node.
      if (kept[k] == kAbsent) {
        kept[k] = std::exchange(node.outputs[k], kAbsent);
        AddOrigins(graph.nodes[*twin], {node.origins.begin(), node.origins.end()});
      } else {
        replacements[node.outputs[k]] = kept[k];
      }
    }
  }
  ReplaceUses(graph, replacements);
  Tidy(graph);
  return absl::OkStatus();
}

}  // namespace hone::graph
