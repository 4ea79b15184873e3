// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/graph/passes/view.h"
#include "compiler/graph/traits.h"

namespace hone::graph {
namespace {

using ir::Shape;

// The number of trailing dimensions that both shapes have in common.
size_t CommonSuffix(const Shape& a, const Shape& b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[a.size() - 1 - n] == b[b.size() - 1 - n]) ++n;
  return n;
}

// The shape in which an operand of an element-wise node on shape `to` fits the same node on shape `from`; nullopt if
// there is none.
std::optional<Shape> OperandShape(const Shape& operand, const Shape& from, const Shape& to) {
  if (operand == to) return from;
  const size_t kept = CommonSuffix(from, to);
  const size_t ones = operand.size() - std::min(operand.size(), kept);
  // The operand's other dimensions must be 1: it is then broadcast over them.
  const auto split = operand.begin() + static_cast<std::ptrdiff_t>(ones);
  if (std::any_of(operand.begin(), split, [](const ir::Size& extent) { return extent != 1; })) return std::nullopt;
  return Shape(split, operand.end());
}

// Returns true if element-wise nodes on the node's result can become part of its kernel.
absl::StatusOr<bool> CanTakeMore(const Graph& graph, const Node& node) {
  HONE_ASSIGN_OR_RETURN(const NodeTraits traits, FindTraits(graph, node));
  return traits.reduces || traits.elementwise;
}

// Applies `f` to `source` instead of `reshaped`, a reshape of it, with f's other operands reshaped to fit; returns
// kAbsent if that is impossible.
absl::StatusOr<ValueId> Sink(Graph& graph, ValueId source, ValueId reshaped, const Node& f) {
  const Shape from = graph.values[source].type.shape, to = graph.values[reshaped].type.shape;
  if (AxisFormOf(f) != AxisForm::kBroadcast || f.outputs.size() != 1) return kAbsent;
  if (graph.values[f.outputs[0]].type.shape != to) return kAbsent;
  // If two kernels meet, only towards fewer dimensions; otherwise the reshapes would move back and forth forever.
  const bool meets = std::any_of(f.inputs.begin(), f.inputs.end(), [&](ValueId id) {
    return id != kAbsent && id != reshaped && graph.values[id].data == nullptr;
  });
  if (meets && from.size() >= to.size()) return kAbsent;
  std::vector<std::optional<Shape>> shapes;
  for (ValueId id : f.inputs) {
    shapes.push_back(id == kAbsent ? Shape() : OperandShape(graph.values[id].type.shape, from, to));
    if (!shapes.back()) return kAbsent;
  }
  Node sunk = f;
  sunk.outputs = {kNewValue};
  for (size_t i = 0; i < f.inputs.size(); ++i) {
    if (f.inputs[i] == kAbsent) continue;
    if (f.inputs[i] == reshaped) {
      sunk.inputs[i] = source;
    } else {
      HONE_ASSIGN_OR_RETURN(sunk.inputs[i], AddReshape(graph, f.inputs[i], *shapes[i]));
    }
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, AddNode(graph, std::move(sunk)));
  return outputs[0];
}

// Sinks each reshape as far as possible.
absl::StatusOr<bool> SinkOnce(Graph& graph) {
  const UseDefView view(graph);
  const size_t count = graph.nodes.size();
  std::map<ValueId, ValueId> replacements;
  std::set<ValueId> sunk;  // results of the nodes behind which a reshape has sunk
  for (size_t i = 0; i < count; ++i) {
    const Node reshape = graph.nodes[i];
    if (!IsView(reshape) || sunk.contains(reshape.inputs[0])) continue;
    const Node* producer = view.Producer(reshape.inputs[0]);
    if (producer == nullptr || view.OnlyConsumer(reshape.inputs[0]) == nullptr) continue;
    HONE_ASSIGN_OR_RETURN(bool takes_more, CanTakeMore(graph, *producer));
    const Shape to = graph.values[reshape.outputs[0]].type.shape;
    ValueId source = reshape.inputs[0], reshaped = reshape.outputs[0];
    while (takes_more) {
      const Node* consumer = view.OnlyConsumer(reshaped);
      if (consumer == nullptr || sunk.contains(consumer->outputs[0])) break;
      const Node f = *consumer;
      HONE_ASSIGN_OR_RETURN(const ValueId result, Sink(graph, source, reshaped, f));
      if (result == kAbsent) break;
      source = result;
      reshaped = f.outputs[0];
      sunk.insert(reshaped);
      HONE_ASSIGN_OR_RETURN(takes_more, CanTakeMore(graph, graph.nodes.back()));
    }
    if (reshaped == reshape.outputs[0]) continue;
    HONE_ASSIGN_OR_RETURN(replacements[reshaped], AddReshape(graph, source, to));
  }
  ReplaceUses(graph, replacements);
  Tidy(graph);
  return !replacements.empty();
}

}  // namespace

absl::Status SinkReshapes(Graph& graph) {
  bool changed = true;
  while (changed) {
    HONE_ASSIGN_OR_RETURN(changed, SinkOnce(graph));
    if (changed) HONE_RETURN_IF_ERROR(Simplify(graph));
  }
  return absl::OkStatus();
}

}  // namespace hone::graph
