// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/status.h"
#include "compiler/graph/control_flow.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/graph/passes/permute.h"
#include "compiler/graph/passes/view.h"

namespace hone::graph {
namespace {

constexpr ValueId kUnchanged = kAbsent;  // returned by a rule that does not apply

const TensorType& InputType(const Graph& graph, const Node& node, size_t i = 0) {
  return graph.values[node.inputs[i]].type;
}
const TensorType& OutputType(const Graph& graph, const Node& node) { return graph.values[node.outputs[0]].type; }

// Each rule below takes a node and returns the value that replaces its first output, or kUnchanged. Rules may append
// nodes, which invalidates references, so they copy the node first.

// Removes x + 0, x - 0, x * 1, x / 1, x ^ 1, unless the constant's shape widens x. For floats, x + 0 turns -0 into 0;
// only x + -0 has no effect.
ValueId DropNeutral(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 2 || !node.domain.empty()) return kUnchanged;
  const bool commutes = node.op == "Add" || node.op == "Mul";
  const bool adds = node.op == "Add";
  const double neutral = adds || node.op == "Sub" ? 0 : 1;
  if (!commutes && node.op != "Sub" && node.op != "Div" && node.op != "Pow") return kUnchanged;
  for (size_t i = 0; i < (commutes ? 2u : 1u); ++i) {
    const std::optional<double> number = UniformValue(graph.values[node.inputs[1 - i]]);
    if (!number || *number != neutral || InputType(graph, node, i) != OutputType(graph, node)) continue;
    const bool negative = adds && ir::IsFloat(OutputType(graph, node).dtype);
    if (std::signbit(*number) == negative) return node.inputs[i];
  }
  return kUnchanged;
}

// Replaces division by a number whose reciprocal is exact by the faster multiplication with the same result.
absl::StatusOr<ValueId> DivideByMultiplying(Graph& graph, const Node& node) {
  if (!Is(node, "Div") || InputType(graph, node, 1).dtype != ir::DType::kFloat32) return kUnchanged;
  const Value divisor = graph.values[node.inputs[1]];
  const std::optional<double> number = UniformValue(divisor);
  int exponent = 0;
  if (!number || std::fabs(std::frexp(*number, &exponent)) != 0.5 || std::abs(exponent) > 100) return kUnchanged;
  const std::vector<float> values(static_cast<size_t>(divisor.type.elements().value()),
                                  static_cast<float>(1 / *number));
  const ValueId factor = AddConstant<float>(graph, "reciprocal", ir::DType::kFloat32, divisor.type.shape, values);
  return AddOp(graph, "Mul", {node.inputs[0], factor});
}

// Moves the constant operand of sums and products to the second position, so that kernels from different exporters are
// equal.
absl::StatusOr<ValueId> ConstantSecond(Graph& graph, const Node& node) {
  if ((!Is(node, "Add") && !Is(node, "Mul")) || node.inputs.size() != 2) return kUnchanged;
  if (graph.values[node.inputs[0]].data == nullptr || graph.values[node.inputs[1]].data != nullptr) return kUnchanged;
  return AddOp(graph, node.op, {node.inputs[1], node.inputs[0]});
}

// A Transpose moves data only if it reorders axes longer than 1.
bool MovesNothing(const ir::Shape& shape, const Perm& perm) {
  int64_t last = -1;
  for (int64_t axis : perm) {
    if (shape[axis] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

absl::StatusOr<ValueId> SimplifyTranspose(Graph& graph, const UseDefView& view, const Node& node) {
  if (!Is(node, "Transpose")) return kUnchanged;
  const TensorType input = InputType(graph, node);
  const Perm perm = TransposePerm(node, input.shape.size());
  if (MovesNothing(input.shape, perm)) return AddReshape(graph, node.inputs[0], OutputType(graph, node).shape);
  const Node* before = view.Producer(node.inputs[0], "Transpose");
  if (before == nullptr) return kUnchanged;
  const ValueId source = before->inputs[0];
  const Perm combined = PermuteDims(TransposePerm(*before, perm.size()), perm);
  return AddOp(graph, "Transpose", {source}, {{"perm", combined}});
}

// Gives all views the same form (Reshape), and merges chains.
absl::StatusOr<ValueId> SimplifyView(Graph& graph, const UseDefView& view, const Node& node) {
  if (!IsView(node)) return kUnchanged;
  ValueId source = node.inputs[0];
  for (const Node* before = view.Producer(source); before != nullptr && IsView(*before);
       before = view.Producer(source)) {
    source = before->inputs[0];
  }
  const bool canonical = Is(node, "Reshape") && IntAttribute(node, "allowzero", 0) == 1;
  const ir::Shape shape = OutputType(graph, node).shape;
  if (source == node.inputs[0] && canonical && graph.values[source].type.shape != shape) return kUnchanged;
  return AddReshape(graph, source, shape);
}

// The padding of each dimension by a Pad, begins before ends, if it pads with zeros by constant amounts; else empty.
std::optional<std::vector<int64_t>> ZerosAdded(const Graph& graph, const UseDefView& view, const Node& pad) {
  if (StringAttribute(pad, "mode", "constant") != "constant" || FloatAttribute(pad, "value", 0) != 0) return {};
  if ((HasInput(pad, 2) && !view.IsNumber(pad.inputs[2], 0)) || HasInput(pad, 3))
    return {};  // input 3 restricts the axes
  std::vector<int64_t> amounts = IntsAttribute(pad, "pads");
  if (HasInput(pad, 1)) {
    const Value& pads = graph.values[pad.inputs[1]];
    if (pads.data == nullptr || pads.type.dtype != ir::DType::kInt64) return {};
    amounts = ReadConstant<int64_t>(pads);
  }
  if (std::any_of(amounts.begin(), amounts.end(), [](int64_t n) { return n < 0; })) return {};
  return amounts;
}

// Returns true if the node treats the zeros of its own padding like any other element.
bool PadsLikeElements(const Node& node) {
  if (StringAttribute(node, "auto_pad", "NOTSET") != "NOTSET") return false;
  if (Is(node, "Conv")) return true;
  if (!Is(node, "AveragePool") || IntAttribute(node, "ceil_mode", 0) != 0) return false;
  const std::vector<int64_t> pads = IntsAttribute(node, "pads");
  const bool none = std::all_of(pads.begin(), pads.end(), [](int64_t n) { return n == 0; });
  return none || IntAttribute(node, "count_include_pad", 0) != 0;
}

// Moves zeros around the input of a convolution or an average pool into the node's own padding.
absl::StatusOr<ValueId> MergePad(Graph& graph, const UseDefView& view, const Node& node) {
  const Node* pad = PadsLikeElements(node) ? view.Producer(node.inputs[0], "Pad") : nullptr;
  if (pad == nullptr || view.OnlyConsumer(node.inputs[0]) == nullptr) return kUnchanged;
  const std::optional<std::vector<int64_t>> amounts = ZerosAdded(graph, view, *pad);
  const size_t rank = InputType(graph, node).shape.size(), spatial = rank - 2;
  if (!amounts || amounts->size() != 2 * rank) return kUnchanged;
  const bool channels_last = StringAttribute(node, "layout", "NCHW") == "NHWC";
  const size_t channel = channels_last ? rank - 1 : 1, space = channels_last ? 1 : 2;
  if ((*amounts)[0] + (*amounts)[channel] + (*amounts)[rank] + (*amounts)[rank + channel] != 0) return kUnchanged;
  std::vector<int64_t> pads = IntsAttribute(node, "pads", std::vector<int64_t>(2 * spatial, 0));
  for (size_t d = 0; d < spatial; ++d) {
    pads[d] += (*amounts)[space + d];
    pads[spatial + d] += (*amounts)[rank + space + d];
  }
  Node merged = node;
  merged.inputs[0] = pad->inputs[0];
  merged.attributes["pads"] = pads;
  if (Is(node, "AveragePool")) merged.attributes["count_include_pad"] = int64_t{1};
  merged.outputs = {kNewValue};
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, AddNode(graph, std::move(merged)));
  return outputs[0];
}

// Rewrites a reduction that drops several dimensions as one that keeps them with extent 1, and a view. Passes that
// match reductions by shape, and layouts, then know which dimensions were reduced.
absl::StatusOr<ValueId> KeepReduced(Graph& graph, const UseDefView&, const Node& node) {
  if (AxisFormOf(node) != AxisForm::kAxes || IntAttribute(node, "keepdims", 1) != 0) return kUnchanged;
  const ir::Shape shape = OutputType(graph, node).shape;
  if (shape.size() + 2 > InputType(graph, node).shape.size()) return kUnchanged;
  Node keeps = node;
  keeps.attributes["keepdims"] = int64_t{1};
  keeps.outputs = {kNewValue};
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, AddNode(graph, std::move(keeps)));
  return AddReshape(graph, outputs[0], shape);
}

absl::StatusOr<ValueId> ApplyRules(Graph& graph, const UseDefView& view, const Node& node) {
  if (const ValueId replacement = DropNeutral(graph, node); replacement != kUnchanged) return replacement;
  for (const auto rule : {SimplifyTranspose, SimplifyView, MergePad, KeepReduced}) {
    HONE_ASSIGN_OR_RETURN(const ValueId replacement, rule(graph, view, node));
    if (replacement != kUnchanged) return replacement;
  }
  HONE_ASSIGN_OR_RETURN(const ValueId swapped, ConstantSecond(graph, node));
  return swapped != kUnchanged ? swapped : DivideByMultiplying(graph, node);
}

void DropUnusedOutputs(Graph& graph) {
  const std::vector<std::vector<int>> consumers = Consumers(graph);
  for (Node& node : graph.nodes) {
    for (ValueId& id : node.outputs) {
      if (id != kAbsent && consumers[id].empty() && !IsOutput(graph, id)) id = kAbsent;
    }
  }
}

// Replaces an output that the operator returns unchanged from an input (a Cast to the same type, a Concat of one, a
// Slice of everything) by that input.
absl::Status DropCopies(Graph& graph) {
  std::map<ValueId, ValueId> replacements;
  for (const Node& node : graph.nodes) {
    if (IsControlFlow(node)) continue;
    HONE_ASSIGN_OR_RETURN(const EmittedNode emitted, EmitNode(graph, node));
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const auto input = std::find(emitted.inputs.begin(), emitted.inputs.end(), emitted.outputs[k]);
      if (node.outputs[k] == kAbsent || input == emitted.inputs.end()) continue;
      replacements[node.outputs[k]] = node.inputs[static_cast<size_t>(input - emitted.inputs.begin())];
    }
  }
  ReplaceUses(graph, replacements);
  Tidy(graph);
  return absl::OkStatus();
}

// Applies the rules once to all nodes. The next round visits the values that this round makes.
absl::StatusOr<bool> SimplifyOnce(Graph& graph) {
  DropUnusedOutputs(graph);
  std::map<ValueId, ValueId> replacements;
  {
    const UseDefView view(graph);
    const size_t count = graph.nodes.size();
    for (size_t i = 0; i < count; ++i) {
      const Node node = graph.nodes[i];
      if (node.inputs.empty() || node.inputs[0] == kAbsent || node.outputs[0] == kAbsent) continue;
      HONE_ASSIGN_OR_RETURN(const ValueId replacement, ApplyRules(graph, view, node));
      if (replacement != kUnchanged) replacements[node.outputs[0]] = replacement;
    }
  }
  if (replacements.empty()) return false;
  ReplaceUses(graph, replacements);
  Tidy(graph);
  return true;
}

}  // namespace

absl::Status Simplify(Graph& graph) {
  HONE_RETURN_IF_ERROR(DropCopies(graph));
  constexpr int kRoundsMax = 100;  // each round removes or merges a node per chain, so this limits the length of chains
  for (int round = 0; round < kRoundsMax; ++round) {
    HONE_ASSIGN_OR_RETURN(const bool changed, SimplifyOnce(graph));
    if (!changed) break;
  }
  return absl::OkStatus();
}

}  // namespace hone::graph
