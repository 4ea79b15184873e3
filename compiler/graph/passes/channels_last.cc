#include "compiler/graph/passes/channels_last.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/broadcasting.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

constexpr size_t kRank = 4;

// How a node speaks of dimensions, and so what has to change.
enum class Kind : uint8_t {
  kNone,          // no NHWC form
  kWindow,        // takes the attribute layout
  kBroadcast,     // operands follow numpy's rules
  kAxis,          // attribute axis
  kAxes,          // attribute axes, or constant input 1, dimensions kept
  kSlice,         // constant inputs 1 to 4: starts, ends, axes, steps
  kPad,           // a begin and an end per dimension, in the attribute pads or in constant input 1
  kPerDimension,  // constant inputs from 1 on have one number per dimension (Resize: twice as many for the region)
};

Kind KindOf(const Node& node) {
  static constexpr auto kWindows = std::to_array<std::string_view>(
      {"AveragePool", "Conv", "ConvTranspose", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"});
  if (IsBroadcasting(node)) return Kind::kBroadcast;
  if (!node.domain.empty()) return Kind::kNone;
  if (std::find(kWindows.begin(), kWindows.end(), node.op) != kWindows.end()) return Kind::kWindow;
  if (node.op == "Concat" || node.op == "Split" || node.op == "Gather") return Kind::kAxis;
  if ((node.op == "Softmax" || node.op == "LogSoftmax") && node.opset >= 13) return Kind::kAxis;
  if (node.op.starts_with("Reduce")) return Kind::kAxes;
  if (node.op == "Slice") return Kind::kSlice;
  if (node.op == "Pad") return Kind::kPad;
  if (node.op == "Resize" && node.opset >= 11) return Kind::kPerDimension;
  return Kind::kNone;
}

bool Present(const Node& node, size_t i) { return i < node.inputs.size() && node.inputs[i] != kAbsent; }

// Inputs from `first` on are absent or constants of int64 (or float32, for scales).
bool RestConstant(const Graph& graph, const Node& node, size_t first) {
  for (size_t i = first; i < node.inputs.size(); ++i) {
    if (!Present(node, i)) continue;
    const Value& value = graph.values[node.inputs[i]];
    if (value.data == nullptr) return false;
    if (value.type.dtype != ir::DType::kInt64 && value.type.dtype != ir::DType::kFloat32) return false;
  }
  return true;
}

bool OperandsFit(const Graph& graph, const Node& node) {
  for (ValueId id : node.inputs) {
    if (id == kAbsent || HasLayout(graph, id)) continue;
    const Value& value = graph.values[id];
    if (value.data == nullptr ? value.type.elements() != 1 : value.type.shape.size() > kRank) return false;
  }
  return true;
}

bool WindowFits(const Graph& graph, const Node& node) {
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (Present(node, i) && graph.values[node.inputs[i]].data == nullptr) return false;
  }
  // The indices of a MaxPool count elements in NCHW.
  return node.outputs.size() == 1 || node.outputs[1] == kAbsent;
}

// axis counted from the front, in NHWC.
int64_t MovedAxis(int64_t axis) {
  return Inverse(kToChannelsLast)[axis < 0 ? axis + static_cast<int64_t>(kRank) : axis];
}

template <typename T>
std::vector<T> PermuteList(const std::vector<T>& list) {
  std::vector<T> permuted;
  for (size_t start = 0; start < list.size(); start += kRank) {
    for (int64_t axis : kToChannelsLast) permuted.push_back(list[start + static_cast<size_t>(axis)]);
  }
  return permuted;
}

ValueId AddInts(Graph& graph, const std::vector<int64_t>& values) {
  return AddConstant<int64_t>(graph, "axes", ir::DType::kInt64, {static_cast<int64_t>(values.size())}, values);
}

// A constant operand that broadcasts against NHWC as it did against NCHW.
ValueId PermuteOperand(Graph& graph, ValueId id) {
  Value value = graph.values[id];
  if (value.type.elements() == 1) return id;
  std::vector<int64_t>& shape = value.type.shape;
  shape.insert(shape.begin(), kRank - shape.size(), 1);
  const TensorData data = Permute(value, kToChannelsLast);
  shape = PermuteDims(shape, kToChannelsLast);
  while (shape.size() > 1 && shape[0] == 1) shape.erase(shape.begin());
  return AddValue(graph, value.name, value.type, data);
}

void MoveAxes(Graph& graph, Node& node) {
  std::vector<int64_t> axes = IntsAttribute(node, "axes");
  if (Present(node, 1)) axes = ReadConstant<int64_t>(graph.values[node.inputs[1]]);
  for (int64_t& axis : axes) axis = MovedAxis(axis);
  std::sort(axes.begin(), axes.end());
  if (Present(node, 1)) {
    node.inputs[1] = AddInts(graph, axes);
  } else if (!axes.empty()) {
    node.attributes["axes"] = axes;
  }
}

void MoveSlice(Graph& graph, Node& node) {
  std::vector<int64_t> axes = {0, 1, 2, 3};
  if (Present(node, 3)) {
    axes = ReadConstant<int64_t>(graph.values[node.inputs[3]]);
  } else {
    axes.resize(graph.values[node.inputs[1]].type.elements());
  }
  for (int64_t& axis : axes) axis = MovedAxis(axis);
  node.inputs.resize(std::max<size_t>(node.inputs.size(), 4), kAbsent);
  node.inputs[3] = AddInts(graph, axes);
}

void MovePads(Graph& graph, Node& node) {
  if (Present(node, 1)) {
    node.inputs[1] = AddInts(graph, PermuteList(ReadConstant<int64_t>(graph.values[node.inputs[1]])));
  } else {
    node.attributes["pads"] = PermuteList(IntsAttribute(node, "pads"));
  }
}

void MovePerDimension(Graph& graph, Node& node) {
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (!Present(node, i)) continue;
    const Value value = graph.values[node.inputs[i]];
    if (value.type.dtype == ir::DType::kInt64) {
      node.inputs[i] = AddInts(graph, PermuteList(ReadConstant<int64_t>(value)));
    } else {
      node.inputs[i] = AddConstant<float>(graph, value.name, value.type.dtype, value.type.shape,
                                          PermuteList(ReadConstant<float>(value)));
    }
  }
}

// Pad and Resize: one number per dimension, or a multiple, in every constant input.
bool ListsFit(const Graph& graph, const Node& node, size_t last) {
  for (size_t i = 1; i <= last; ++i) {
    if (Present(node, i) && graph.values[node.inputs[i]].type.elements() % static_cast<int64_t>(kRank) != 0)
      return false;
  }
  return true;
}

}  // namespace

bool HasLayout(const Graph& graph, ValueId id) {
  return id != kAbsent && graph.values[id].data == nullptr && graph.values[id].type.shape.size() == kRank;
}

bool HasChannelsLastForm(const Graph& graph, const Node& node) {
  const Kind kind = KindOf(node);
  if (kind == Kind::kNone || node.inputs.empty()) return false;
  for (ValueId id : node.outputs) {
    if (id != kAbsent && !HasLayout(graph, id)) return false;
  }
  if (kind == Kind::kBroadcast) {
    return OperandsFit(graph, node) &&
           std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return HasLayout(graph, id); });
  }
  if (Is(node, "Concat")) {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return HasLayout(graph, id); });
  }
  if (!HasLayout(graph, node.inputs[0])) return false;
  switch (kind) {
    case Kind::kWindow:
      return WindowFits(graph, node);
    case Kind::kAxis:
      return RestConstant(graph, node, 1);
    case Kind::kAxes:
      return RestConstant(graph, node, 1) && IntAttribute(node, "keepdims", 1) == 1;
    case Kind::kSlice:
      return RestConstant(graph, node, 1) && Present(node, 1);
    case Kind::kPad:
      return !Present(node, 3) && RestConstant(graph, node, 1) && ListsFit(graph, node, 1);
    case Kind::kPerDimension:
      return RestConstant(graph, node, 1) && ListsFit(graph, node, 3) && !node.attributes.contains("axes");
    default:
      return false;
  }
}

absl::StatusOr<std::vector<ValueId>> ToChannelsLast(Graph& graph, const Node& node,
                                                    const std::function<absl::StatusOr<ValueId>(ValueId)>& converted) {
  Node moved = node;
  const Kind kind = KindOf(node);
  for (ValueId& id : moved.inputs) {
    if (HasLayout(graph, id)) {
      HONE_ASSIGN_OR_RETURN(id, converted(id));
    } else if (id != kAbsent && kind == Kind::kBroadcast && graph.values[id].data != nullptr) {
      id = PermuteOperand(graph, id);
    }
  }
  switch (kind) {
    case Kind::kWindow:
      moved.attributes["layout"] = std::string("NHWC");
      break;
    case Kind::kAxis: {
      const int64_t fallback = Is(node, "Split") || Is(node, "Gather") ? 0 : -1;
      moved.attributes["axis"] = MovedAxis(IntAttribute(node, "axis", fallback));
      break;
    }
    case Kind::kAxes:
      MoveAxes(graph, moved);
      break;
    case Kind::kSlice:
      MoveSlice(graph, moved);
      break;
    case Kind::kPad:
      MovePads(graph, moved);
      break;
    case Kind::kPerDimension:
      MovePerDimension(graph, moved);
      break;
    default:
      break;
  }
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, AddNode(graph, std::move(moved)));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == kAbsent) continue;
    const std::vector<int64_t> wanted = PermuteDims(graph.values[node.outputs[i]].type.shape, kToChannelsLast);
    if (graph.values[outputs[i]].type.shape != wanted) {
      return absl::InternalError(fmt::format("node '{}' ({}) has another shape in NHWC", node.name, node.op));
    }
  }
  return outputs;
}

}  // namespace hone::graph
