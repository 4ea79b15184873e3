// SPDX-License-Identifier: Apache-2.0
// Importer: nodes with graphs inside, and nodes that are imported as such.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/status.h"
#include "compiler/graph/control_flow.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/import_small.h"
#include "compiler/graph/importer.h"
#include "compiler/graph/size_elements.h"
#include "fmt/format.h"

namespace hone::graph {

Context Importer::InsideOf(const RawNode& node, size_t index, const Context& context) const {
  return {context.opsets,     context.call_attributes,
          context.depth + 1,  nullptr,
          &context,           context.where + Describe(node, index) + ": ",
          context.tentative,  context.path + NameOf(node, index) + "/",
          context.is_written, context.is_own};
}

absl::StatusOr<std::vector<ValueId>> Importer::ImportIf(const RawNode& node, size_t index, const Context& context,
                                                        const Scope& outer) {
  HONE_ASSIGN_OR_RETURN(const ValueId condition, node.inputs.empty() ? kAbsent : outer.Find(node.inputs[0]));
  if (condition == kAbsent) return absl::InvalidArgumentError("the condition is missing");
  HONE_RETURN_IF_ERROR(at_->FoldValue(condition, needed_steps_left_).status());
  const Value& value = at_->graph.values[condition];
  if (value.type.dtype != ir::DType::kBool || value.type.elements() != ir::Size(1)) {
    return absl::InvalidArgumentError("the condition must be one bool");
  }
  const Context inner = InsideOf(node, index, context);
  if (value.data == nullptr) return ImportBranches(node, index, inner, outer, condition);
  HONE_ASSIGN_OR_RETURN(const RawGraph* const body, BranchOf(node, IsTrue(value) ? "then_branch" : "else_branch"));
  Scope scope{.outer = &outer, .values = {}};
  HONE_RETURN_IF_ERROR(AddInitializers(*body, scope));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> wanted, OutputsRead(node, body->outputs));
  const absl::Status imported = ImportNodes(body->nodes, wanted, inner, scope);
  saw_body_ = true;
  HONE_RETURN_IF_ERROR(imported);
  return FindOutputs(wanted, scope);
}

absl::StatusOr<std::vector<ValueId>> Importer::ImportBranches(const RawNode& node, size_t index, const Context& inner,
                                                              const Scope& outer, ValueId condition) {
  std::vector<ImportedBody> bodies;
  for (const char* branch : {"then_branch", "else_branch"}) {
    HONE_ASSIGN_OR_RETURN(const RawGraph* const body, BranchOf(node, branch));
    HONE_ASSIGN_OR_RETURN(std::vector<std::string> wanted, OutputsRead(node, body->outputs));
    std::erase(wanted, "");
    HONE_ASSIGN_OR_RETURN(ImportedBody imported, ImportBody(*body, wanted, inner, outer, {}));
    bodies.push_back(std::move(imported));
  }
  HONE_ASSIGN_OR_RETURN(const ValueId scalar, AddReshape(at_->graph, condition, {}));
  std::vector<std::string> names;
  for (const std::string& name : node.outputs) {
    if (!name.empty()) names.push_back(UniqueName(name));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> made,
                        AddIf(at_->graph, UniqueName(NameOf(node, index)), scalar, std::move(bodies[0]),
                              std::move(bodies[1]), names, NewNames()));
  std::vector<ValueId> outputs;
  auto next = made.begin();
  for (const std::string& name : node.outputs) outputs.push_back(name.empty() ? kAbsent : *next++);
  return outputs;
}

absl::StatusOr<ImportedBody> Importer::ImportBody(const RawGraph& body, const std::vector<std::string>& outputs,
                                                  const Context& inner, const Scope& outer,
                                                  const DefineInputs& define_inputs) {
  saw_body_ = true;
  ImportGraph& outside = *at_;
  ImportGraph inside;
  inside.graph.sizes = outside.graph.sizes;
  inside.proves_sizes = outside.proves_sizes;
  std::map<ValueId, ValueId> captured;  // by value outside
  std::vector<ValueId> captures, inputs;
  Scope scope{.outer = &outer, .values = {}};
  scope.capture = [&](ValueId id) -> ValueId {
    const auto [known, added] = captured.emplace(id, kAbsent);
    if (!added) return known->second;
    if (Sequences::Is(id)) return known->second = sequences_.Map(id, scope.capture);
    known->second = inside.Capture(outside, id, UniqueName(outside.graph.values[id].name), needed_steps_left_);
    const Value& value = inside.graph.values[known->second];
    if (value.data == nullptr && value.elements == nullptr) {
      captures.push_back(id);
      inputs.push_back(known->second);
    }
    return known->second;
  };
  at_ = &inside;
  const absl::Status imported = ImportInto(body, outputs, inner, scope, define_inputs);
  at_ = &outside;
  HONE_RETURN_IF_ERROR(imported);
  inside.graph.inputs.insert(inside.graph.inputs.end(), inputs.begin(), inputs.end());
  Tidy(inside.graph);
  return ImportedBody{std::move(inside.graph), std::move(captures)};
}

absl::Status Importer::ImportInto(const RawGraph& body, const std::vector<std::string>& outputs, const Context& inner,
                                  Scope& scope, const DefineInputs& define_inputs) {
  if (define_inputs) HONE_RETURN_IF_ERROR(define_inputs(scope));
  HONE_RETURN_IF_ERROR(AddInitializers(body, scope));
  HONE_RETURN_IF_ERROR(ImportNodes(body.nodes, outputs, inner, scope));
  HONE_ASSIGN_OR_RETURN(at_->graph.outputs, FindOutputs(outputs, scope));
  HONE_RETURN_IF_ERROR(CheckNotSmall(at_->graph.outputs, "a result of its body"));
  if (std::ranges::any_of(at_->graph.outputs, Sequences::Is)) {
    return absl::UnimplementedError(
        "its body returns a sequence; that works only if the course of the node is known when the model is compiled");
  }
  for (const std::string& name : outputs) at_->graph.output_names.push_back(name);
  return absl::OkStatus();
}

absl::Status Importer::CheckNotSmall(const std::vector<ValueId>& values, std::string_view what) const {
  for (const ValueId value : values) {
    const auto small = at_->small.find(value);
    if (small != at_->small.end()) return SmallTypeError(what, *small->second);
  }
  return absl::OkStatus();
}

absl::StatusOr<ValueId> Importer::ScalarInput(const RawNode& node, size_t input, ir::DType dtype, const Scope& outer) {
  if (input >= node.inputs.size() || node.inputs[input].empty()) return kAbsent;
  HONE_ASSIGN_OR_RETURN(const ValueId id, outer.Find(node.inputs[input]));
  HONE_RETURN_IF_ERROR(at_->FoldValue(id, needed_steps_left_).status());
  const TensorType& type = at_->graph.values[id].type;
  if (type.dtype != dtype || type.elements() != ir::Size(1)) {
    return absl::InvalidArgumentError(fmt::format("input {} must be one {}", input, ir::Name(dtype)));
  }
  return AddReshape(at_->graph, id, {});
}

ValueId Importer::StepNumber(const std::string& name, const ir::OpenSize& counter) {
  const ValueId id = AddSizes(at_->graph, name, {ir::Size::Open(counter)});
  at_->graph.values[id].type.shape = {};  // a list of one has the same elements
  at_->graph.values[id].name = UniqueName(name);
  return id;
}

absl::StatusOr<std::vector<ValueId>> Importer::ImportLoop(const RawNode& node, size_t index, const Context& context,
                                                          const Scope& outer) {
  HONE_ASSIGN_OR_RETURN(const RawGraph* const body, BodyOf(node, "body"));
  const size_t states = std::max<size_t>(node.inputs.size(), 2) - 2;
  if (body->inputs.size() != states + 2 || body->outputs.size() < states + 1) {
    return absl::InvalidArgumentError("its body does not have the inputs and outputs of the loop");
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> firsts,
                        FindAll({node.inputs.end() - static_cast<std::ptrdiff_t>(states), node.inputs.end()}, outer));
  if (std::ranges::any_of(firsts, Sequences::Is)) return ImportLoopOnSequences(node, index, context, outer, *body);
  LoopForm form{.name = UniqueName(NameOf(node, index)), .rows = body->outputs.size() - 1 - states};
  HONE_ASSIGN_OR_RETURN(form.steps, ScalarInput(node, 0, ir::DType::kInt64, outer));
  HONE_ASSIGN_OR_RETURN(form.condition, ScalarInput(node, 1, ir::DType::kBool, outer));
  form.states = firsts;
  form.unknown_steps_max = loop_steps_;
  HONE_RETURN_IF_ERROR(CheckNotSmall(form.states, "a state"));
  AddCounter(at_->graph, UniqueName(form.name + ".step"), form);
  const Context inner = InsideOf(node, index, context);
  const auto import_body = [&](const std::vector<TensorType>& types) {
    return ImportBody(*body, body->outputs, inner, outer, [&, this](Scope& scope) -> absl::Status {
      HONE_RETURN_IF_ERROR(Define(body->inputs[0].name, StepNumber(body->inputs[0].name, form.counter), scope));
      const auto yes = std::make_shared<const std::vector<std::byte>>(1, std::byte{1});
      HONE_RETURN_IF_ERROR(
          Define(body->inputs[1].name, AddNamed(body->inputs[1].name, {ir::DType::kBool, {}}, yes), scope));
      return DefineStates(*body, 2, types, scope);
    });
  };
  const auto names = LoopOutputNames(node, form.name, states + form.rows, NewNames());
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, AddLoop(at_->graph, form, import_body, names, NewNames()));
  if (HasAssumedSteps(at_->graph, form, outputs)) log_.NoteAssumedSteps(context.where + Describe(node, index));
  return PresentOutputs(node, std::move(outputs));
}

std::vector<ValueId> Importer::PresentOutputs(const RawNode& node, std::vector<ValueId> outputs) {
  outputs.resize(node.outputs.size(), kAbsent);
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = node.outputs[i].empty() ? kAbsent : outputs[i];
  return outputs;
}

absl::Status Importer::DefineStates(const RawGraph& body, size_t first, const std::vector<TensorType>& types,
                                    Scope& scope) {
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string& name = body.inputs[first + i].name;
    const ValueId id = AddNamed(name, types[i], nullptr);
    DeclareSizes(at_->graph, types[i].shape);
    at_->graph.inputs.push_back(id);
    HONE_RETURN_IF_ERROR(Define(name, id, scope));
  }
  return absl::OkStatus();
}

SpellAsLoop Importer::SpelledAsLoop(const RawNode& node, const Scope& scope) const {
  const absl::StatusOr<ValueId> first = node.inputs.empty() ? kAbsent : scope.Find(node.inputs[0]);
  const bool is_known = first.ok() && *first >= 0;
  return FindAsLoop(node, is_known ? &at_->graph.values[*first].type : nullptr);
}

absl::StatusOr<bool> Importer::IsOnSequences(const RawNode& node, const Scope& scope) const {
  std::vector<ValueId> inputs;
  for (const std::string& name : node.inputs) {
    const absl::StatusOr<ValueId> id = name.empty() ? kAbsent : scope.Find(name);
    inputs.push_back(id.ok() ? *id : kAbsent);
  }
  if (Sequences::Handles(node, inputs)) return true;
  const size_t plain = node.domain.empty() && node.op == "Loop" ? std::min<size_t>(2, inputs.size()) : inputs.size();
  for (size_t i = 0; i < plain; ++i) {
    if (Sequences::Is(inputs[i])) {
      return absl::UnimplementedError(fmt::format("input {} of {} is a sequence or optional value", i, node.op));
    }
  }
  return false;
}

InlineBody Importer::InlineBodies(const RawNode& node, size_t index, const Context& context, const Scope& outer) {
  const Context inner = InsideOf(node, index, context);
  return [this, inner, &outer](const RawGraph& body,
                               const std::vector<ValueId>& inputs) -> absl::StatusOr<std::vector<ValueId>> {
    const size_t has = body.inputs.size(), given = inputs.size();
    if (has != given)
      return absl::InvalidArgumentError(fmt::format("its body has {} inputs, but the node gives it {}", has, given));
    Scope scope{.outer = &outer, .values = {}};
    for (size_t i = 0; i < inputs.size(); ++i) {
      HONE_RETURN_IF_ERROR(Define(body.inputs[i].name, inputs[i], scope));
    }
    HONE_RETURN_IF_ERROR(AddInitializers(body, scope));
    HONE_RETURN_IF_ERROR(ImportNodes(body.nodes, body.outputs, inner, scope));
    return FindOutputs(body.outputs, scope);
  };
}

decompose::NodeGraphs Importer::GraphsOf(const RawNode& node, size_t index, const Context& context,
                                         const Scope& outer) {
  decompose::NodeGraphs graphs;
  for (const auto& [name, attribute] : node.attributes) {
    if (std::holds_alternative<std::shared_ptr<const RawGraph>>(attribute.value)) graphs.names.push_back(name);
  }
  if (graphs.names.empty()) return graphs;
  graphs.write = [&node, inline_body = InlineBodies(node, index, context, outer)](
                     const std::string& name,
                     const std::vector<ValueId>& inputs) -> absl::StatusOr<std::vector<ValueId>> {
    HONE_ASSIGN_OR_RETURN(const RawGraph* const body, BodyOf(node, name));
    return inline_body(*body, inputs);
  };
  return graphs;
}

absl::StatusOr<std::vector<ValueId>> Importer::ImportOnSequences(const RawNode& node, size_t index,
                                                                 const Context& context, const Scope& scope) {
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> inputs, FindAll(node.inputs, scope));
  return sequences_.Import(node, inputs, *at_, needed_steps_left_, InlineBodies(node, index, context, scope));
}

absl::StatusOr<std::vector<ValueId>> Importer::ImportLoopOnSequences(const RawNode& node, size_t index,
                                                                     const Context& context, const Scope& outer,
                                                                     const RawGraph& body) {
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> inputs, FindAll(node.inputs, outer));
  HONE_ASSIGN_OR_RETURN(auto unrolled, sequences_.Unroll(node, body, inputs, *at_, needed_steps_left_,
                                                         InlineBodies(node, index, context, outer)));
  if (unrolled.has_value()) return *std::move(unrolled);
  HONE_ASSIGN_OR_RETURN(const StackedLoop stacked, StackStates(node, body, inputs, sequences_));
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> made, ImportLoop(stacked.loop, index, context, outer));
  std::vector<ValueId> outputs;
  for (const StackedLoop::Output& output : stacked.outputs) {
    const ValueId value = made[output.index];
    outputs.push_back(output.is_stacked && value != kAbsent ? sequences_.Add({.stacked = value}) : value);
  }
  return outputs;
}

absl::StatusOr<std::vector<ValueId>> Importer::ImportAsLoop(const RawNode& node, size_t /*index*/,
                                                            const Context& context, const Scope& outer) {
  HONE_ASSIGN_OR_RETURN(const AsLoop spelled, SpelledAsLoop(node, outer)(node, OpsetOf("", context.opsets)));
  static const std::map<std::string, int64_t> kOwn = {{"", kOwnOpset}, {"hone", 1}};
  const Context inner{spelled.has_body ? context.opsets : kOwn,
                      spelled.has_body ? context.call_attributes : nullptr,
                      context.depth + 1,
                      nullptr,
                      &context,
                      context.where,
                      context.tentative || !spelled.has_body,
                      context.path,
                      true,
                      !spelled.has_body};
  Scope scope{.outer = &outer, .values = {}};
  HONE_RETURN_IF_ERROR(ImportNodes(spelled.nodes, spelled.outputs, inner, scope));
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, FindOutputs(spelled.outputs, scope));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == kAbsent) continue;
    HONE_ASSIGN_OR_RETURN(outputs[i], PlaceRows(at_->graph, outputs[i], spelled.axes[i], spelled.reversed[i]));
  }
  return outputs;
}

}  // namespace hone::graph
