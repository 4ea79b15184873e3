// SPDX-License-Identifier: Apache-2.0
// Importer: one node, which is an operator, a call of a function, or a constant.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/status.h"
#include "compiler/graph/fallback.h"
#include "compiler/graph/foreign_model.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/import_constant.h"
#include "compiler/graph/import_report.h"
#include "compiler/graph/import_small.h"
#include "compiler/graph/importer.h"
#include "compiler/graph/node_form.h"
#include "compiler/graph/op.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/opsets/table.h"
#include "fmt/format.h"

namespace hone::graph {

absl::StatusOr<std::vector<ValueId>> Importer::ImportNode(const RawNode& raw, size_t index, const Context& context,
                                                          Scope& scope) {
  const size_t values = at_->graph.values.size();
  absl::StatusOr<std::vector<ValueId>> outputs = ImportUnnamed(raw, index, context, scope);
  if (!outputs.ok() || context.is_written) return outputs;
  SetOrigins(raw, context.path + NameOf(raw, index), values);
  for (size_t i = 0; i < raw.outputs.size() && i < outputs->size(); ++i) {
    const ValueId id = (*outputs)[i];
    if (id < 0 || raw.outputs[i].empty() || at_->small.contains(id)) continue;
    Value& value = at_->graph.values[id];
    if (value.data == nullptr) value.held.push_back({.name = context.path + raw.outputs[i], .shape = value.type.shape});
  }
  return outputs;
}

void Importer::SetOrigins(const RawNode& raw, const std::string& name, size_t values) {
  if (raw.domain.empty() && raw.op == "Constant") return;
  Graph& graph = at_->graph;
  std::vector<int> origins;
  const auto add = [&](Origin origin) {
    origins.push_back(static_cast<int>(graph.origins.size()));
    graph.origins.push_back(std::move(origin));
  };
  if (raw.part == nullptr) {
    add({.name = name, .op = raw.op});
  } else {
    for (const Origin& member : raw.part->members) add(member);
  }
  const auto is_added = [&](const Node& node) {
    const auto first = std::ranges::find_if(node.outputs, [](ValueId id) { return id != kAbsent; });
    return first != node.outputs.end() && static_cast<size_t>(*first) >= values;
  };
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend() && is_added(*node); ++node) {
    if (!node->origins.empty()) continue;  // a node inside of this one has set them
    node->origins = origins;
    for (const int origin : origins) graph.origins[static_cast<size_t>(origin)].computes |= !IsView(*node);
  }
}

absl::StatusOr<std::vector<ValueId>> Importer::ImportUnnamed(const RawNode& raw, size_t index, const Context& context,
                                                             Scope& scope) {
  if (raw.part != nullptr) return Named(ImportPart(raw, scope), raw, index);
  absl::StatusOr<RawNode> node = BindAttributes(raw, context);
  if (!node.ok()) return Annotate(node.status(), Describe(raw, index));
  if (const auto* expressions = FindExpressions(*node)) {
    return Named(ImportExpression(*node, *expressions, index, scope), raw, index);
  }
  if (const RawFunction* function = FindFunction(*node)) {
    if (context.IsInside(*function)) {
      return absl::InvalidArgumentError(
          fmt::format("{}: the function calls itself; export the model without recursion", Describe(raw, index)));
    }
    absl::StatusOr<std::vector<ValueId>> outputs = Inline(*node, index, *function, context, scope);
    return outputs.ok() ? outputs : AddContext(outputs.status(), "in function " + node->op);
  }
  if (node->domain.empty() && node->op == "Constant") return Named(ImportConstant(*node), raw, index);
  HONE_ASSIGN_OR_RETURN(const bool on_sequences, IsOnSequences(*node, scope));
  if (on_sequences) return Named(ImportOnSequences(*node, index, context, scope), raw, index);
  const bool as_loop = SpelledAsLoop(*node, scope) != nullptr;
  if (as_loop) HONE_RETURN_IF_ERROR(CheckOperator(*node, index, context));
  if (as_loop || IsRawControlFlow(*node)) {
    saw_body_ = false;
    const auto import = as_loop            ? &Importer::ImportAsLoop
                        : node->op == "If" ? &Importer::ImportIf
                                           : &Importer::ImportLoop;
    absl::StatusOr<std::vector<ValueId>> outputs = (this->*import)(*node, index, context, scope);
    if (!outputs.ok() && !saw_body_) CheckBodies(raw, index, context);
    return Named(std::move(outputs), raw, index);
  }
  return ImportOperator(*node, index, context, scope);
}

absl::StatusOr<std::vector<ValueId>> Importer::ImportPart(const RawNode& raw, const Scope& scope) {
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> inputs, FindAll(raw.inputs, scope));
  HONE_ASSIGN_OR_RETURN(Node node, MakeForeign(*at_, raw, inputs));
  for (const RawInput& output : raw.part->outputs) {
    HONE_ASSIGN_OR_RETURN(TensorType type, TypeOfForeign(output, symbols_, *options_));
    DeclareSizes(at_->graph, type.shape);
    node.outputs.push_back(AddNamed(output.name, std::move(type), nullptr));
  }
  node.name = UniqueName(raw.name);
  at_->graph.nodes.push_back(node);
  return node.outputs;
}

const RawFunction* Importer::FindFunction(const RawNode& node) const {
  const FunctionKey key(node.domain, node.op, node.overload);
  for (const auto* functions : {operators_ ? &operators_->functions : nullptr, &model_.functions}) {
    if (functions == nullptr) continue;
    if (const auto found = functions->find(key); found != functions->end()) return &found->second;
  }
  return nullptr;
}

const std::vector<OperatorExpression>* Importer::FindExpressions(const RawNode& node) const {
  if (operators_ == nullptr) return nullptr;
  const auto found = operators_->expressions.find({node.domain, node.op});
  return found == operators_->expressions.end() ? nullptr : &found->second;
}

absl::StatusOr<std::vector<ValueId>> Importer::Named(absl::StatusOr<std::vector<ValueId>> result, const RawNode& node,
                                                     size_t index) {
  return result.ok() ? std::move(result) : AddContext(result.status(), Describe(node, index));
}

bool Importer::IsRawControlFlow(const RawNode& node) {
  return node.domain.empty() && (node.op == "If" || node.op == "Loop");
}

absl::Status Importer::AddNodeProblem(const absl::Status& status, const RawNode& node, size_t index,
                                      const Context& context) {
  const bool control_flow = IsRawControlFlow(node) || node.op == "Scan";
  std::optional<ProblemKind> kind;
  if (absl::IsUnimplemented(status) && control_flow) kind = ProblemKind::kControlFlow;
  if (absl::IsUnimplemented(status) && !control_flow && !HasMeaning(node, context.opsets))
    kind = ProblemKind::kOperator;
  return log_.AddNodeProblem(status, node, index, OpsetOf(node.domain, context.opsets), context.where, kind);
}

absl::Status Importer::CheckOperator(RawNode& node, size_t index, const Context& context) {
  if (node.domain == "hone" && !context.is_own) {  // passes rely on the attributes of their own operators
    return absl::UnimplementedError(Describe(node, index) +
                                    ": domain 'hone' is internal to Hone; use operators of ONNX instead");
  }
  if (!HasMeaning(node, context.opsets)) {
    const std::string_view advice = AdviceOnOperator(node.domain, node.op);
    return absl::UnimplementedError(fmt::format("node '{}' ({}{}{}): the operator is not supported; {}",
                                                NameOf(node, index), node.domain, node.domain.empty() ? "" : ".",
                                                node.op, advice.empty() ? "--operators FILE can define it" : advice));
  }
  const int64_t opset = OpsetOf(node.domain, context.opsets);
  std::vector<std::string> warnings;
  const decompose::Row* const row = FindDecomposition(node, context.opsets);
  const bool from_elsewhere = row != nullptr && row->onnx_since != decompose::kNeverInOnnx;  // ONNX's is another one
  const absl::Status form = from_elsewhere ? absl::OkStatus() : CheckNodeForm(node, opset, warnings);
  if (!context.opsets.contains(node.domain)) {
    warnings.push_back(fmt::format("the model does not state its version of domain '{}'; {} is taken",
                                   node.domain.empty() ? "ai.onnx" : node.domain, opset));
  }
  for (const std::string& warning : warnings) log_.WarnOfNode(Describe(node, index), warning);
  return Annotate(form, Describe(node, index));
}

void Importer::CheckBodies(const RawNode& node, size_t index, const Context& context) {
  if (context.tentative || context.depth > kNestingDepthMax) return;
  Context inner = context;
  inner.where += Describe(node, index) + ": ";
  ++inner.depth;
  for (const auto& [name, attribute] : node.attributes) {
    const auto* body = std::get_if<std::shared_ptr<const RawGraph>>(&attribute.value);
    if (body == nullptr || *body == nullptr) continue;
    for (size_t i = 0; i < (*body)->nodes.size(); ++i) CheckInBody((*body)->nodes[i], i, inner);
  }
}

void Importer::CheckInBody(RawNode node, size_t index, const Context& context) {
  if (FindFunction(node) != nullptr || FindExpressions(node) != nullptr) return;
  if (node.domain.empty() && node.op == "Constant") return;
  if (IsRawControlFlow(node)) return CheckBodies(node, index, context);
  const bool refers = std::ranges::any_of(node.attributes, [](const auto& a) { return !a.second.reference.empty(); });
  const absl::Status status = refers ? absl::OkStatus() : CheckOperator(node, index, context);
  AddNodeProblem(status, node, index, context).IgnoreError();
}

absl::StatusOr<std::vector<ValueId>> Importer::Inline(const RawNode& call, size_t index, const RawFunction& function,
                                                      const Context& context, Scope& outer) {
  HONE_RETURN_IF_ERROR(CheckOpset(function.opsets));
  Scope scope;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    HONE_RETURN_IF_ERROR(
        Define(function.inputs[i], i < call.inputs.size() ? outer.Find(call.inputs[i]) : kAbsent, scope));
  }
  std::map<std::string, RawAttribute> attributes = call.attributes;
  attributes.insert(function.defaults.begin(), function.defaults.end());
  const Context inner{function.opsets.empty() ? context.opsets : function.opsets,
                      &attributes,
                      context.depth + 1,
                      &function,
                      &context,
                      context.where + "in function " + call.op + ": ",
                      context.tentative,
                      context.path + NameOf(call, index) + "/",
                      context.is_written};
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> wanted, OutputsRead(call, function.outputs));
  HONE_RETURN_IF_ERROR(ImportNodes(function.nodes, wanted, inner, scope));
  return FindOutputs(wanted, scope);
}

absl::StatusOr<std::vector<ValueId>> Importer::ImportConstant(const RawNode& node) {
  HONE_ASSIGN_OR_RETURN(Constant constant, ConstantOf(node));
  const ValueId id = AddNamed(node.outputs[0], std::move(constant.type), std::move(constant.data));
  const SmallType* const small = node.attributes.begin()->second.small;
  if (small != nullptr) at_->small[id] = small;
  return std::vector<ValueId>{id};
}

absl::StatusOr<std::vector<ValueId>> Importer::ImportOperator(RawNode& raw, size_t index, const Context& context,
                                                              const Scope& scope) {
  HONE_RETURN_IF_ERROR(CheckOperator(raw, index, context));
  Node node{.name = NameOf(raw, index),
            .op = raw.op,
            .domain = raw.domain,
            .opset = static_cast<int>(OpsetOf(raw.domain, context.opsets)),
            .inputs = {},
            .outputs = {},
            .attributes = {}};
  absl::StatusOr<std::vector<ValueId>> inputs = FindAll(raw.inputs, scope);
  if (!inputs.ok()) return AddContext(inputs.status(), Describe(raw, index));
  node.inputs = *std::move(inputs);
  std::vector<std::string> names;
  for (const std::string& name : raw.outputs) {
    node.outputs.push_back(name.empty() ? kAbsent : kNewValue);
    names.push_back(name.empty() ? "" : UniqueName(name));
  }
  for (const auto& [name, attribute] : raw.attributes) {
    if (attribute.small != nullptr) {
      return Named(SmallTypeError(fmt::format("attribute '{}'", name), *attribute.small), raw, index);
    }
  }
  node.attributes = AttributesOf(raw);
  if (const SmallType* made = SmallTypeMadeBy(*at_, node)) {
    const absl::StatusOr<ValueId> value = AddMakerOfSmall(*at_, *made, node);
    if (!value.ok()) return Named(value.status(), raw, index);
    return std::vector<ValueId>{*value};
  }
  const absl::StatusOr<const SmallType*> small = SmallTypeOfResults(node);
  if (!small.ok()) return Named(small.status(), raw, index);
  const decompose::NodeGraphs graphs = GraphsOf(raw, index, context, scope);
  if (const decompose::Row* row = FindDecomposition(raw, context.opsets)) {
    absl::StatusOr<std::vector<ValueId>> written = Named(Decompose(*row, node, names, graphs), raw, index);
    if (!written.ok() || !written->empty()) return written;
  }
  if (const opsets::Rewrite* rewrite = raw.domain.empty() ? opsets::FindRewrite(raw.op, node.opset) : nullptr) {
    const decompose::Row old_form{.name = rewrite->name, .rule = rewrite->rule, .inputs_min = rewrite->inputs_min};
    absl::StatusOr<std::vector<ValueId>> written = Named(Decompose(old_form, node, names, graphs), raw, index);
    if (!written.ok() || !written->empty()) return written;
  }
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, at_->AddOperator(node, names, needed_steps_left_));
  HONE_RETURN_IF_ERROR(at_->Fold());
  for (const ValueId output : outputs) {
    if (*small != nullptr && output != kAbsent) at_->small[output] = *small;
  }
  return outputs;
}

absl::StatusOr<const SmallType*> Importer::SmallTypeOfResults(const Node& node) const {
  const SmallType* type = nullptr;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const auto small = at_->small.find(node.inputs[i]);
    if (small == at_->small.end()) continue;
    if (!MayReadSmall(node, i)) return SmallTypeError(fmt::format("input {}", i), *small->second);
    if (KeepsSmall(node)) type = small->second;
  }
  return type;
}

absl::StatusOr<std::vector<ValueId>> Importer::ImportExpression(const RawNode& raw,
                                                                const std::vector<OperatorExpression>& expressions,
                                                                size_t index, const Scope& scope) {
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> inputs, FindAll(raw.inputs, scope));
  HONE_RETURN_IF_ERROR(CheckNotSmall(inputs, "an input"));
  HONE_ASSIGN_OR_RETURN(Node node,
                        ExpressionNode(at_->graph, inputs, AttributesOf(raw), raw.outputs.size(), expressions));
  node.name = NameOf(raw, index);
  std::vector<std::string> names;
  for (const std::string& name : raw.outputs) {
    node.outputs.push_back(name.empty() ? kAbsent : kNewValue);
    names.push_back(name.empty() ? "" : UniqueName(name));
  }
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, at_->AddOperator(node, names, needed_steps_left_));
  HONE_RETURN_IF_ERROR(at_->Fold());
  return outputs;
}

absl::StatusOr<std::vector<ValueId>> Importer::Decompose(const decompose::Row& row, const Node& node,
                                                         const std::vector<std::string>& names,
                                                         const decompose::NodeGraphs& graphs) {
  const size_t values = at_->graph.values.size();
  const auto add = [&](Node part) -> absl::StatusOr<std::vector<ValueId>> {
    HONE_RETURN_IF_ERROR(Count(1));
    std::vector<std::string> part_names;
    for (size_t i = 0; i < part.outputs.size(); ++i) part_names.push_back(UniqueName(part.name));
    HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, at_->AddOperator(part, part_names, needed_steps_left_));
    HONE_RETURN_IF_ERROR(at_->Fold());
    return outputs;
  };
  const auto compute = [&](ValueId value) { return at_->FoldValue(value, needed_steps_left_).status(); };
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs,
                        decompose::Decompose(row, node, {at_->graph, add, compute, NewNames(), graphs}));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] != kAbsent && static_cast<size_t>(outputs[i]) >= values)
      at_->graph.values[outputs[i]].name = names[i];
  }
  return outputs;
}

}  // namespace hone::graph
