// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/node_order.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <variant>

#include "fmt/format.h"

namespace hone::graph {

void CollectInputs(const RawNode& node, std::set<std::string>& reads) {
  for (const std::string& input : node.inputs) {
    if (!input.empty()) reads.insert(input);
  }
}

void CollectReads(const RawNode& node, std::set<std::string>& reads) {
  CollectInputs(node, reads);
  for (const auto& [name, attribute] : node.attributes) {
    const auto* graph = std::get_if<std::shared_ptr<const RawGraph>>(&attribute.value);
    if (graph == nullptr || *graph == nullptr) continue;
    std::set<std::string> inner((*graph)->outputs.begin(), (*graph)->outputs.end());
    for (const RawNode& child : (*graph)->nodes) CollectReads(child, inner);
    for (const RawNode& child : (*graph)->nodes) {
      for (const std::string& output : child.outputs) inner.erase(output);
    }
    for (const RawInput& input : (*graph)->inputs) inner.erase(input.name);
    for (const RawInitializer& tensor : (*graph)->initializers) inner.erase(tensor.name);
    reads.insert(inner.begin(), inner.end());
  }
}

namespace {

bool HaveEqualValues(const RawAttribute& a, const RawAttribute& b) {
  const auto *tensor = std::get_if<Constant>(&a.value), *other = std::get_if<Constant>(&b.value);
  if (tensor == nullptr || other == nullptr) return a.reference == b.reference && a.value == b.value;
  const bool same_data = tensor->data == other->data ||
                         (tensor->data != nullptr && other->data != nullptr && *tensor->data == *other->data);
  return a.reference == b.reference && tensor->type == other->type && same_data;
}

// Returns true if both nodes compute the same, output by output.
bool ComputeTheSame(const RawNode& a, const RawNode& b) {
  return a.op == b.op && a.domain == b.domain && a.overload == b.overload && a.inputs == b.inputs &&
         a.outputs == b.outputs && std::ranges::equal(a.attributes, b.attributes, [](const auto& x, const auto& y) {
           return x.first == y.first && HaveEqualValues(x.second, y.second);
         });
}

// The names on which the outputs depend, whatever node defines them.
std::set<std::string> NamesNeeded(const std::vector<RawNode>& nodes, const std::vector<std::string>& outputs) {
  std::multimap<std::string, size_t> makers;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].outputs) makers.emplace(output, i);
  }
  std::set<std::string> needed;
  std::vector<std::string> pending(outputs.begin(), outputs.end());
  while (!pending.empty()) {
    const std::string name = std::move(pending.back());
    pending.pop_back();
    if (name.empty() || !needed.insert(name).second) continue;
    const auto [first, last] = makers.equal_range(name);
    for (auto maker = first; maker != last; ++maker) {
      std::set<std::string> reads;
      CollectReads(nodes[maker->second], reads);
      pending.insert(pending.end(), reads.begin(), reads.end());
    }
  }
  return needed;
}

}  // namespace

absl::StatusOr<std::optional<std::vector<RawNode>>> ResolveDuplicates(const std::vector<RawNode>& nodes,
                                                                      const std::vector<std::string>& outputs,
                                                                      const IsDefined& is_defined_here) {
  std::map<std::string, size_t> first_makers;
  std::vector<std::pair<size_t, size_t>> again;  // node and output whose name an earlier definition has
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (size_t k = 0; k < nodes[i].outputs.size(); ++k) {
      const std::string& output = nodes[i].outputs[k];
      if (output.empty()) continue;
      const bool is_first = !is_defined_here(output) && first_makers.emplace(output, i).second;
      if (!is_first) again.emplace_back(i, k);
    }
  }
  if (again.empty()) return std::nullopt;
  const std::set<std::string> needed = NamesNeeded(nodes, outputs);
  std::vector<RawNode> resolved = nodes;
  for (const auto& [i, k] : again) {
    const std::string& name = nodes[i].outputs[k];
    const auto first = first_makers.find(name);
    const bool equal =
        first != first_makers.end() && first->second != i && ComputeTheSame(nodes[first->second], nodes[i]);
    if (needed.contains(name) && !equal) {
      return absl::InvalidArgumentError(
          fmt::format("{}: value '{}' is defined twice, differently; give each value a name of its own",
                      Describe(nodes[i], i), name));
    }
    resolved[i].outputs[k].clear();
  }
  return resolved;
}

absl::StatusOr<std::vector<size_t>> OrderNodes(const std::vector<RawNode>& nodes, const IsDefined& is_defined,
                                               std::set<std::string>& undefined) {
  std::map<std::string, size_t> makers;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].outputs) {
      if (!output.empty()) makers.emplace(output, i);
    }
  }
  std::vector<std::vector<size_t>> readers(nodes.size());
  std::vector<size_t> waiting(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::set<std::string> reads;
    CollectReads(nodes[i], reads);
    for (const std::string& name : reads) {
      if (auto maker = makers.find(name); maker != makers.end()) {
        readers[maker->second].push_back(i);
        ++waiting[i];
      } else if (!is_defined(name)) {
        undefined.insert(name);
      }
    }
  }
  std::set<size_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (waiting[i] == 0) ready.insert(i);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (size_t reader : readers[next]) {
      if (--waiting[reader] == 0) ready.insert(reader);
    }
  }
  if (order.size() == nodes.size()) return order;
  const size_t stuck = std::find_if(waiting.begin(), waiting.end(), [](size_t n) { return n > 0; }) - waiting.begin();
  return absl::InvalidArgumentError(
      fmt::format("{} depends on itself: the graph has a cycle", Describe(nodes[stuck], stuck)));
}

bool MakesAny(const RawNode& node, const std::set<std::string>& names) {
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](const std::string& output) { return names.contains(output); });
}

std::set<std::string> CollectNeeded(const std::vector<RawNode>& nodes, const std::vector<size_t>& order,
                                    const std::vector<std::string>& outputs,
                                    void (*collect)(const RawNode&, std::set<std::string>&)) {
  std::set<std::string> needed(outputs.begin(), outputs.end());
  needed.erase("");  // the name of an omitted output
  for (auto index = order.rbegin(); index != order.rend(); ++index) {
    if (MakesAny(nodes[*index], needed)) collect(nodes[*index], needed);
  }
  return needed;
}

}  // namespace hone::graph
