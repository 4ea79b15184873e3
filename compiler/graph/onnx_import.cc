// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/onnx_import.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/graph/bind_inputs.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/import_log.h"
#include "compiler/graph/import_scope.h"
#include "compiler/graph/node_form.h"
#include "compiler/graph/node_order.h"
#include "compiler/graph/onnx_reader.h"
#include "compiler/graph/op.h"
#include "compiler/graph/opsets/table.h"
#include "compiler/graph/size_elements.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

constexpr int64_t kOpsetMin = 1, kOpsetMax = 28;
constexpr int kNestingDepthMax = 64;  // of functions within functions and branches within branches
constexpr size_t kImportedNodesMax =
    1'000'000;                             // nodes of a function count once per call, so nested calls multiply them
constexpr int64_t kIrWithDefaultsMin = 4;  // before, ONNX required every initializer to be listed as an input
constexpr int64_t kFoldStepsMax =
    1 << 16;  // interpreter steps per node; enough for shape arithmetic, larger constants are left to the passes
// Interpreter steps for large constants whose values an operator needs at import: per node (as in
// passes/constant_fold.cc) and for all nodes.
constexpr int64_t kNeededFoldStepsMax = int64_t{1} << 25, kNeededFoldStepsTotalMax = int64_t{1} << 27;

class Importer {
 public:
  explicit Importer(const RawModel& model) : model_(model) {}

  // Returns the graph, or RefusalOf all problems. report() is set in both cases.
  absl::StatusOr<Graph> Run(const ImportOptions& options) {
    const absl::Status imported = ImportModel(options);
    log_.AddProblem(imported);
    report_ = log_.TakeReport();
    report_.nodes = static_cast<int64_t>(imported_);
    if (!report_.problems.empty()) return RefusalOf(report_.problems);
    if (options.warn) {
      for (const std::string& text : report_.warnings) options.warn(text);
    }
    Tidy(graph_);
    return std::move(graph_);
  }

  const ImportReport& report() const { return report_; }

 private:
  absl::Status ImportModel(const ImportOptions& options) {
    const absl::Status opset = CheckOpset(model_.opsets);
    log_.AddProblem(opset, ProblemKind::kOpset);
    Scope scope;
    std::set<std::string> bound;  // inputs with a caller-given value; it takes precedence over a default
    for (const RawInput& input : model_.graph.inputs) {
      if (options.bound_inputs.contains(input.name) || options.bound_texts.contains(input.name)) {
        bound.insert(input.name);
      }
    }
    const std::set<std::string> defaulted = DefaultedInputs(options, bound);
    bound.insert(defaulted.begin(), defaulted.end());
    HONE_RETURN_IF_ERROR(AddInitializers(model_.graph, scope, bound));
    HONE_RETURN_IF_ERROR(AddInputs(options, defaulted, scope));
    if (!opset.ok()) MarkReported(scope);  // the meaning of the nodes is unknown
    HONE_RETURN_IF_ERROR(ImportNodes(model_.graph.nodes, model_.graph.outputs, {model_.opsets}, scope));
    std::set<std::string> seen;
    for (const std::string& name : model_.graph.outputs) {
      log_.AddProblem(AddOutput(name, scope, seen));
    }
    for (const RawInput& declared : model_.graph.declared) {
      const auto value = scope.values.find(declared.name);
      const bool known = value != scope.values.end() && value->second.ok() && *value->second != kAbsent;
      if (known) log_.CompareDeclared(declared, graph_.values[*value->second].type);
    }
    log_.WarnOfDefaults(graph_);
    return absl::OkStatus();
  }

  absl::Status AddOutput(const std::string& name, const Scope& scope, std::set<std::string>& seen) {
    HONE_ASSIGN_OR_RETURN(const ValueId id, scope.Find(name));
    if (id == kAbsent) return absl::InvalidArgumentError(fmt::format("output '{}' is not defined", name));
    if (const auto small = small_.find(id); small != small_.end()) {
      return SmallTypeError(fmt::format("output '{}'", name), *small->second);
    }
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(
          fmt::format("the model lists output '{}' twice; remove one entry, or give it a second name with an "
                      "Identity node",
                      name));
    }
    graph_.outputs.push_back(id);
    graph_.output_names.push_back(name);
    return absl::OkStatus();
  }

  static void MarkReported(Scope& scope) {
    for (auto& [name, value] : scope.values) value = Reported();
  }

  static absl::Status CheckOpset(const std::map<std::string, int64_t>& opsets) {
    auto it = opsets.find("");
    if (it == opsets.end()) return absl::OkStatus();
    if (it->second >= kOpsetMin && it->second <= kOpsetMax) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("the model uses opset {}; supported are {} to {}: convert the model",
                                                  it->second, kOpsetMin, kOpsetMax));
  }

  // Returns a name that is unique in the graph. Values in inlined bodies may have the names of others.
  std::string UniqueName(const std::string& name) {
    const auto [known, added] = last_numbers_.emplace(name, 0);
    if (added) return name;
    std::string unique;
    do {
      unique = fmt::format("{}.{}", name, ++known->second);
    } while (!last_numbers_.emplace(unique, 0).second);
    return unique;
  }

  // Counts imported nodes against the limit, including those that leave nothing in the graph (constants, calls, folded
  // nodes), because they take time as well.
  absl::Status Count(size_t nodes) {
    imported_ += nodes;
    if (imported_ <= kImportedNodesMax) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("the model has more than {} nodes and constants, those of functions and branches counted once per "
                    "use; export a smaller model",
                    kImportedNodesMax));
  }

  absl::Status Define(const std::string& name, absl::StatusOr<ValueId> id, Scope& scope) {
    if (name.empty() || !scope.values.emplace(name, std::move(id)).second) {
      return absl::InvalidArgumentError(fmt::format("value '{}' is defined twice or has no name", name));
    }
    return absl::OkStatus();
  }

  ValueId AddNamed(const std::string& name, TensorType type, TensorData data) {
    const ValueId id = AddValue(graph_, name, std::move(type), std::move(data));
    graph_.values[id].name = UniqueName(name);
    return id;
  }

  // Returns true if the scope already has this tensor, under its name and with the same bytes.
  bool Repeats(const RawTensor& tensor, const Scope& scope) const {
    const auto known = scope.values.find(tensor.name);
    if (known == scope.values.end() || !known->second.ok() || !tensor.constant.ok()) return false;
    const Value& value = graph_.values[*known->second];
    const TensorData& data = tensor.constant->data;
    return value.type == tensor.constant->type && value.data != nullptr && data != nullptr && *value.data == *data;
  }

  absl::Status AddInitializers(const RawGraph& graph, Scope& scope, const std::set<std::string>& replaced = {}) {
    HONE_RETURN_IF_ERROR(Count(graph.initializers.size()));
    for (const RawTensor& tensor : graph.initializers) {
      if (replaced.contains(tensor.name) || Repeats(tensor, scope)) continue;
      absl::StatusOr<ValueId> id = kAbsent;
      if (tensor.constant.ok()) {
        id = AddNamed(tensor.name, tensor.constant->type, tensor.constant->data);
        if (tensor.later.read) late_[*id] = tensor.later.read;
        log_.AddDataProblem(tensor);
        if (tensor.small != nullptr) small_[*id] = tensor.small;
      } else {
        id = tensor.constant.status();
      }
      HONE_RETURN_IF_ERROR(Define(tensor.name, std::move(id), scope));
    }
    return absl::OkStatus();
  }

  // The inputs that need not be set at run time: those with an initializer of their name, which is their default, and
  // without a bound value.
  std::set<std::string> DefaultedInputs(const ImportOptions& options, const std::set<std::string>& bound) const {
    std::set<std::string> names;
    if (options.defaults_are_constants || model_.ir_version < kIrWithDefaultsMin) return names;
    std::set<std::string> initializers;
    for (const RawTensor& tensor : model_.graph.initializers) {
      if (tensor.constant.ok()) initializers.insert(tensor.name);
    }
    for (const RawInput& input : model_.graph.inputs) {
      if (initializers.contains(input.name) && !bound.contains(input.name)) names.insert(input.name);
    }
    return names;
  }

  absl::Status AddInputs(const ImportOptions& options, const std::set<std::string>& defaulted, Scope& scope) {
    std::vector<RawInput> inputs;  // without those that are constants
    for (const RawInput& input : model_.graph.inputs) {
      if (!scope.values.contains(input.name)) inputs.push_back(input);
    }
    HONE_ASSIGN_OR_RETURN(const DimRanges symbols, BindSymbols(inputs, options));
    for (const RawInput& input : inputs) {
      absl::StatusOr<ValueId> id =
          defaulted.contains(input.name) ? AddDefaulted(input) : AddInput(input, symbols, options);
      if (!id.ok()) id = log_.AddInputProblem(id.status(), input, symbols);
      HONE_RETURN_IF_ERROR(Define(input.name, std::move(id), scope));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ValueId> AddInput(const RawInput& input, const DimRanges& symbols, const ImportOptions& options) {
    HONE_ASSIGN_OR_RETURN(TensorType type, BindInputType(input, symbols, options));
    DeclareSizes(graph_, type.shape);
    HONE_ASSIGN_OR_RETURN(TensorData value, BindInputValue(input, type, options));
    const bool is_input = value == nullptr;
    const ValueId id = AddNamed(input.name, std::move(type), std::move(value));
    if (is_input) graph_.inputs.push_back(id);
    return id;
  }

  // An input whose default decides a shape becomes a constant when that shape is needed; see FoldValue.
  absl::StatusOr<ValueId> AddDefaulted(const RawInput& input) {
    const auto tensor = std::ranges::find(model_.graph.initializers, input.name, &RawTensor::name);
    const ValueId id = AddNamed(input.name, tensor->constant->type, nullptr);
    const TensorData data = tensor->constant->data;
    graph_.inputs.push_back(id);
    graph_.defaults[id] = data;
    late_[id] = tensor->later.read ? tensor->later.read : DeferredRead([data] { return data; });
    return id;
  }

  // Imports those nodes on which `outputs` depend. Unused nodes may be invalid. A value that only branches read is an
  // error only if a branch that is taken reads it.
  absl::Status ImportNodes(const std::vector<RawNode>& nodes, const std::vector<std::string>& outputs,
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

  // ImportNodes, for nodes that define each value once.
  absl::Status ImportUnique(const std::vector<RawNode>& nodes, const std::vector<std::string>& outputs,
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

  absl::StatusOr<std::vector<ValueId>> ImportNode(const RawNode& raw, size_t index, const Context& context,
                                                  Scope& scope) {
    if (raw.domain.empty() && (raw.op == "Loop" || raw.op == "Scan")) {
      CheckBodies(raw, index, context);
      return absl::UnimplementedError(Describe(raw, index) +
                                      ": loops are not supported; export the model without them");
    }
    absl::StatusOr<RawNode> node = BindAttributes(raw, context);
    if (!node.ok()) return Annotate(node.status(), Describe(raw, index));
    if (auto function = model_.functions.find({node->domain, node->op, node->overload});
        function != model_.functions.end()) {
      if (context.IsInside(function->second)) {
        return absl::InvalidArgumentError(
            fmt::format("{}: the function calls itself; export the model without recursion", Describe(raw, index)));
      }
      absl::StatusOr<std::vector<ValueId>> outputs = Inline(*node, function->second, context, scope);
      return outputs.ok() ? outputs : AddContext(outputs.status(), "in function " + node->op);
    }
    if (node->domain.empty() && node->op == "Constant") return Named(ImportConstant(*node), raw, index);
    if (node->domain.empty() && node->op == "If") {
      absl::StatusOr<std::vector<ValueId>> outputs = ImportIf(*node, index, context, scope);
      if (!outputs.ok() && !took_branch_) CheckBodies(raw, index, context);
      return Named(std::move(outputs), raw, index);
    }
    return ImportOperator(*node, index, context, scope);
  }

  static absl::StatusOr<std::vector<ValueId>> Named(absl::StatusOr<std::vector<ValueId>> result, const RawNode& node,
                                                    size_t index) {
    return result.ok() ? std::move(result) : AddContext(result.status(), Describe(node, index));
  }

  // The row of the table of decompositions that replaces the node; nullptr if there is none.
  static const decompose::Row* FindDecomposition(const RawNode& node, const Context& context) {
    const auto onnx_opset = context.opsets.find("");
    return decompose::FindRow(node.domain, node.op, onnx_opset == context.opsets.end() ? 0 : onnx_opset->second);
  }

  // Whether operator functions, a decomposition or the form of another opset define the node's operator.
  static bool HasMeaning(const RawNode& node, const Context& context) {
    if (FindOp(node.domain, node.op) != nullptr || FindDecomposition(node, context) != nullptr) return true;
    return node.domain.empty() && opsets::FindRewrite(node.op, OpsetOf(node.domain, context)) != nullptr;
  }

  // The opset version of a domain. One that the file does not import has version 1, and ONNX's own the newest, as in
  // ONNX Runtime.
  static int64_t OpsetOf(const std::string& domain, const Context& context) {
    const auto opset = context.opsets.find(domain);
    return opset != context.opsets.end() ? opset->second : domain.empty() ? kOpsetMax : 1;
  }

  // Returns the status for the values of a node that failed.
  absl::Status AddNodeProblem(const absl::Status& status, const RawNode& node, size_t index, const Context& context) {
    const bool control_flow = node.domain.empty() && (node.op == "Loop" || node.op == "Scan" || node.op == "If");
    std::optional<ProblemKind> kind;
    if (absl::IsUnimplemented(status) && control_flow) kind = ProblemKind::kControlFlow;
    if (absl::IsUnimplemented(status) && !control_flow && !HasMeaning(node, context)) kind = ProblemKind::kOperator;
    return log_.AddNodeProblem(status, node, index, OpsetOf(node.domain, context), context.where, kind);
  }

  // Checks what needs no types: that Hone has the operator, and the node's form. Converts attributes.
  absl::Status CheckOperator(RawNode& node, size_t index, const Context& context) {
    if (node.domain == "hone") {  // passes rely on the attributes of their own operators
      return absl::UnimplementedError(Describe(node, index) +
                                      ": domain 'hone' is internal to Hone; use operators of ONNX instead");
    }
    if (!HasMeaning(node, context)) {
      return absl::UnimplementedError(fmt::format("node '{}' ({}{}{}): the operator is not supported",
                                                  NameOf(node, index), node.domain, node.domain.empty() ? "" : ".",
                                                  node.op));
    }
    const int64_t opset = OpsetOf(node.domain, context);
    std::vector<std::string> warnings;
    const bool from_elsewhere = FindDecomposition(node, context) != nullptr;  // ONNX's signature is not its own
    const absl::Status form = from_elsewhere ? absl::OkStatus() : CheckNodeForm(node, opset, warnings);
    if (!context.opsets.contains(node.domain)) {
      warnings.push_back(fmt::format("the model does not state its version of domain '{}'; {} is taken",
                                     node.domain.empty() ? "ai.onnx" : node.domain, opset));
    }
    for (const std::string& warning : warnings) log_.WarnOfNode(Describe(node, index), warning);
    return Annotate(form, Describe(node, index));
  }

  // Reports what can be said of the bodies of a node that is not imported itself.
  void CheckBodies(const RawNode& node, size_t index, const Context& context) {
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

  void CheckInBody(RawNode node, size_t index, const Context& context) {
    if (model_.functions.contains({node.domain, node.op, node.overload})) return;
    if (node.domain.empty() && node.op == "Constant") return;
    const bool loop = node.domain.empty() && (node.op == "Loop" || node.op == "Scan");
    if (loop || (node.domain.empty() && node.op == "If")) return CheckBodies(node, index, context);
    const bool refers = std::ranges::any_of(node.attributes, [](const auto& a) { return !a.second.reference.empty(); });
    const absl::Status status = refers ? absl::OkStatus() : CheckOperator(node, index, context);
    AddNodeProblem(status, node, index, context).IgnoreError();
  }

  // Returns the node with references to the calling node's attributes replaced by their values. Only the taken branch
  // of an If has to be readable.
  static absl::StatusOr<RawNode> BindAttributes(RawNode node, const Context& context) {
    const bool branches = node.domain.empty() && node.op == "If";
    for (auto it = node.attributes.begin(); it != node.attributes.end();) {
      const std::string reference = it->second.reference;
      if (reference.empty()) {
        const auto* unread = std::get_if<absl::Status>(&it->second.value);
        if (unread != nullptr && !branches) return *unread;
        ++it;
        continue;
      }
      if (context.call_attributes == nullptr) {
        return absl::InvalidArgumentError(
            fmt::format("attribute '{}' refers to '{}' outside a function", it->first, reference));
      }
      auto value = context.call_attributes->find(reference);
      if (value == context.call_attributes->end()) {
        it = node.attributes.erase(it);
        continue;
      }
      it->second = value->second;
      it->second.reference.clear();  // visit it again, as an attribute of the node itself
    }
    return node;
  }

  absl::StatusOr<std::vector<ValueId>> Inline(const RawNode& call, const RawFunction& function, const Context& context,
                                              Scope& outer) {
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
                        context.tentative};
    HONE_ASSIGN_OR_RETURN(const std::vector<std::string> wanted, OutputsRead(call, function.outputs));
    HONE_RETURN_IF_ERROR(ImportNodes(function.nodes, wanted, inner, scope));
    return FindOutputs(wanted, scope);
  }

  // Returns per output of the node its name in the node's body; "" for an output that nothing reads.
  static absl::StatusOr<std::vector<std::string>> OutputsRead(const RawNode& node,
                                                              const std::vector<std::string>& of_body) {
    std::vector<std::string> names(node.outputs.size());
    for (size_t i = 0; i < names.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (i >= of_body.size()) return absl::InvalidArgumentError("the node has more outputs than its body defines");
      names[i] = of_body[i];
    }
    return names;
  }

  // Returns the values of these names; kAbsent for "".
  static absl::StatusOr<std::vector<ValueId>> FindAll(const std::vector<std::string>& names, const Scope& scope) {
    std::vector<ValueId> values;
    for (const std::string& name : names) {
      HONE_ASSIGN_OR_RETURN(const ValueId id, name.empty() ? kAbsent : scope.Find(name));
      values.push_back(id);
    }
    return values;
  }

  static absl::StatusOr<std::vector<ValueId>> FindOutputs(const std::vector<std::string>& names, const Scope& scope) {
    HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, FindAll(names, scope));
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string& name = names[i];
      if (!name.empty() && outputs[i] == kAbsent) {
        return absl::InvalidArgumentError(fmt::format("its body does not define output '{}'", name));
      }
    }
    return outputs;
  }

  // Sets took_branch_ if the condition is known.
  absl::StatusOr<std::vector<ValueId>> ImportIf(const RawNode& node, size_t index, const Context& context,
                                                Scope& outer) {
    took_branch_ = false;
    HONE_ASSIGN_OR_RETURN(const ValueId condition, node.inputs.empty() ? kAbsent : outer.Find(node.inputs[0]));
    if (condition == kAbsent) return absl::InvalidArgumentError("the condition is missing");
    HONE_RETURN_IF_ERROR(FoldValue(condition).status());
    const Value& value = graph_.values[condition];
    if (value.data == nullptr) {
      return absl::UnimplementedError(
          "the condition is not known at compile time, which is not supported; if it is a model input, fix its value "
          "with --bind NAME=true or NAME=false");
    }
    if (value.type.dtype != ir::DType::kBool || value.data->size() != 1) {
      return absl::InvalidArgumentError("the condition must be one bool");
    }
    const std::string branch = value.data->front() != std::byte{0} ? "then_branch" : "else_branch";
    auto it = node.attributes.find(branch);
    if (it != node.attributes.end()) {
      if (const auto* unread = std::get_if<absl::Status>(&it->second.value)) return *unread;
    }
    const auto* body =
        it == node.attributes.end() ? nullptr : std::get_if<std::shared_ptr<const RawGraph>>(&it->second.value);
    if (body == nullptr || *body == nullptr) return absl::InvalidArgumentError(branch + " is missing");
    for (const RawInput& input : (*body)->inputs) {
      HONE_RETURN_IF_ERROR(Annotate(input.type_error, fmt::format("input '{}'", input.name)));
    }
    Scope scope{.outer = &outer, .values = {}};
    HONE_RETURN_IF_ERROR(AddInitializers(**body, scope));
    const Context inner{context.opsets,    context.call_attributes,
                        context.depth + 1, nullptr,
                        &context,          context.where + Describe(node, index) + ": ",
                        context.tentative};
    HONE_ASSIGN_OR_RETURN(const std::vector<std::string> wanted, OutputsRead(node, (*body)->outputs));
    const absl::Status imported = ImportNodes((*body)->nodes, wanted, inner, scope);
    took_branch_ = true;
    HONE_RETURN_IF_ERROR(imported);
    return FindOutputs(wanted, scope);
  }

  absl::StatusOr<std::vector<ValueId>> ImportConstant(const RawNode& node) {
    if (node.attributes.size() != 1 || node.outputs.size() != 1) {
      return absl::InvalidArgumentError("a Constant must have exactly one attribute and one output");
    }
    const auto& [name, attribute] = *node.attributes.begin();
    if (const auto* tensor = std::get_if<Constant>(&attribute.value); tensor != nullptr && name == "value") {
      if (tensor->data == nullptr) return absl::InvalidArgumentError("the value is missing");
      const ValueId id = AddNamed(node.outputs[0], tensor->type, tensor->data);
      if (attribute.small != nullptr) small_[id] = attribute.small;
      return std::vector<ValueId>{id};
    }
    if (const auto* f = std::get_if<double>(&attribute.value); f != nullptr && name == "value_float") {
      return AddScalars<float>(node, ir::DType::kFloat32, {}, {static_cast<float>(*f)});
    }
    if (const auto* i = std::get_if<int64_t>(&attribute.value); i != nullptr && name == "value_int") {
      return AddScalars<int64_t>(node, ir::DType::kInt64, {}, {*i});
    }
    if (const auto* fs = std::get_if<std::vector<double>>(&attribute.value); fs != nullptr && name == "value_floats") {
      return AddScalars<float>(node, ir::DType::kFloat32, {static_cast<int64_t>(fs->size())}, {fs->begin(), fs->end()});
    }
    if (const auto* is = std::get_if<std::vector<int64_t>>(&attribute.value); is != nullptr && name == "value_ints") {
      return AddScalars<int64_t>(node, ir::DType::kInt64, {static_cast<int64_t>(is->size())}, *is);
    }
    return absl::UnimplementedError(fmt::format("constants given as '{}' are not supported", name));
  }

  template <typename T>
  std::vector<ValueId> AddScalars(const RawNode& node, ir::DType dtype, std::vector<int64_t> shape,
                                  const std::vector<T>& values) {
    const ValueId id = AddConstant<T>(graph_, node.outputs[0], dtype, std::move(shape), values);
    graph_.values[id].name = UniqueName(node.outputs[0]);
    return {id};
  }

  absl::StatusOr<std::vector<ValueId>> ImportOperator(RawNode& raw, size_t index, const Context& context,
                                                      const Scope& scope) {
    HONE_RETURN_IF_ERROR(CheckOperator(raw, index, context));
    Node node{.name = NameOf(raw, index),
              .op = raw.op,
              .domain = raw.domain,
              .opset = static_cast<int>(OpsetOf(raw.domain, context)),
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
      std::visit(
          [&]<typename T>(const T& value) {
            if constexpr (std::is_constructible_v<Attribute, T>) node.attributes[name] = value;
          },
          attribute.value);
    }
    const absl::StatusOr<const SmallType*> small = SmallTypeOfResults(node);
    if (!small.ok()) return Named(small.status(), raw, index);
    if (const decompose::Row* row = FindDecomposition(raw, context)) {
      return Named(Decompose(*row, node, names), raw, index);
    }
    if (const opsets::Rewrite* rewrite = raw.domain.empty() ? opsets::FindRewrite(raw.op, node.opset) : nullptr) {
      const decompose::Row old_form{.name = rewrite->name, .rule = rewrite->rule, .inputs_min = rewrite->inputs_min};
      absl::StatusOr<std::vector<ValueId>> written = Named(Decompose(old_form, node, names), raw, index);
      if (!written.ok() || !written->empty()) return written;
    }
    HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, AddOperator(node, names));
    HONE_RETURN_IF_ERROR(Fold());
    for (const ValueId output : outputs) {
      if (*small != nullptr && output != kAbsent) small_[output] = *small;
    }
    return outputs;
  }

  // The small type that the node's results have, or nullptr. Unimplemented if the operator computes with elements of a
  // small type.
  absl::StatusOr<const SmallType*> SmallTypeOfResults(const Node& node) const {
    const SmallType* type = nullptr;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto small = small_.find(node.inputs[i]);
      if (small == small_.end()) continue;
      if (!MayReadSmall(node, i)) return SmallTypeError(fmt::format("input {}", i), *small->second);
      if (KeepsSmall(node)) type = small->second;
    }
    return type;
  }

  // Writes the operators that the row replaces the node by. A value that they make gets the name of the output.
  absl::StatusOr<std::vector<ValueId>> Decompose(const decompose::Row& row, const Node& node,
                                                 const std::vector<std::string>& names) {
    const size_t values = graph_.values.size();
    const auto add = [&](Node part) -> absl::StatusOr<std::vector<ValueId>> {
      HONE_RETURN_IF_ERROR(Count(1));
      std::vector<std::string> part_names;
      for (size_t i = 0; i < part.outputs.size(); ++i) part_names.push_back(UniqueName(part.name));
      HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, AddOperator(part, part_names));
      HONE_RETURN_IF_ERROR(Fold());
      return outputs;
    };
    const auto compute = [&](ValueId value) { return FoldValue(value).status(); };
    HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, decompose::Decompose(row, node, {graph_, add, compute}));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] != kAbsent && static_cast<size_t>(outputs[i]) >= values) graph_.values[outputs[i]].name = names[i];
    }
    return outputs;
  }

  // Adds the node by AddNode. If that fails, an input that is a large, not yet computed constant may be the reason: the
  // inputs are then computed one by one, from the last, because shapes follow data, until the node can be added.
  absl::StatusOr<std::vector<ValueId>> AddOperator(const Node& node, const std::vector<std::string>& names) {
    const size_t values = graph_.values.size();
    absl::StatusOr<std::vector<ValueId>> outputs = AddNode(graph_, node, names);
    absl::Status too_large;
    for (auto id = node.inputs.rbegin(); !outputs.ok() && id != node.inputs.rend(); ++id) {
      graph_.values.resize(values);
      const absl::StatusOr<bool> folded = FoldValue(*id);
      too_large.Update(folded.status());
      if (folded.ok() && *folded) outputs = AddNode(graph_, node, names);
    }
    if (outputs.ok()) return outputs;
    graph_.values.resize(values);
    if (too_large.ok()) return outputs;
    return absl::Status(outputs.status().code(), fmt::format("{} ({})", std::string(outputs.status().message()),
                                                             std::string(too_large.message())));
  }

  // Computes the node's outputs and stores their data; ResourceExhausted if it takes more steps than the limit.
  absl::Status Compute(const Node& node, int64_t max_steps, int64_t* steps = nullptr) {
    HONE_ASSIGN_OR_RETURN(const std::vector<Constant> values, Evaluate(graph_, node, max_steps, steps));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kAbsent) graph_.values[node.outputs[i]].data = values[i].data;
    }
    return absl::OkStatus();
  }

  // Computes the last node, if its result is known at compile time, and removes it. If the computation takes too many
  // steps, or the node depends on such values, its outputs are recorded in unfolded_.
  absl::Status Fold() {
    const Node& added = graph_.nodes.back();
    HONE_ASSIGN_OR_RETURN(const bool known, IsKnown(graph_, added));
    if (known) {
      const absl::Status computed = Compute(added, kFoldStepsMax);
      if (computed.ok()) graph_.nodes.pop_back();
      if (!absl::IsResourceExhausted(computed)) return computed;
    }
    const auto constant = [&](ValueId id) {
      return id == kAbsent || graph_.values[id].data != nullptr || unfolded_.contains(id) || late_.contains(id);
    };
    if (!known) {
      HONE_ASSIGN_OR_RETURN(const bool folded, FoldElements(graph_, added));
      if (folded) {
        graph_.nodes.pop_back();
        return absl::OkStatus();
      }
    }
    if (!known && !std::all_of(added.inputs.begin(), added.inputs.end(), constant)) return absl::OkStatus();
    unfolded_.insert(added.outputs.begin(), added.outputs.end());
    unfolded_.erase(kAbsent);
    return absl::OkStatus();
  }

  // Sets the data of those of `values` that are in late_. An input with a default becomes a constant thereby.
  absl::Status ReadLate(const std::set<ValueId>& values) {
    for (const ValueId id : values) {
      const auto late = late_.find(id);
      if (late == late_.end()) continue;
      HONE_ASSIGN_OR_RETURN(graph_.values[id].data, late->second());
      late_.erase(late);
      if (graph_.defaults.erase(id) > 0) std::erase(graph_.inputs, id);
    }
    return absl::OkStatus();
  }

  // Computes the value, and those it depends on, if it is in unfolded_ or late_. Returns true if it was.
  absl::StatusOr<bool> FoldValue(ValueId id) {
    if (!unfolded_.contains(id) && !late_.contains(id)) return false;
    std::set<ValueId> wanted = {id};
    std::vector<bool> folds(graph_.nodes.size(), false);
    for (size_t i = folds.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      folds[i] = std::any_of(node.outputs.begin(), node.outputs.end(),
                             [&](ValueId made) { return unfolded_.contains(made) && wanted.contains(made); });
      if (folds[i]) wanted.insert(node.inputs.begin(), node.inputs.end());
    }
    HONE_RETURN_IF_ERROR(ReadLate(wanted));
    absl::Status status;
    size_t next = 0;
    std::erase_if(graph_.nodes, [&](const Node& node) {
      if (!folds[next++] || !status.ok()) return false;
      int64_t steps = 0;
      status = Annotate(Compute(node, std::min(kNeededFoldStepsMax, needed_steps_left_), &steps),
                        fmt::format("node '{}' ({})", node.name, node.op));
      if (status.ok()) needed_steps_left_ -= steps;
      return status.ok();
    });
    std::erase_if(unfolded_, [&](ValueId made) { return graph_.values[made].data != nullptr; });
    HONE_RETURN_IF_ERROR(status);
    return true;
  }

  const RawModel& model_;
  Graph graph_;
  std::map<std::string, int64_t> last_numbers_;  // per used name: the last number that UniqueName appended to it
  size_t imported_ = 0;
  std::set<ValueId> unfolded_;                 // constants that Fold has not computed; see there
  std::map<ValueId, const SmallType*> small_;  // constants unpacked from a small type, and what was moved from them
  std::map<ValueId, DeferredRead> late_;       // values that become constants only if needed: defaults, and unread data
  bool took_branch_ = false;                   // whether the last ImportIf knew its condition
  ImportLog log_;
  ImportReport report_;                                   // set when Run ends
  int64_t needed_steps_left_ = kNeededFoldStepsTotalMax;  // budget of FoldValue
};

}  // namespace

absl::StatusOr<Graph> ImportOnnxBytes(std::string_view bytes, const std::string& folder, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(RawModel model, ReadOnnxBytes(bytes, folder, {.may_read = options.may_read}));
  return Importer(model).Run(options);
}

absl::StatusOr<Graph> ImportOnnx(const std::string& path, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(RawModel model, ReadOnnxFile(path, {.may_read = options.may_read}));
  absl::StatusOr<Graph> graph = Importer(model).Run(options);
  return graph.ok() ? std::move(graph) : Annotate(graph.status(), path);
}

TriedImport TryImportOnnx(const RawModel& model, const ImportOptions& options) {
  ImportOptions quiet = options;
  quiet.warn = nullptr;  // the report has the warnings
  Importer importer(model);
  const absl::StatusOr<Graph> graph = importer.Run(quiet);
  return {importer.report(), graph.ok() ? LargestLiveBytes(*graph) : 0};
}

}  // namespace hone::graph
