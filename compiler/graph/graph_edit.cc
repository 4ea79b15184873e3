// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/graph_edit.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/status.h"
#include "compiler/graph/control_flow.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/ops/vocabulary.h"
#include "compiler/graph/origins.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

template <typename T>
T AttributeOr(const Node& node, const std::string& name, T fallback) {
  auto it = node.attributes.find(name);
  if (it == node.attributes.end()) return fallback;
  const T* value = std::get_if<T>(&it->second);
  return value != nullptr ? *value : fallback;
}

// The values that a node or the graph reads when it reads these: the values themselves, and for each open size in their
// elements the output of the node that makes the size.
class Reads {
 public:
  explicit Reads(const Graph& graph) : graph_(graph), makers_(SizeMakers(graph)) {}

  std::vector<ValueId> Of(std::vector<ValueId> values) const {
    if (makers_.empty()) return values;
    const std::vector<ValueId> given = values;
    for (const ValueId id : given) {
      if (id == kAbsent) continue;
      for (const ValueId maker : MakersOf(graph_.values[id], makers_)) values.push_back(maker);
    }
    return values;
  }

 private:
  const Graph& graph_;
  const std::map<std::string, ValueId, std::less<>> makers_;
};

// Moves the producers of the new values to the positions of the replaced values' producers, and the producers of their
// inputs before them.
void TakePlaces(Graph& graph, const std::map<ValueId, ValueId>& replacements) {
  const std::vector<int> producers = Producers(graph);
  const Reads reads(graph);
  std::vector<int> places(graph.nodes.size());
  std::iota(places.begin(), places.end(), 0);
  const auto move_up = [&](ValueId made, int place) {
    const int maker = made == kAbsent ? -1 : producers[made];
    if (maker >= 0) places[maker] = std::min(places[maker], place);
  };
  for (const auto& [from, to] : replacements) {
    if (producers[from] >= 0) move_up(to, producers[from]);
  }
  // Appended nodes come after their inputs, so walking backwards visits a node before its inputs' producers.
  for (size_t i = places.size(); i-- > 0;) {
    for (ValueId id : reads.Of(graph.nodes[i].inputs)) move_up(id, places[i]);
  }
  if (std::is_sorted(places.begin(), places.end())) return;
  std::vector<size_t> order(places.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return places[a] < places[b]; });
  std::vector<Node> nodes;
  for (size_t i : order) nodes.push_back(std::move(graph.nodes[i]));
  graph.nodes = std::move(nodes);
}

// Elements stay: they are few.
void DropUnreadData(Graph& graph) {
  std::vector<bool> read(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    for (ValueId id : node.inputs) {
      if (id != kAbsent) read[id] = true;
    }
  }
  for (ValueId id : graph.outputs) read[id] = true;
  for (size_t id = 0; id < read.size(); ++id) {
    if (!read[id]) graph.values[id].data = nullptr;
  }
}

}  // namespace

ValueId AddValue(Graph& graph, std::string_view name_hint, TensorType type, TensorData data) {
  const ValueId id = static_cast<ValueId>(graph.values.size());
  graph.values.push_back({fmt::format("{}.{}", name_hint, id), std::move(type), std::move(data), nullptr});
  return id;
}

void DeclareSize(Graph& graph, const ir::OpenSize& size) {
  if (std::ranges::find(graph.sizes, size.name, &ir::OpenSize::name) == graph.sizes.end()) graph.sizes.push_back(size);
}

void DeclareSizes(Graph& graph, const ir::Shape& shape) {
  for (const ir::Size& size : shape) {
    size.ForEachSymbol([&](const ir::OpenSize& symbol) { DeclareSize(graph, symbol); });
  }
}

ValueId AddInts(Graph& graph, std::string_view name_hint, const std::vector<int64_t>& values) {
  return AddConstant<int64_t>(graph, name_hint, ir::DType::kInt64, {static_cast<int64_t>(values.size())}, values);
}

ValueId AddSizes(Graph& graph, std::string_view name_hint, const ir::Shape& sizes) {
  if (ir::IsFixed(sizes)) return AddInts(graph, name_hint, ir::Values(sizes));
  DeclareSizes(graph, sizes);
  // Before AddValue, because `sizes` may be the shape of a value of the graph.
  auto elements = std::make_shared<const std::vector<ir::Expr>>(sizes.begin(), sizes.end());
  const ValueId id = AddValue(graph, name_hint, {ir::DType::kInt64, {sizes.size()}});
  graph.values[id].elements = std::move(elements);
  return id;
}

absl::StatusOr<std::vector<ValueId>> AddNode(Graph& graph, Node node, const std::vector<std::string>& names) {
  if (node.name.empty()) node.name = fmt::format("{}_{}", node.op, graph.nodes.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kAbsent) continue;
    node.outputs[i] = AddValue(graph, node.name, {});
    if (i < names.size()) graph.values[node.outputs[i]].name = names[i];
  }
  HONE_ASSIGN_OR_RETURN(std::vector<TensorType> types, InferTypes(graph, node));
  for (size_t i = 0; i < types.size(); ++i) {
    if (node.outputs[i] != kAbsent) graph.values[node.outputs[i]].type = std::move(types[i]);
  }
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().outputs;
}

absl::StatusOr<ValueId> AddOp(Graph& graph, std::string_view op, std::vector<ValueId> inputs,
                              std::map<std::string, Attribute> attributes, std::string_view domain) {
  Node node{.name = {},
            .op = std::string(op),
            .domain = std::string(domain),
            .opset = kOwnOpset,
            .inputs = std::move(inputs),
            .outputs = {kNewValue},
            .attributes = std::move(attributes)};
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, AddNode(graph, std::move(node)));
  return outputs[0];
}

absl::StatusOr<ValueId> AddCast(Graph& graph, ValueId value, ir::DType to) {
  if (graph.values[value].type.dtype == to) return value;
  return AddOp(graph, "Cast", {value}, {{"to", ToOnnxType(to)}});
}

absl::StatusOr<ValueId> AddReshape(Graph& graph, ValueId value, const ir::Shape& shape) {
  if (graph.values[value].type.shape == shape) return value;
  if (graph.values[value].data != nullptr && ir::IsFixed(shape)) {
    const Value constant = graph.values[value];
    return AddValue(graph, constant.name, {constant.type.dtype, shape}, constant.data);
  }
  return AddOp(graph, "Reshape", {value, AddSizes(graph, "shape", shape)}, {{"allowzero", int64_t{1}}});
}

absl::StatusOr<ValueId> AddSlice(Graph& graph, ValueId value, int64_t axis, int64_t begin, int64_t end) {
  const ValueId starts = AddInts(graph, "starts", {begin}), ends = AddInts(graph, "ends", {end});
  return AddOp(graph, "Slice", {value, starts, ends, AddInts(graph, "axes", {axis})});
}

std::vector<std::vector<int>> Consumers(const Graph& graph) {
  std::vector<std::vector<int>> consumers(graph.values.size());
  const Reads reads(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (ValueId id : reads.Of(graph.nodes[i].inputs)) {
      if (id == kAbsent) continue;
      if (consumers[id].empty() || consumers[id].back() != static_cast<int>(i)) consumers[id].push_back(i);
    }
  }
  return consumers;
}

std::vector<int> Producers(const Graph& graph) {
  std::vector<int> producers(graph.values.size(), -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (ValueId id : graph.nodes[i].outputs) {
      if (id != kAbsent) producers[id] = static_cast<int>(i);
    }
  }
  return producers;
}

std::vector<bool> LiveNodes(const Graph& graph) {
  const std::vector<int> producers = Producers(graph);
  const Reads reads(graph);
  std::vector<bool> live(graph.nodes.size(), false);
  std::vector<ValueId> pending = reads.Of(graph.outputs);
  while (!pending.empty()) {
    const ValueId value = pending.back();
    pending.pop_back();
    if (value == kAbsent || producers[value] < 0 || live[producers[value]]) continue;
    live[producers[value]] = true;
    const std::vector<ValueId> read = reads.Of(graph.nodes[producers[value]].inputs);
    pending.insert(pending.end(), read.begin(), read.end());
  }
  return live;
}

bool IsOutput(const Graph& graph, ValueId value) {
  return std::find(graph.outputs.begin(), graph.outputs.end(), value) != graph.outputs.end();
}

bool HasInput(const Node& node, size_t input) { return input < node.inputs.size() && node.inputs[input] != kAbsent; }

void ReplaceUses(Graph& graph, ValueId from, ValueId to) { ReplaceUses(graph, {{from, to}}); }

void ReplaceUses(Graph& graph, std::map<ValueId, ValueId> replacements) {
  auto resolve = [&](ValueId id) {
    for (auto it = replacements.find(id); it != replacements.end(); it = replacements.find(id)) id = it->second;
    return id;
  };
  for (auto& [from, to] : replacements) to = resolve(to);
  const OriginHeirs heirs(graph, replacements);
  for (Node& node : graph.nodes) {
    for (ValueId& id : node.inputs) id = resolve(id);
  }
  for (ValueId& id : graph.outputs) id = resolve(id);
  heirs.Inherit(graph);
  TakePlaces(graph, replacements);
}

void Tidy(Graph& graph) {
  const std::vector<bool> live = LiveNodes(graph);
  const std::vector<std::vector<int>> consumers = Consumers(graph);
  const std::vector<int> producers = Producers(graph);
  const Reads reads(graph);
  std::vector<int> waiting(graph.nodes.size(), 0);  // per node: inputs not yet produced, counted with repetition
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    std::vector<ValueId> inputs = reads.Of(graph.nodes[i].inputs);
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (ValueId id : inputs) waiting[i] += id != kAbsent && producers[id] >= 0;
  }
  std::vector<int> ready;  // a heap: the lowest index first keeps the model's order where possible
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (waiting[i] == 0) ready.push_back(static_cast<int>(i));
  }
  std::make_heap(ready.begin(), ready.end(), std::greater<>());
  std::vector<Node> sorted;
  size_t visited = 0;
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), std::greater<>());
    const int index = ready.back();
    ready.pop_back();
    ++visited;
    for (ValueId id : graph.nodes[index].outputs) {
      if (id == kAbsent) continue;
      for (int consumer : consumers[id]) {
        if (--waiting[consumer] > 0) continue;
        ready.push_back(consumer);
        std::push_heap(ready.begin(), ready.end(), std::greater<>());
      }
    }
    if (live[index]) sorted.push_back(std::move(graph.nodes[index]));
  }
  HONE_CHECK(visited == graph.nodes.size());
  graph.nodes = std::move(sorted);
  FillOrigins(graph);
  DropUnreadData(graph);
}

Readers::Readers(const Graph& graph) {
  CountNew(graph);
  for (ValueId id : graph.outputs) ++reads_[id];
}

void Readers::CountNew(const Graph& graph) {
  reads_.resize(graph.values.size(), 0);
  for (; counted_ < graph.nodes.size(); ++counted_) {
    for (ValueId id : graph.nodes[counted_].inputs) {
      if (id != kAbsent) ++reads_[id];
    }
  }
}

void Readers::Redirect(const Graph& graph, ValueId from, ValueId to) {
  CountNew(graph);
  reads_[to] += reads_[from];
}

void Readers::Drop(Graph& graph, const Node& node) {
  for (ValueId id : node.inputs) {
    if (id != kAbsent && --reads_[id] == 0) graph.values[id].data = nullptr;
  }
}

absl::Status ReplaceNodes(Graph& graph, const Lowering& lower) {
  const size_t count = graph.nodes.size();
  std::map<ValueId, ValueId> replacements;
  Readers readers(graph);
  for (size_t i = 0; i < count; ++i) {
    const Node node = graph.nodes[i];  // a copy: adding nodes moves the vector's elements
    HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> lowered, lower(graph, node));
    const auto left = node.outputs.begin() + static_cast<std::ptrdiff_t>(std::min(lowered.size(), node.outputs.size()));
    for (auto output = node.outputs.begin(); output != left; ++output) {
      if (*output == kAbsent) continue;
      const ValueId made = lowered[static_cast<size_t>(output - node.outputs.begin())];
      replacements[*output] = made;
      readers.Redirect(graph, *output, made);
    }
    if (std::all_of(left, node.outputs.end(), [](ValueId id) { return id == kAbsent; })) readers.Drop(graph, node);
  }
  ReplaceUses(graph, replacements);
  Tidy(graph);
  return absl::OkStatus();
}

absl::Status LowerNodes(Graph& graph, const std::function<absl::StatusOr<ValueId>(Graph&, const Node&)>& lower) {
  return ReplaceNodes(graph, [&lower](Graph& g, const Node& node) -> absl::StatusOr<std::vector<ValueId>> {
    HONE_ASSIGN_OR_RETURN(const ValueId lowered, lower(g, node));
    return lowered == kAbsent ? std::vector<ValueId>{} : std::vector<ValueId>{lowered};
  });
}

int64_t IntAttribute(const Node& node, const std::string& name, int64_t fallback) {
  return AttributeOr<int64_t>(node, name, fallback);
}

double FloatAttribute(const Node& node, const std::string& name, double fallback) {
  return static_cast<float>(AttributeOr<double>(node, name, fallback));
}

std::vector<int64_t> IntsAttribute(const Node& node, const std::string& name, std::vector<int64_t> fallback) {
  return AttributeOr<std::vector<int64_t>>(node, name, std::move(fallback));
}

std::string StringAttribute(const Node& node, const std::string& name, std::string_view fallback) {
  return AttributeOr<std::string>(node, name, std::string(fallback));
}

}  // namespace hone::graph
