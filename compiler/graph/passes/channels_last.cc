// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/passes/channels_last.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op_facts.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

// The rank of the first present output; 0 if none is present.
size_t RankOf(const Graph& graph, const Node& node) {
  const auto id = std::find_if(node.outputs.begin(), node.outputs.end(), [](ValueId v) { return v != kAbsent; });
  return id == node.outputs.end() ? 0 : graph.values[*id].type.shape.size();
}

bool Present(const Node& node, size_t i) { return i < node.inputs.size() && node.inputs[i] != kAbsent; }

// Returns false if a list is given both as an attribute and as an input. Where newer opsets moved it to an input, the
// attribute has precedence here.
bool IsGivenOnce(const Node& node, size_t input, const std::string& attribute) {
  return !Present(node, input) || !node.attributes.contains(attribute);
}

// Returns true if the inputs from `first` on are absent or constants of int64 (or of float32, for scales).
bool RestConstant(const Graph& graph, const Node& node, size_t first) {
  for (size_t i = first; i < node.inputs.size(); ++i) {
    if (!Present(node, i)) continue;
    const Value& value = graph.values[node.inputs[i]];
    if (value.data == nullptr) return false;
    if (value.type.dtype != ir::DType::kInt64 && value.type.dtype != ir::DType::kFloat32) return false;
  }
  return true;
}

// Returns true for a value that is permuted together with a node of this rank.
bool HasLayout(const Graph& graph, ValueId id, size_t rank) {
  return HasLayout(graph, id) && graph.values[id].type.shape.size() == rank;
}

bool OperandsFit(const Graph& graph, const Node& node, size_t rank) {
  bool any = false;
  for (ValueId id : node.inputs) {
    if (id == kAbsent) continue;
    const Value& value = graph.values[id];
    const bool moves = HasLayout(graph, id, rank);
    if (!moves && (value.data == nullptr ? value.type.elements() != 1 : value.type.shape.size() > rank)) return false;
    any = any || moves;
  }
  return any;
}

// All operands of a Concat are permuted. The sizes of a Split and the indices of a Gather are lists and stay.
bool PartsFit(const Graph& graph, const Node& node, size_t rank) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    if (id == kAbsent || HasLayout(graph, id, rank)) return true;
    return graph.values[id].data != nullptr && graph.values[id].type.shape.size() < 2;
  });
}

bool WindowFits(const Graph& graph, const Node& node) {
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (Present(node, i) && graph.values[node.inputs[i]].data == nullptr) return false;
  }
  // The indices that a MaxPool returns count elements in NCHW order, so they must be unused.
  return node.outputs.size() == 1 || node.outputs[1] == kAbsent;
}

// Converts an axis, counted from the front, to its position with channels last.
int64_t MovedAxis(int64_t axis, size_t rank) { return ToChannelsFirst(rank)[AxisFromFront(axis, rank)]; }

template <typename T>
std::vector<T> PermuteList(const std::vector<T>& list, size_t rank) {
  std::vector<T> permuted;
  for (size_t start = 0; start < list.size(); start += rank) {
    for (int64_t axis : ToChannelsLast(rank)) permuted.push_back(list[start + static_cast<size_t>(axis)]);
  }
  return permuted;
}

// Returns a constant operand, reshaped so that it broadcasts in the new order as it did in the old one.
ValueId PermuteOperand(Graph& graph, ValueId id, size_t rank) {
  Value value = graph.values[id];
  if (value.type.elements() == 1) return id;
  ir::Shape& shape = value.type.shape;
  shape.insert(shape.begin(), rank - shape.size(), 1);
  const TensorData data = Permute(value, ToChannelsLast(rank));
  shape = PermuteDims(shape, ToChannelsLast(rank));
  while (shape.size() > 1 && shape[0] == 1) shape.erase(shape.begin());
  return AddValue(graph, value.name, value.type, data);
}

void MoveAxes(Graph& graph, Node& node, size_t rank) {
  std::vector<int64_t> axes = IntsAttribute(node, "axes");
  if (Present(node, 1)) axes = ReadConstant<int64_t>(graph.values[node.inputs[1]]);
  for (int64_t& axis : axes) axis = MovedAxis(axis, rank);
  std::sort(axes.begin(), axes.end());
  if (Present(node, 1)) {
    node.inputs[1] = AddInts(graph, "axes", axes);
  } else if (!axes.empty()) {
    node.attributes["axes"] = axes;
  }
}

void MoveSlice(Graph& graph, Node& node, size_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(graph.values[node.inputs[1]].type.elements().value()));  // constant
  std::iota(axes.begin(), axes.end(), int64_t{0});
  if (Present(node, 3)) axes = ReadConstant<int64_t>(graph.values[node.inputs[3]]);
  for (int64_t& axis : axes) axis = MovedAxis(axis, rank);
  node.inputs.resize(std::max<size_t>(node.inputs.size(), 4), kAbsent);
  node.inputs[3] = AddInts(graph, "axes", axes);
}

void MovePads(Graph& graph, Node& node, size_t rank) {
  if (Present(node, 1)) {
    node.inputs[1] = AddInts(graph, "axes", PermuteList(ReadConstant<int64_t>(graph.values[node.inputs[1]]), rank));
  } else {
    node.attributes["pads"] = PermuteList(IntsAttribute(node, "pads"), rank);
  }
}

void MovePerDimension(Graph& graph, Node& node, size_t rank) {
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (!Present(node, i)) continue;
    const Value value = graph.values[node.inputs[i]];
    if (value.type.dtype == ir::DType::kInt64) {
      node.inputs[i] = AddInts(graph, "axes", PermuteList(ReadConstant<int64_t>(value), rank));
    } else {
      node.inputs[i] = AddConstant<float>(graph, value.name, value.type.dtype, value.type.shape,
                                          PermuteList(ReadConstant<float>(value), rank));
    }
  }
}

// Pad and Resize: permutes every constant input, which has one number per dimension or a multiple of that.
bool ListsFit(const Graph& graph, const Node& node, size_t last, size_t rank) {
  for (size_t i = 1; i <= last; ++i) {
    if (Present(node, i) && !Divides(static_cast<int64_t>(rank), graph.values[node.inputs[i]].type.elements()))
      return false;
  }
  return true;
}

}  // namespace

Perm ToChannelsLast(size_t rank) {
  Perm perm(rank);
  std::iota(perm.begin(), perm.end(), int64_t{0});
  std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  return perm;
}

Perm ToChannelsFirst(size_t rank) { return Inverse(ToChannelsLast(rank)); }

bool HasLayout(const Graph& graph, ValueId id) {
  if (id == kAbsent || graph.values[id].data != nullptr) return false;
  const size_t rank = graph.values[id].type.shape.size();
  return rank >= 3 && rank <= 5;
}

bool HasChannelsLastForm(const Graph& graph, const Node& node) {
  const AxisForm form = AxisFormOf(node);
  if (form == AxisForm::kOwn || node.inputs.empty()) return false;
  const size_t rank = RankOf(graph, node);
  for (ValueId id : node.outputs) {
    if (id != kAbsent && !HasLayout(graph, id, rank)) return false;
  }
  if (form == AxisForm::kBroadcast) return OperandsFit(graph, node, rank);
  if (!HasLayout(graph, node.inputs[0], rank)) return false;
  switch (form) {
    case AxisForm::kLayout:
      return WindowFits(graph, node);
    case AxisForm::kAxis: {
      // An axis attribute that the operator does not use may have any value.
      const int64_t axis = IntAttribute(node, "axis", FactsOf(node).axes.axis), dims = static_cast<int64_t>(rank);
      return axis >= -dims && axis < dims && PartsFit(graph, node, rank);
    }
    case AxisForm::kAxes:
      return RestConstant(graph, node, 1) && IsGivenOnce(node, 1, "axes") && IntAttribute(node, "keepdims", 1) == 1;
    case AxisForm::kSlice:
      return RestConstant(graph, node, 1) && Present(node, 1) && IsGivenOnce(node, 1, "starts") &&
             !node.attributes.contains("axes");
    case AxisForm::kPads:
      return RestConstant(graph, node, 1) && ListsFit(graph, node, 1, rank) && IsGivenOnce(node, 1, "pads") &&
             !Present(node, 3) && !node.attributes.contains("paddings");
    case AxisForm::kPerDimension:
      return RestConstant(graph, node, 1) && ListsFit(graph, node, 3, rank) && !node.attributes.contains("axes");
    default:
      return false;
  }
}

bool ReadsChannelsLast(const Graph& graph, const Node& node, ValueId id) {
  return HasLayout(graph, id, RankOf(graph, node));
}

absl::StatusOr<std::vector<ValueId>> AddChannelsLast(Graph& graph, const Node& node,
                                                     const std::function<absl::StatusOr<ValueId>(ValueId)>& converted) {
  Node moved = node;
  const AxisForm form = AxisFormOf(node);
  const size_t rank = RankOf(graph, node);
  for (ValueId& id : moved.inputs) {
    if (HasLayout(graph, id, rank)) {
      HONE_ASSIGN_OR_RETURN(id, converted(id));
    } else if (id != kAbsent && form == AxisForm::kBroadcast && graph.values[id].data != nullptr) {
      id = PermuteOperand(graph, id, rank);
    }
  }
  switch (form) {
    case AxisForm::kLayout:
      moved.attributes["layout"] = std::string("NHWC");
      break;
    case AxisForm::kAxis:
      moved.attributes["axis"] = MovedAxis(IntAttribute(node, "axis", FactsOf(node).axes.axis), rank);
      break;
    case AxisForm::kAxes:
      MoveAxes(graph, moved, rank);
      break;
    case AxisForm::kSlice:
      MoveSlice(graph, moved, rank);
      break;
    case AxisForm::kPads:
      MovePads(graph, moved, rank);
      break;
    case AxisForm::kPerDimension:
      MovePerDimension(graph, moved, rank);
      break;
    default:
      break;
  }
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, AddNode(graph, std::move(moved)));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == kAbsent) continue;
    const ir::Shape wanted = PermuteDims(graph.values[node.outputs[i]].type.shape, ToChannelsLast(rank));
    if (graph.values[outputs[i]].type.shape != wanted) {
      return absl::InternalError(fmt::format("node '{}' ({}) has a different shape in NHWC", node.name, node.op));
    }
  }
  return outputs;
}

}  // namespace hone::graph
