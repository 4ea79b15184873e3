// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/control_flow.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/size_elements.h"
#include "compiler/ir/match.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using Bodies = std::shared_ptr<const Graph>;

absl::Status Unfit(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

bool IsScalar(const TensorType& type, ir::DType dtype) { return type.dtype == dtype && type.shape.empty(); }

// Whether all symbols of the size are declared in `known`.
bool UsesOnly(const ir::Size& size, const std::vector<ir::OpenSize>& known) {
  bool only = true;
  size.ForEachSymbol(
      [&](const ir::OpenSize& symbol) { only = only && std::ranges::find(known, symbol) != known.end(); });
  return only;
}

// Whether an output dimension of two graphs is one size, which is known outside of them.
bool IsOneExtent(const ir::Size& a, const ir::Size& b, const std::vector<ir::OpenSize>& outside) {
  return a == b && UsesOnly(a, outside);
}

std::vector<TensorType> TypesOf(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<TensorType> types;
  for (const ValueId id : values) types.push_back(id == kAbsent ? TensorType() : graph.values[id].type);
  return types;
}

absl::StatusOr<std::vector<TensorType>> IfTypes(const Graph& graph, const Node& node) {
  const Graph &then_graph = BodyOf(node, "then"), &else_graph = BodyOf(node, "else");
  if (then_graph.outputs.size() != node.outputs.size() || else_graph.outputs.size() != node.outputs.size()) {
    return Unfit("its branches do not have one output for each of its outputs");
  }
  auto name = SizesMadeBy(node).begin();
  std::vector<TensorType> types;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kAbsent) {
      types.emplace_back();
      continue;
    }
    const TensorType& a = then_graph.values[then_graph.outputs[i]].type;
    const TensorType& b = else_graph.values[else_graph.outputs[i]].type;
    if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) {
      return Unfit(
          fmt::format("output {} is {} in one branch and {} in the other; element type and number of "
                      "dimensions must be equal",
                      i, Print(a), Print(b)));
    }
    TensorType type = a;
    for (size_t d = 0; d < a.shape.size(); ++d) {
      if (IsOneExtent(a.shape[d], b.shape[d], graph.sizes)) continue;
      if (name == SizesMadeBy(node).end()) return Unfit("its shapes have more sizes than it names");
      type.shape[d] = ir::Size::Open(
          {*name++, std::min(a.shape[d].min(), b.shape[d].min()), std::max(a.shape[d].max(), b.shape[d].max())});
    }
    types.push_back(std::move(type));
  }
  return types;
}

// Checks that a next state may take the place of the state.
absl::Status CheckState(const TensorType& state, const TensorType& next, size_t index) {
  bool fits = state.dtype == next.dtype && state.shape.size() == next.shape.size();
  for (size_t d = 0; fits && d < state.shape.size(); ++d) {
    fits = state.shape[d] == next.shape[d] ||
           (state.shape[d].min() <= std::max<int64_t>(next.shape[d].min(), 0) && !state.shape[d].IsFixed());
  }
  if (fits) return absl::OkStatus();
  return Unfit(fmt::format("state {} is {}, and a step makes {} of it", index, Print(state), Print(next)));
}

// The sizes that a value of type i64 states; nullopt if it is not known but for open sizes.
std::optional<ir::Shape> StatedSizes(const Graph& graph, const Value& value) {
  if (value.data != nullptr) return ir::Shape(ReadConstant<int64_t>(value));
  return value.elements == nullptr ? std::nullopt : SizesOf(*value.elements, graph.sizes);
}

absl::StatusOr<std::vector<TensorType>> LoopTypes(const Graph& graph, const Node& node) {
  const Graph& body = BodyOf(node, "body");
  const auto states = static_cast<size_t>(IntAttribute(node, "states", 0));
  if (node.inputs.size() < 2 + states || body.inputs.size() != node.inputs.size() - 2 ||
      body.outputs.size() != node.outputs.size() + 1) {
    return Unfit("its body does not have the inputs and outputs of the loop");
  }
  if (node.inputs[0] != kAbsent && !IsScalar(graph.values[node.inputs[0]].type, ir::DType::kInt64)) {
    return Unfit("the number of steps must be a scalar i64");
  }
  const bool begins = node.inputs[1] == kAbsent || IsScalar(graph.values[node.inputs[1]].type, ir::DType::kBool);
  if (!begins || !IsScalar(body.values[body.outputs[0]].type, ir::DType::kBool)) {
    return Unfit("its condition must be a scalar bool");
  }
  std::vector<TensorType> types;
  for (size_t i = 0; i < states; ++i) {
    const TensorType& state = body.values[body.inputs[i]].type;
    HONE_RETURN_IF_ERROR(CheckState(state, body.values[body.outputs[1 + i]].type, i));
    types.push_back(state);
  }
  ir::Size steps = ir::Size(0);
  if (const std::optional<ir::Size> known = KnownSteps(graph, node)) {
    steps = *known;
  } else if (const std::string name = StringAttribute(node, "steps", ""); !name.empty()) {
    steps = ir::Size::Open({name, 0, IntAttribute(node, "steps_max", 0)});
  }
  for (size_t i = states; i < node.outputs.size(); ++i) {
    const TensorType& row = body.values[body.outputs[1 + i]].type;
    for (const ir::Size& extent : row.shape) {
      if (!UsesOnly(extent, graph.sizes)) {
        return absl::UnimplementedError(
            fmt::format("output {} stacks rows whose size {} changes from step to step", i, ir::Print(extent)));
      }
    }
    ir::Shape shape = {steps};
    shape.insert(shape.end(), row.shape.begin(), row.shape.end());
    types.push_back({row.dtype, std::move(shape)});
  }
  return types;
}

absl::StatusOr<std::vector<TensorType>> FitTypes(const Graph& graph, const Node& node) {
  const TensorType& x = graph.values[node.inputs[0]].type;
  const std::optional<ir::Shape> shape = StatedSizes(graph, graph.values[node.inputs[1]]);
  if (!shape.has_value()) return Unfit("an element of input 1 is not a size");
  if (shape->size() != x.shape.size()) return Unfit("input 1 does not have one element per dimension of input 0");
  return std::vector<TensorType>{{x.dtype, *shape}};
}

}  // namespace

bool IsTrue(const Value& value) {
  return value.type.dtype == ir::DType::kBool && value.data != nullptr && value.data->size() == 1 &&
         value.data->front() != std::byte{0};
}

bool IsControlFlow(const Node& node) {
  return node.domain == kControlDomain &&
         (node.op == "ReadSize" || node.op == "Fit" || node.op == "If" || node.op == "Loop" || node.op == "Foreign");
}

const std::vector<std::string>& SizesMadeBy(const Node& node) {
  static const std::vector<std::string> kNone;
  if (!IsControlFlow(node)) return kNone;
  const auto sizes = node.attributes.find("sizes");
  return sizes == node.attributes.end() ? kNone : std::get<std::vector<std::string>>(sizes->second);
}

std::map<std::string, ValueId, std::less<>> SizeMakers(const Graph& graph) {
  std::map<std::string, ValueId, std::less<>> makers;
  for (const Node& node : graph.nodes) {
    for (const std::string& name : SizesMadeBy(node)) {
      const auto output = std::ranges::find_if(node.outputs, [](ValueId id) { return id != kAbsent; });
      if (output != node.outputs.end()) makers[name] = *output;
    }
  }
  return makers;
}

std::vector<ValueId> MakersOf(const Value& value, const std::map<std::string, ValueId, std::less<>>& makers) {
  std::vector<ValueId> found;
  if (value.elements == nullptr || makers.empty()) return found;
  for (const ir::Expr& element : *value.elements) {
    ir::ForEachExpr(element, [&](const ir::Expr& e) {
      const auto* var = e.As<ir::Var>();
      const auto maker = var == nullptr ? makers.end() : makers.find(var->name);
      if (maker != makers.end()) found.push_back(maker->second);
    });
  }
  return found;
}

const Graph& BodyOf(const Node& node, const std::string& name) {
  const auto body = node.attributes.find(name);
  HONE_CHECK(body != node.attributes.end());
  return *std::get<Bodies>(body->second);
}

absl::Status ChangeBodies(Graph& graph, const std::function<absl::Status(Graph&)>& change) {
  for (Node& node : graph.nodes) {
    if (!IsControlFlow(node)) continue;
    for (auto& [name, attribute] : node.attributes) {
      const auto* body = std::get_if<Bodies>(&attribute);
      if (body == nullptr) continue;
      auto changed = std::make_shared<Graph>(**body);
      HONE_RETURN_IF_ERROR(change(*changed));
      attribute = Bodies(std::move(changed));
    }
  }
  return absl::OkStatus();
}

std::optional<ir::Size> SizeOfScalar(const Graph& graph, ValueId id) {
  const Value& value = graph.values[id];
  if (value.type.dtype != ir::DType::kInt64 || value.type.elements() != ir::Size(1)) return std::nullopt;
  const std::optional<ir::Shape> sizes = StatedSizes(graph, value);
  return sizes.has_value() ? std::optional(sizes->front()) : std::nullopt;
}

std::optional<ir::Size> KnownSteps(const Graph& graph, const Node& loop) {
  const Graph& body = BodyOf(loop, "body");
  const bool begins = loop.inputs[1] == kAbsent || IsTrue(graph.values[loop.inputs[1]]);
  if (loop.inputs[0] == kAbsent || !begins || !IsTrue(body.values[body.outputs[0]])) return std::nullopt;
  const std::optional<ir::Size> steps = SizeOfScalar(graph, loop.inputs[0]);
  if (steps.has_value() && steps->min() < 0) return Max(*steps, ir::Size(0));
  return steps;
}

absl::StatusOr<std::vector<TensorType>> ControlTypes(const Graph& graph, const Node& node) {
  if (IsControl(node, "If")) return IfTypes(graph, node);
  if (IsControl(node, "Loop")) return LoopTypes(graph, node);
  if (IsControl(node, "Foreign")) return TypesOf(graph, node.outputs);
  if (IsControl(node, "Fit")) return FitTypes(graph, node);
  if (node.inputs.size() != 1 || !IsScalar(graph.values[node.inputs[0]].type, ir::DType::kInt64)) {
    return Unfit("a size is read from a scalar i64");
  }
  return std::vector<TensorType>{{ir::DType::kInt64, {}}};
}

size_t DifferingExtents(const Graph& then_graph, const Graph& else_graph, const std::vector<ir::OpenSize>& outside) {
  size_t count = 0;
  for (size_t i = 0; i < std::min(then_graph.outputs.size(), else_graph.outputs.size()); ++i) {
    const ir::Shape& a = then_graph.values[then_graph.outputs[i]].type.shape;
    const ir::Shape& b = else_graph.values[else_graph.outputs[i]].type.shape;
    for (size_t d = 0; d < std::min(a.size(), b.size()); ++d) count += IsOneExtent(a[d], b[d], outside) ? 0 : 1;
  }
  return count;
}

}  // namespace hone::graph
