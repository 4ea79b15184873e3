#include "compiler/graph/passes/sink_reshapes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/passes/simplify.h"
#include "compiler/graph/passes/view.h"
#include "compiler/graph/traits.h"

namespace hone::graph {
namespace {

using Shape = std::vector<int64_t>;

// How many dimensions at the end both shapes have in common.
size_t CommonSuffix(const Shape& a, const Shape& b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[a.size() - 1 - n] == b[b.size() - 1 - n]) ++n;
  return n;
}

// The shape in which an operand of work on `to` has to be for the same work on `from`; none if there is none.
std::optional<Shape> OperandShape(const Shape& operand, const Shape& from, const Shape& to) {
  if (operand == to) return from;
  const size_t kept = CommonSuffix(from, to);
  const size_t ones = operand.size() - std::min(operand.size(), kept);
  // What is not kept must be ones: then the operand is the same for all of it.
  const auto split = operand.begin() + static_cast<std::ptrdiff_t>(ones);
  if (std::any_of(operand.begin(), split, [](int64_t extent) { return extent != 1; })) return std::nullopt;
  return Shape(split, operand.end());
}

// Whether work on the value can become part of the kernel that makes it.
absl::StatusOr<bool> CanTakeMore(const Graph& graph, const View& view, ValueId id) {
  const Node* producer = view.Producer(id);
  if (producer == nullptr || view.OnlyConsumer(id) == nullptr) return false;
  HONE_ASSIGN_OR_RETURN(const NodeTraits traits, FindTraits(graph, *producer));
  return traits.reduces || traits.elementwise;
}

// The node `f` with its operand `reshape` undone and the others reshaped to fit; kAbsent if that does not work.
absl::StatusOr<ValueId> Sink(Graph& graph, const View& view, const Node& reshape, const Node& f) {
  const ValueId source = reshape.inputs[0];
  const Shape from = graph.values[source].type.shape, to = graph.values[reshape.outputs[0]].type.shape;
  if (AxisFormOf(f) != AxisForm::kBroadcast || f.outputs.size() != 1) return kAbsent;
  if (graph.values[f.outputs[0]].type.shape != to) return kAbsent;
  // Only towards fewer dimensions where two kernels meet: they would otherwise pull their work back and forth for ever.
  const bool meets = std::any_of(f.inputs.begin(), f.inputs.end(), [&](ValueId id) {
    return id != kAbsent && id != reshape.outputs[0] && graph.values[id].data == nullptr;
  });
  if (meets && from.size() >= to.size()) return kAbsent;
  std::vector<std::optional<Shape>> shapes;
  for (ValueId id : f.inputs) {
    shapes.push_back(id == kAbsent ? Shape() : OperandShape(graph.values[id].type.shape, from, to));
    if (!shapes.back()) return kAbsent;
  }
  HONE_ASSIGN_OR_RETURN(const bool fuses, CanTakeMore(graph, view, source));
  if (!fuses) return kAbsent;
  Node sunk = f;
  sunk.outputs = {kNewValue};
  for (size_t i = 0; i < f.inputs.size(); ++i) {
    if (f.inputs[i] == kAbsent) continue;
    if (f.inputs[i] == reshape.outputs[0]) {
      sunk.inputs[i] = source;
    } else {
      HONE_ASSIGN_OR_RETURN(sunk.inputs[i], AddReshape(graph, f.inputs[i], *shapes[i]));
    }
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, AddNode(graph, std::move(sunk)));
  return AddReshape(graph, outputs[0], to);
}

absl::StatusOr<bool> SinkOnce(Graph& graph) {
  const View view(graph);
  const size_t count = graph.nodes.size();
  std::map<ValueId, ValueId> replacements;
  for (size_t i = 0; i < count; ++i) {
    const Node reshape = graph.nodes[i];
    if (!IsView(reshape) || replacements.contains(reshape.inputs[0])) continue;
    const Node* consumer = view.OnlyConsumer(reshape.outputs[0]);
    if (consumer == nullptr || replacements.contains(consumer->outputs[0])) continue;
    const Node f = *consumer;
    HONE_ASSIGN_OR_RETURN(const ValueId sunk, Sink(graph, view, reshape, f));
    if (sunk != kAbsent) replacements[f.outputs[0]] = sunk;
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
