// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/importer.h"

#include <optional>
#include <utility>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/import_ports.h"
#include "compiler/graph/node_order.h"
#include "fmt/format.h"

namespace hone::graph {

absl::StatusOr<Graph> Importer::Run(const ImportOptions& options) {
  operators_ = options.operators;
  loop_steps_ = options.loop_steps;
  const absl::Status imported = ImportModel(options);
  log_.AddProblem(imported);
  report_ = log_.TakeReport();
  report_.nodes = static_cast<int64_t>(imported_);
  if (!report_.problems.empty()) return RefusalOf(report_.problems, !options.fallback);
  if (options.warn) {
    for (const std::string& text : report_.warnings) options.warn(text);
  }
  Tidy(at_->graph);
  return std::move(at_->graph);
}

absl::Status Importer::ImportModel(const ImportOptions& options) {
  options_ = &options;
  at_->proves_sizes = options.proves_sizes;
  const absl::Status opset = CheckOpset(model_.opsets);
  log_.AddProblem(opset, ProblemKind::kOpset);
  Scope scope;
  std::set<std::string> bound;  // inputs with a caller-given value; it takes precedence over a default
  for (const RawInput& input : model_.graph.inputs) {
    if (options.bound_inputs.contains(input.name) || options.bound_texts.contains(input.name)) {
      bound.insert(input.name);
    }
  }
  const std::set<std::string> defaulted = DefaultedInputs(model_, options, bound);
  bound.insert(defaulted.begin(), defaulted.end());
  HONE_RETURN_IF_ERROR(AddInitializers(model_.graph, scope, bound));
  ImportPorts ports(model_.graph, options, *at_, log_, sequences_, NewNames());
  HONE_ASSIGN_OR_RETURN(symbols_, ports.AddInputs(defaulted, scope));
  if (!opset.ok()) MarkReported(scope);  // the meaning of the nodes is unknown
  HONE_RETURN_IF_ERROR(ImportNodes(model_.graph.nodes, model_.graph.outputs, {model_.opsets}, scope));
  ports.AddOutputs(scope);
  for (const RawInput& declared : model_.graph.declared) {
    const auto value = scope.values.find(declared.name);
    const bool known = value != scope.values.end() && value->second.ok() && *value->second >= 0;
    if (known) log_.CompareDeclared(declared, at_->graph.values[*value->second].type);
  }
  log_.WarnOfDefaults(at_->graph);
  return absl::OkStatus();
}

void Importer::MarkReported(Scope& scope) {
  for (auto& [name, value] : scope.values) value = Reported();
}

std::string Importer::UniqueName(const std::string& name) {
  const auto [known, added] = last_numbers_.emplace(name, 0);
  if (added) return name;
  std::string unique;
  do {
    unique = fmt::format("{}.{}", name, ++known->second);
  } while (!last_numbers_.emplace(unique, 0).second);
  return unique;
}

absl::Status Importer::Count(size_t nodes) {
  imported_ += nodes;
  if (imported_ <= kImportedNodesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the model has more than {} nodes and constants, those of functions and branches counted once per "
                  "use; export a smaller model",
                  kImportedNodesMax));
}

ValueId Importer::AddNamed(const std::string& name, TensorType type, TensorData data) {
  const ValueId id = AddValue(at_->graph, name, std::move(type), std::move(data));
  at_->graph.values[id].name = UniqueName(name);
  return id;
}

bool Importer::Repeats(const RawInitializer& tensor, const Scope& scope) const {
  const auto known = scope.values.find(tensor.name);
  if (known == scope.values.end() || !known->second.ok() || !tensor.constant.ok()) return false;
  const Value& value = at_->graph.values[*known->second];
  const TensorData& data = tensor.constant->data;
  return value.type == tensor.constant->type && value.data != nullptr && data != nullptr && *value.data == *data;
}

absl::Status Importer::AddInitializers(const RawGraph& graph, Scope& scope, const std::set<std::string>& replaced) {
  HONE_RETURN_IF_ERROR(Count(graph.initializers.size()));
  for (const RawInitializer& tensor : graph.initializers) {
    if (replaced.contains(tensor.name) || Repeats(tensor, scope)) continue;
    absl::StatusOr<ValueId> id = kAbsent;
    if (tensor.constant.ok()) {
      id = AddNamed(tensor.name, tensor.constant->type, tensor.constant->data);
      if (tensor.later.read) at_->late[*id] = tensor.later.read;
      log_.AddDataProblem(tensor);
      if (tensor.small != nullptr) at_->small[*id] = tensor.small;
    } else {
      id = tensor.constant.status();
    }
    HONE_RETURN_IF_ERROR(Define(tensor.name, std::move(id), scope));
  }
  return absl::OkStatus();
}

absl::Status Importer::ImportNodes(const std::vector<RawNode>& nodes, const std::vector<std::string>& outputs,
                                   const Context& context, Scope& scope) {
  if (context.depth > kNestingDepthMax) {
    return absl::InvalidArgumentError(
        fmt::format("functions or branches are nested more than {} deep; export a flatter model", kNestingDepthMax));
  }
  HONE_RETURN_IF_ERROR(Count(nodes.size()));
  const IsDefined is_defined_here = [&](const std::string& name) { return scope.values.contains(name); };
  HONE_ASSIGN_OR_RETURN(const auto resolved, ResolveDuplicates(nodes, outputs, is_defined_here));
  return ImportUnique(resolved.has_value() ? *resolved : nodes, outputs, context, scope);
}

absl::Status Importer::ImportUnique(const std::vector<RawNode>& nodes, const std::vector<std::string>& outputs,
                                    const Context& context, Scope& scope) {
  std::set<std::string> undefined;
  HONE_ASSIGN_OR_RETURN(std::vector<size_t> order,
                        OrderNodes(nodes, [&](const std::string& name) { return scope.Has(name); }, undefined));
  for (const std::string& name : undefined) {  // an error of the nodes that read it
    scope.values[name] =
        absl::InvalidArgumentError(fmt::format("it reads '{}', which no node, input or initializer defines", name));
  }
  const std::set<std::string> needed = CollectNeeded(nodes, order, outputs, CollectReads);
  const std::set<std::string> surely_needed = CollectNeeded(nodes, order, outputs, CollectInputs);
  for (size_t index : order) {
    RawNode node = nodes[index];
    if (node.outputs.empty()) return absl::InvalidArgumentError(Describe(node, index) + ": the node has no output");
    if (!MakesAny(node, needed)) continue;
    if (context.depth == 0) log_.SetPlace(static_cast<int64_t>(index));
    for (std::string& output : node.outputs) {
      if (!needed.contains(output)) output.clear();
    }
    const bool surely = MakesAny(node, surely_needed);
    absl::StatusOr<std::vector<ValueId>> values =
        surely ? ImportNode(node, index, context, scope) : FindAll(node.inputs, scope);
    if (!surely && values.ok()) {
      Context tentative = context;
      tentative.tentative = true;
      values = ImportNode(node, index, tentative, scope);
    }
    if (!values.ok() && surely) {
      if (context.tentative) return values.status();
      values = AddNodeProblem(values.status(), node, index, context);
      if (imported_ > kImportedNodesMax) return values.status();
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      absl::StatusOr<ValueId> value = kAbsent;
      if (values.ok()) {
        value = (*values)[i];
      } else {
        value = values.status();
      }
      HONE_RETURN_IF_ERROR(Define(node.outputs[i], std::move(value), scope));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::graph
