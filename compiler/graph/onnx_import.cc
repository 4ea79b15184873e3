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
#include "compiler/graph/control_flow.h"
#include "compiler/graph/custom_operators.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/fallback.h"
#include "compiler/graph/foreign_model.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/import_as_loop.h"
#include "compiler/graph/import_constant.h"
#include "compiler/graph/import_control.h"
#include "compiler/graph/import_graph.h"
#include "compiler/graph/import_log.h"
#include "compiler/graph/import_ports.h"
#include "compiler/graph/import_scope.h"
#include "compiler/graph/import_sequence.h"
#include "compiler/graph/import_small.h"
#include "compiler/graph/node_form.h"
#include "compiler/graph/node_order.h"
#include "compiler/graph/onnx_reader.h"
#include "compiler/graph/op.h"
#include "compiler/graph/opsets/table.h"
#include "compiler/graph/size_elements.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

constexpr int kNestingDepthMax = 64;  // of functions within functions and branches within branches
constexpr size_t kImportedNodesMax =
    1'000'000;  // nodes of a function count once per call, so nested calls multiply them
// Interpreter steps for all large constants together whose values an operator needs at import.
constexpr int64_t kNeededFoldStepsTotalMax = int64_t{1} << 27;

class Importer {
 public:
  explicit Importer(const RawModel& model) : model_(model) {}

  // Returns the graph, or RefusalOf all problems. report() is set in both cases.
  absl::StatusOr<Graph> Run(const ImportOptions& options) {
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

  const ImportReport& report() const { return report_; }

 private:
  absl::Status ImportModel(const ImportOptions& options) {
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

  static void MarkReported(Scope& scope) {
    for (auto& [name, value] : scope.values) value = Reported();
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

  ValueId AddNamed(const std::string& name, TensorType type, TensorData data) {
    const ValueId id = AddValue(at_->graph, name, std::move(type), std::move(data));
    at_->graph.values[id].name = UniqueName(name);
    return id;
  }

  // Returns true if the scope already has this tensor, under its name and with the same bytes.
  bool Repeats(const RawInitializer& tensor, const Scope& scope) const {
    const auto known = scope.values.find(tensor.name);
    if (known == scope.values.end() || !known->second.ok() || !tensor.constant.ok()) return false;
    const Value& value = at_->graph.values[*known->second];
    const TensorData& data = tensor.constant->data;
    return value.type == tensor.constant->type && value.data != nullptr && data != nullptr && *value.data == *data;
  }

  absl::Status AddInitializers(const RawGraph& graph, Scope& scope, const std::set<std::string>& replaced = {}) {
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

  absl::StatusOr<std::vector<ValueId>> ImportNode(const RawNode& raw, size_t index, const Context& context,
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
      absl::StatusOr<std::vector<ValueId>> outputs = Inline(*node, *function, context, scope);
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

  // A part that ONNX Runtime computes.
  absl::StatusOr<std::vector<ValueId>> ImportPart(const RawNode& raw, const Scope& scope) {
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

  // The definition of the node's operator by a function: by a file of operators, or else by the model. Null: none.
  const RawFunction* FindFunction(const RawNode& node) const {
    const FunctionKey key(node.domain, node.op, node.overload);
    for (const auto* functions : {operators_ ? &operators_->functions : nullptr, &model_.functions}) {
      if (functions == nullptr) continue;
      if (const auto found = functions->find(key); found != functions->end()) return &found->second;
    }
    return nullptr;
  }

  // The definitions of the node's operator by tensor expressions; null if there are none.
  const std::vector<OperatorExpression>* FindExpressions(const RawNode& node) const {
    if (operators_ == nullptr) return nullptr;
    const auto found = operators_->expressions.find({node.domain, node.op});
    return found == operators_->expressions.end() ? nullptr : &found->second;
  }

  static absl::StatusOr<std::vector<ValueId>> Named(absl::StatusOr<std::vector<ValueId>> result, const RawNode& node,
                                                    size_t index) {
    return result.ok() ? std::move(result) : AddContext(result.status(), Describe(node, index));
  }

  static bool IsRawControlFlow(const RawNode& node) {
    return node.domain.empty() && (node.op == "If" || node.op == "Loop");
  }

  // Returns the status for the values of a node that failed.
  absl::Status AddNodeProblem(const absl::Status& status, const RawNode& node, size_t index, const Context& context) {
    const bool control_flow = IsRawControlFlow(node) || node.op == "Scan";
    std::optional<ProblemKind> kind;
    if (absl::IsUnimplemented(status) && control_flow) kind = ProblemKind::kControlFlow;
    if (absl::IsUnimplemented(status) && !control_flow && !HasMeaning(node, context.opsets))
      kind = ProblemKind::kOperator;
    return log_.AddNodeProblem(status, node, index, OpsetOf(node.domain, context.opsets), context.where, kind);
  }

  // Checks what needs no types: that Hone has the operator, and the node's form. Converts attributes.
  absl::Status CheckOperator(RawNode& node, size_t index, const Context& context) {
    if (node.domain == "hone") {  // passes rely on the attributes of their own operators
      return absl::UnimplementedError(Describe(node, index) +
                                      ": domain 'hone' is internal to Hone; use operators of ONNX instead");
    }
    if (!HasMeaning(node, context.opsets)) {
      return absl::UnimplementedError(
          fmt::format("node '{}' ({}{}{}): the operator is not supported; "
                      "--operators FILE can define it",
                      NameOf(node, index), node.domain, node.domain.empty() ? "" : ".", node.op));
    }
    const int64_t opset = OpsetOf(node.domain, context.opsets);
    std::vector<std::string> warnings;
    const bool from_elsewhere = FindDecomposition(node, context.opsets) != nullptr;  // ONNX's signature is not its own
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
    if (FindFunction(node) != nullptr || FindExpressions(node) != nullptr) return;
    if (node.domain.empty() && node.op == "Constant") return;
    if (IsRawControlFlow(node)) return CheckBodies(node, index, context);
    const bool refers = std::ranges::any_of(node.attributes, [](const auto& a) { return !a.second.reference.empty(); });
    const absl::Status status = refers ? absl::OkStatus() : CheckOperator(node, index, context);
    AddNodeProblem(status, node, index, context).IgnoreError();
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

  // --- Control flow. These set saw_body_ once they import a body, which reports the problems inside it.

  Context InsideOf(const RawNode& node, size_t index, const Context& context) const {
    return {context.opsets,    context.call_attributes,
            context.depth + 1, nullptr,
            &context,          context.where + Describe(node, index) + ": ",
            context.tentative};
  }

  // A branch whose condition is known takes the place of the node.
  absl::StatusOr<std::vector<ValueId>> ImportIf(const RawNode& node, size_t index, const Context& context,
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

  // An If whose condition a run decides.
  absl::StatusOr<std::vector<ValueId>> ImportBranches(const RawNode& node, size_t index, const Context& inner,
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

  using DefineInputs = std::function<absl::Status(Scope& scope)>;  // adds a body's own inputs, and defines their names

  // Imports a graph inside a node as a graph of its own. Values from outside that it reads become captures.
  absl::StatusOr<ImportedBody> ImportBody(const RawGraph& body, const std::vector<std::string>& outputs,
                                          const Context& inner, const Scope& outer, const DefineInputs& define_inputs) {
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

  absl::Status ImportInto(const RawGraph& body, const std::vector<std::string>& outputs, const Context& inner,
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

  // What passes between the graphs of a node must not be of a small type, because only its bytes would pass.
  absl::Status CheckNotSmall(const std::vector<ValueId>& values, std::string_view what) const {
    for (const ValueId value : values) {
      const auto small = at_->small.find(value);
      if (small != at_->small.end()) return SmallTypeError(what, *small->second);
    }
    return absl::OkStatus();
  }

  // An optional scalar input; kAbsent if the node leaves it out.
  absl::StatusOr<ValueId> ScalarInput(const RawNode& node, size_t input, ir::DType dtype, const Scope& outer) {
    if (input >= node.inputs.size() || node.inputs[input].empty()) return kAbsent;
    HONE_ASSIGN_OR_RETURN(const ValueId id, outer.Find(node.inputs[input]));
    HONE_RETURN_IF_ERROR(at_->FoldValue(id, needed_steps_left_).status());
    const TensorType& type = at_->graph.values[id].type;
    if (type.dtype != dtype || type.elements() != ir::Size(1)) {
      return absl::InvalidArgumentError(fmt::format("input {} must be one {}", input, ir::Name(dtype)));
    }
    return AddReshape(at_->graph, id, {});
  }

  // A value of the graph inside that is the number of the step.
  ValueId StepNumber(const std::string& name, const ir::OpenSize& counter) {
    const ValueId id = AddSizes(at_->graph, name, {ir::Size::Open(counter)});
    at_->graph.values[id].type.shape = {};  // a list of one has the same elements
    at_->graph.values[id].name = UniqueName(name);
    return id;
  }

  absl::StatusOr<std::vector<ValueId>> ImportLoop(const RawNode& node, size_t index, const Context& context,
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

  NameSource NewNames() { return std::bind_front(&Importer::UniqueName, this); }

  static std::vector<ValueId> PresentOutputs(const RawNode& node, std::vector<ValueId> outputs) {
    outputs.resize(node.outputs.size(), kAbsent);
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = node.outputs[i].empty() ? kAbsent : outputs[i];
    return outputs;
  }

  // Adds one input of the graph inside per state, from the body's input number `first` on.
  absl::Status DefineStates(const RawGraph& body, size_t first, const std::vector<TensorType>& types, Scope& scope) {
    for (size_t i = 0; i < types.size(); ++i) {
      const std::string& name = body.inputs[first + i].name;
      const ValueId id = AddNamed(name, types[i], nullptr);
      DeclareSizes(at_->graph, types[i].shape);
      at_->graph.inputs.push_back(id);
      HONE_RETURN_IF_ERROR(Define(name, id, scope));
    }
    return absl::OkStatus();
  }

  SpellAsLoop SpelledAsLoop(const RawNode& node, const Scope& scope) const {
    const absl::StatusOr<ValueId> first = node.inputs.empty() ? kAbsent : scope.Find(node.inputs[0]);
    const bool is_known = first.ok() && *first >= 0;
    return FindAsLoop(node, is_known ? &at_->graph.values[*first].type : nullptr);
  }

  // Whether the node is about sequences. Unimplemented if it reads one and is not: only a Loop carries them.
  absl::StatusOr<bool> IsOnSequences(const RawNode& node, const Scope& scope) const {
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

  // Imports bodies of the node in its place, with values for their inputs.
  InlineBody InlineBodies(const RawNode& node, size_t index, const Context& context, const Scope& outer) {
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

  absl::StatusOr<std::vector<ValueId>> ImportOnSequences(const RawNode& node, size_t index, const Context& context,
                                                         const Scope& scope) {
    HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> inputs, FindAll(node.inputs, scope));
    return sequences_.Import(node, inputs, *at_, needed_steps_left_, InlineBodies(node, index, context, scope));
  }

  // A Loop with sequences among its states.
  absl::StatusOr<std::vector<ValueId>> ImportLoopOnSequences(const RawNode& node, size_t index, const Context& context,
                                                             const Scope& outer, const RawGraph& body) {
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

  // An operator that is imported as nodes with a Loop.
  absl::StatusOr<std::vector<ValueId>> ImportAsLoop(const RawNode& node, size_t /*index*/, const Context& context,
                                                    const Scope& outer) {
    HONE_ASSIGN_OR_RETURN(const AsLoop spelled, SpelledAsLoop(node, outer)(node, OpsetOf("", context.opsets)));
    static const std::map<std::string, int64_t> kOwn = {{"", kOwnOpset}};
    const Context inner{spelled.has_body ? context.opsets : kOwn,
                        spelled.has_body ? context.call_attributes : nullptr,
                        context.depth + 1,
                        nullptr,
                        &context,
                        context.where,
                        context.tentative || !spelled.has_body};
    Scope scope{.outer = &outer, .values = {}};
    HONE_RETURN_IF_ERROR(ImportNodes(spelled.nodes, spelled.outputs, inner, scope));
    HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, FindOutputs(spelled.outputs, scope));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == kAbsent) continue;
      HONE_ASSIGN_OR_RETURN(outputs[i], PlaceRows(at_->graph, outputs[i], spelled.axes[i], spelled.reversed[i]));
    }
    return outputs;
  }

  absl::StatusOr<std::vector<ValueId>> ImportConstant(const RawNode& node) {
    HONE_ASSIGN_OR_RETURN(Constant constant, ConstantOf(node));
    const ValueId id = AddNamed(node.outputs[0], std::move(constant.type), std::move(constant.data));
    const SmallType* const small = node.attributes.begin()->second.small;
    if (small != nullptr) at_->small[id] = small;
    return std::vector<ValueId>{id};
  }

  absl::StatusOr<std::vector<ValueId>> ImportOperator(RawNode& raw, size_t index, const Context& context,
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
    if (const decompose::Row* row = FindDecomposition(raw, context.opsets)) {
      absl::StatusOr<std::vector<ValueId>> written = Named(Decompose(*row, node, names), raw, index);
      if (!written.ok() || !written->empty()) return written;
    }
    if (const opsets::Rewrite* rewrite = raw.domain.empty() ? opsets::FindRewrite(raw.op, node.opset) : nullptr) {
      const decompose::Row old_form{.name = rewrite->name, .rule = rewrite->rule, .inputs_min = rewrite->inputs_min};
      absl::StatusOr<std::vector<ValueId>> written = Named(Decompose(old_form, node, names), raw, index);
      if (!written.ok() || !written->empty()) return written;
    }
    HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, at_->AddOperator(node, names, needed_steps_left_));
    HONE_RETURN_IF_ERROR(at_->Fold());
    for (const ValueId output : outputs) {
      if (*small != nullptr && output != kAbsent) at_->small[output] = *small;
    }
    return outputs;
  }

  // The small type that the node's results have, or nullptr. Unimplemented if the operator computes with elements of a
  // small type.
  absl::StatusOr<const SmallType*> SmallTypeOfResults(const Node& node) const {
    const SmallType* type = nullptr;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto small = at_->small.find(node.inputs[i]);
      if (small == at_->small.end()) continue;
      if (!MayReadSmall(node, i)) return SmallTypeError(fmt::format("input {}", i), *small->second);
      if (KeepsSmall(node)) type = small->second;
    }
    return type;
  }

  // Adds the node with the meaning of the first expression that fits its inputs.
  absl::StatusOr<std::vector<ValueId>> ImportExpression(const RawNode& raw,
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

  // Writes the operators that the row replaces the node by. A value that they make gets the name of the output.
  absl::StatusOr<std::vector<ValueId>> Decompose(const decompose::Row& row, const Node& node,
                                                 const std::vector<std::string>& names) {
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
                          decompose::Decompose(row, node, {at_->graph, add, compute, NewNames()}));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] != kAbsent && static_cast<size_t>(outputs[i]) >= values)
        at_->graph.values[outputs[i]].name = names[i];
    }
    return outputs;
  }

  const RawModel& model_;
  const ImportOptions* options_ = nullptr;
  DimRanges symbols_;                                 // of the inputs' open dimensions
  std::shared_ptr<const CustomOperators> operators_;  // null: none
  ImportGraph model_graph_;
  ImportGraph* at_ = &model_graph_;  // the graph to which nodes are added: the model's, or one inside a node
  std::map<std::string, int64_t> last_numbers_;  // per used name: the last number that UniqueName appended to it
  size_t imported_ = 0;
  bool saw_body_ = false;   // whether the last node of control flow imported a body
  int64_t loop_steps_ = 0;  // ImportOptions::loop_steps
  Sequences sequences_;
  ImportLog log_;
  ImportReport report_;                                   // set when Run ends
  int64_t needed_steps_left_ = kNeededFoldStepsTotalMax;  // budget of ImportGraph::FoldValue
};

ReadOptions ReadFor(const ImportOptions& options) {
  return {.may_read = options.may_read, .keeps_sources = options.fallback};
}

absl::StatusOr<Graph> ImportRead(RawModel model, const ImportOptions& options) {
  for (const ForeignNodes& part : MoveRefused(model, options)) {
    if (options.warn) options.warn(Print(part));
  }
  return Importer(model).Run(options);
}

}  // namespace

absl::StatusOr<Graph> ImportOnnxBytes(std::string_view bytes, const std::string& folder, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(RawModel model, ReadOnnxBytes(bytes, folder, ReadFor(options)));
  return ImportRead(std::move(model), options);
}

absl::StatusOr<Graph> ImportOnnx(const std::string& path, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(RawModel model, ReadOnnxFile(path, ReadFor(options)));
  absl::StatusOr<Graph> graph = ImportRead(std::move(model), options);
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
