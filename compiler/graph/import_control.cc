// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/import_control.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/status.h"
#include "compiler/graph/control_flow.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/size_elements.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

constexpr int64_t kStepsMax = std::numeric_limits<int32_t>::max();  // without rows, memory does not limit a loop
constexpr int kShapeRoundsMax = 4;                                  // imports of a body until its states' shapes hold

// Gives the body an input per capture in `all`, in this order, after its own inputs.
void OrderCaptures(ImportedBody& body, size_t own, const Graph& outside, const std::vector<ValueId>& all) {
  std::vector<ValueId> inputs(body.graph.inputs.begin(), body.graph.inputs.begin() + static_cast<std::ptrdiff_t>(own));
  for (const ValueId capture : all) {
    const auto known = std::ranges::find(body.captures, capture);
    if (known != body.captures.end()) {
      inputs.push_back(body.graph.inputs[own + static_cast<size_t>(known - body.captures.begin())]);
      continue;
    }
    const Value& value = outside.values[capture];
    inputs.push_back(AddValue(body.graph, value.name, value.type));
    DeclareSizes(body.graph, value.type.shape);
  }
  body.graph.inputs = std::move(inputs);
  body.captures = all;
}

std::shared_ptr<const Graph> Shared(Graph graph) { return std::make_shared<const Graph>(std::move(graph)); }

// AddNode for a node of control flow; declares the sizes that its outputs have.
absl::StatusOr<std::vector<ValueId>> AddControl(Graph& graph, Node node, const std::vector<std::string>& names) {
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, AddNode(graph, std::move(node), names));
  for (const ValueId id : outputs) {
    if (id != kAbsent) DeclareSizes(graph, graph.values[id].type.shape);
  }
  return outputs;
}

std::vector<ValueId> NewOutputs(const std::vector<std::string>& names) {
  std::vector<ValueId> outputs;
  for (const std::string& name : names) outputs.push_back(name.empty() ? kAbsent : kNewValue);
  return outputs;
}

// The open size of a state's dimension that steps change. It is `first` at the beginning; a step makes `next` out of
// `current`, which is a number or the same open size with another range.
ir::OpenSize StateRange(const std::string& name, const ir::Size& first, const ir::Size& current, const ir::Size& next,
                        const LoopForm& form) {
  const int64_t min = std::max<int64_t>(std::min(first.min(), next.min()), 0);
  const int64_t growth = next.max() - current.max();
  if (growth <= 0) return {name, min, std::max(first.max(), next.max())};
  return {name, min, first.max() + growth * (form.steps_max < kStepsMax ? form.steps_max : form.unknown_steps_max)};
}

// The shapes of a loop's states while they are sought.
class StateShapes {
 public:
  StateShapes(const Graph& graph, const LoopForm& form, const NameSource& unique) : form_(form), unique_(unique) {
    for (const ValueId state : form.states) types_.push_back(graph.values[state].type);
    first_ = types_;
  }

  const std::vector<TensorType>& types() const { return types_; }
  const std::vector<std::string>& sizes() const { return sizes_; }

  // Widens the dimensions that do not hold after a step of the body. Returns whether there are some.
  absl::StatusOr<bool> Widen(const Graph& body) {
    bool changes = false;
    for (size_t i = 0; i < types_.size(); ++i) {
      const TensorType& next = body.values[body.outputs[1 + i]].type;
      if (next.dtype != types_[i].dtype || next.shape.size() != types_[i].shape.size()) {
        return absl::InvalidArgumentError(
            fmt::format("state {} begins as {}, and a step makes {} of it", i, Print(first_[i]), Print(next)));
      }
      for (size_t d = 0; d < next.shape.size(); ++d) {
        if (next.shape[d] == types_[i].shape[d]) continue;
        changes = WidenExtent(types_[i].shape[d], first_[i].shape[d], next.shape[d]) || changes;
      }
    }
    return changes;
  }

 private:
  bool WidenExtent(ir::Size& extent, const ir::Size& first, const ir::Size& next) {
    std::string name;
    extent.ForEachSymbol([&](const ir::OpenSize& symbol) { name = symbol.name; });
    const bool is_own = std::ranges::find(sizes_, name) != sizes_.end();
    if (!is_own) {
      name = unique_(form_.name + ".size");
      sizes_.push_back(name);
    }
    const ir::Size wider = ir::Size::Open(StateRange(name, first, extent, next, form_));
    if (wider == extent) return false;
    extent = wider;
    return true;
  }

  const LoopForm& form_;
  const NameSource& unique_;
  std::vector<TensorType> first_, types_;
  std::vector<std::string> sizes_;
};

}  // namespace

absl::StatusOr<std::vector<ValueId>> AddIf(Graph& graph, const std::string& name, ValueId condition,
                                           ImportedBody then_body, ImportedBody else_body,
                                           const std::vector<std::string>& output_names, const NameSource& unique) {
  std::vector<ValueId> captures = then_body.captures;
  for (const ValueId id : else_body.captures) {
    if (std::ranges::find(captures, id) == captures.end()) captures.push_back(id);
  }
  OrderCaptures(then_body, 0, graph, captures);
  OrderCaptures(else_body, 0, graph, captures);
  std::vector<std::string> sizes;
  const size_t count = DifferingExtents(then_body.graph, else_body.graph, graph.sizes);
  for (size_t i = 0; i < count; ++i) sizes.push_back(unique(name + ".size"));
  Node node{.name = name, .op = "If", .domain = kControlDomain, .opset = kOwnOpset, .inputs = {condition}};
  node.inputs.insert(node.inputs.end(), captures.begin(), captures.end());
  node.outputs = NewOutputs(output_names);
  node.attributes = {{"then", Shared(std::move(then_body.graph))},
                     {"else", Shared(std::move(else_body.graph))},
                     {"sizes", std::move(sizes)}};
  return AddControl(graph, std::move(node), output_names);
}

std::vector<std::string> LoopOutputNames(const RawNode& node, const std::string& name, size_t outputs,
                                         const NameSource& unique) {
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs; ++i) {
    const bool is_read = i < node.outputs.size() && !node.outputs[i].empty();
    names.push_back(unique(is_read ? node.outputs[i] : fmt::format("{}.output{}", name, i)));
  }
  return names;
}

void AddCounter(const Graph& graph, const std::string& name, LoopForm& form) {
  const std::optional<ir::Size> known = form.steps == kAbsent ? std::nullopt : SizeOfScalar(graph, form.steps);
  form.has_unknown_steps = !known.has_value() || known->max() >= kStepsMax;
  form.steps_max = form.rows > 0 ? form.unknown_steps_max : kStepsMax;
  if (!form.has_unknown_steps) form.steps_max = std::max<int64_t>(known->max(), 0);
  form.counter = {name, 0, std::max<int64_t>(form.steps_max - 1, 0)};
}

bool HasAssumedSteps(const Graph& graph, const LoopForm& form, const std::vector<ValueId>& outputs) {
  if (!form.has_unknown_steps) return false;
  for (size_t i = 0; i < form.states.size(); ++i) {
    if (graph.values[outputs[i]].type.shape != graph.values[form.states[i]].type.shape) return true;
  }
  return form.rows > 0;
}

absl::StatusOr<std::vector<ValueId>> AddLoop(Graph& graph, const LoopForm& form, const ImportLoopBody& import_body,
                                             const std::vector<std::string>& output_names, const NameSource& unique) {
  StateShapes shapes(graph, form, unique);
  std::optional<ImportedBody> body;
  for (int round = 0;; ++round) {
    HONE_ASSIGN_OR_RETURN(body, import_body(shapes.types()));
    HONE_ASSIGN_OR_RETURN(const bool widened, shapes.Widen(body->graph));
    if (!widened) break;
    if (round == kShapeRoundsMax) {
      return absl::UnimplementedError("the shapes of its states grow in a way that is not supported");
    }
  }
  Node node{.name = form.name, .op = "Loop", .domain = kControlDomain, .opset = kOwnOpset};
  node.inputs = {form.steps, form.condition};
  node.inputs.insert(node.inputs.end(), form.states.begin(), form.states.end());
  node.inputs.insert(node.inputs.end(), body->captures.begin(), body->captures.end());
  node.outputs = NewOutputs(output_names);
  std::vector<std::string> sizes = shapes.sizes();
  node.attributes = {{"body", Shared(std::move(body->graph))},
                     {"states", static_cast<int64_t>(form.states.size())},
                     {"counter", form.counter.name},
                     {"steps_max", form.steps_max}};
  if (form.rows > 0 && !KnownSteps(graph, node).has_value()) {
    sizes.push_back(unique(form.name + ".steps"));
    node.attributes["steps"] = sizes.back();
  }
  node.attributes["sizes"] = std::move(sizes);
  return AddControl(graph, std::move(node), output_names);
}

}  // namespace hone::graph
