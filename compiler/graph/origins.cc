// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/origins.h"

#include <algorithm>

#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/passes/permute.h"

namespace hone::graph {
namespace {

std::set<int> OriginsOf(const Node& node) { return {node.origins.begin(), node.origins.end()}; }

bool HaveCommon(const std::vector<int>& a, const std::set<int>& b) {
  return std::ranges::any_of(a, [&](int origin) { return b.contains(origin); });
}

// The order of the dimensions of the file's value in what holds it.
ir::Shape StoredShape(const FileValue& value) {
  ir::Shape stored = value.shape;
  for (size_t i = 0; i < value.axes.size(); ++i) stored[static_cast<size_t>(value.axes[i])] = value.shape[i];
  return stored;
}

// What the node's input holds if its output, of this shape, holds these values; none unless the node is a Transpose.
std::vector<FileValue> ThroughTransposition(const Node& node, const ir::Shape& shape,
                                            const std::vector<FileValue>& held) {
  std::vector<FileValue> result;
  if (!Is(node, "Transpose")) return result;
  const std::vector<int64_t> perm = TransposePerm(node, shape.size());
  for (FileValue value : held) {
    if (StoredShape(value) != shape) continue;  // a view is between the two
    if (value.axes.empty()) {
      value.axes = perm;
    } else {
      for (int64_t& axis : value.axes) axis = perm[static_cast<size_t>(axis)];
    }
    if (std::ranges::is_sorted(value.axes)) value.axes.clear();
    result.push_back(std::move(value));
  }
  return result;
}

}  // namespace

void AddOrigins(Node& node, const std::set<int>& origins) {
  std::set<int> all = OriginsOf(node);
  all.insert(origins.begin(), origins.end());
  node.origins.assign(all.begin(), all.end());
}

OriginHeirs::OriginHeirs(const Graph& graph, const std::map<ValueId, ValueId>& replacements)
    : replacements_(replacements) {
  if (graph.origins.empty()) return;
  producers_ = Producers(graph);
  for (const auto& [from, to] : replacements) {
    any_ = any_ || producers_[from] >= 0;
    made_.insert(to);
  }
  if (!any_) return;
  consumers_ = Consumers(graph);
  live_ = LiveNodes(graph);
}

void OriginHeirs::Inherit(Graph& graph) const {
  if (!any_) return;
  std::vector<Replaced> all;
  for (const auto& [from, to] : replacements_) {
    all.push_back({.from = from, .to = to, .origins = {}});
    if (producers_[from] >= 0) all.back().origins = OriginsOf(graph.nodes[producers_[from]]);
  }
  Collect(graph, all);
  std::map<int, std::set<int>> inherited;  // by node
  for (const Replaced& replaced : all) {
    for (const int node : NodesFor(graph, replaced)) {
      inherited[node].insert(replaced.origins.begin(), replaced.origins.end());
    }
  }
  for (const auto& [node, origins] : inherited) AddOrigins(graph.nodes[node], origins);
  for (const auto& [from, to] : replacements_) Hold(graph, from, to);
}

void OriginHeirs::Hold(Graph& graph, ValueId from, ValueId to) const {
  if (graph.values[from].type != graph.values[to].type) return;
  std::vector<FileValue> held = graph.values[from].held;
  for (ValueId at = to; !held.empty();) {
    for (const FileValue& value : held) {
      std::vector<FileValue>& known = graph.values[at].held;
      if (std::ranges::find(known, value.name, &FileValue::name) == known.end()) known.push_back(value);
    }
    const int maker = producers_[at];
    if (maker < 0 || live_[maker]) return;
    const Node& node = graph.nodes[maker];
    if (!IsView(node)) held = ThroughTransposition(node, graph.values[at].type.shape, held);
    at = node.inputs.empty() ? kAbsent : node.inputs[0];
  }
}

void OriginHeirs::Collect(const Graph& graph, std::vector<Replaced>& replaced) const {
  const std::vector<bool> live = LiveNodes(graph);
  std::map<ValueId, size_t> numbers;
  for (size_t i = 0; i < replaced.size(); ++i) numbers[replaced[i].from] = i;
  std::vector<std::set<size_t>> reasons(graph.nodes.size());  // per useless node: the replacements
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (!live_[i] || live[i]) continue;
    const Node& node = graph.nodes[i];
    for (const ValueId id : node.outputs) {
      if (const auto number = numbers.find(id); number != numbers.end()) reasons[i].insert(number->second);
    }
    if (reasons[i].empty()) {
      for (const ValueId id : node.outputs) {
        if (id == kAbsent) continue;
        for (const int reader : consumers_[id]) reasons[i].insert(reasons[reader].begin(), reasons[reader].end());
      }
    }
    for (const size_t number : reasons[i]) replaced[number].origins.insert(node.origins.begin(), node.origins.end());
  }
}

bool OriginHeirs::DependsOn(const Graph& graph, int node, int operand) const {
  std::vector<int> pending = {node};
  std::set<int> seen;
  while (!pending.empty()) {
    const int at = pending.back();
    pending.pop_back();
    if (at == operand) return true;
    if (at < operand || !seen.insert(at).second) continue;  // nodes that were in the graph before are in order
    for (const ValueId id : graph.nodes[at].inputs) {
      if (id != kAbsent && producers_[id] >= 0) pending.push_back(producers_[id]);
    }
  }
  return false;
}

std::vector<int> OriginHeirs::NodesFor(const Graph& graph, const Replaced& replaced) const {
  const int first = producers_[replaced.to], old = producers_[replaced.from];
  if (first < 0) return {};
  if (live_[first]) return old < 0 || DependsOn(graph, old, first) ? std::vector<int>() : std::vector<int>{first};
  std::vector<int> pending = {first};
  std::set<int> found;
  while (!pending.empty()) {
    const int at = pending.back();
    pending.pop_back();
    if (!found.insert(at).second) continue;
    for (const ValueId id : graph.nodes[at].inputs) {
      const int maker = id == kAbsent ? -1 : producers_[id];
      if (maker < 0 || live_[maker] || made_.contains(id)) continue;
      // A pass may copy nodes with their origins. Such a node belongs to the replacement of another value.
      const std::vector<int>& own = graph.nodes[maker].origins;
      if (own.empty() || HaveCommon(own, replaced.origins)) pending.push_back(maker);
    }
  }
  return {found.begin(), found.end()};
}

void FillOrigins(Graph& graph) {
  const auto lacks = [](const Node& node) { return node.origins.empty(); };
  if (graph.origins.empty() || std::ranges::none_of(graph.nodes, lacks)) return;
  const std::vector<std::vector<int>> consumers = Consumers(graph);
  const std::vector<int> producers = Producers(graph);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    Node& node = graph.nodes[i];
    if (!lacks(node)) continue;
    std::set<int> origins;
    for (const ValueId id : node.outputs) {
      if (id == kAbsent) continue;
      for (const int reader : consumers[id]) origins.merge(OriginsOf(graph.nodes[reader]));
    }
    AddOrigins(node, origins);
  }
  for (Node& node : graph.nodes) {
    if (!lacks(node)) continue;
    std::set<int> origins;
    for (const ValueId id : node.inputs) {
      if (id != kAbsent && producers[id] >= 0) origins.merge(OriginsOf(graph.nodes[producers[id]]));
    }
    AddOrigins(node, origins);
  }
}

}  // namespace hone::graph
