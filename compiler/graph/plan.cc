// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/plan.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "compiler/graph/control_flow.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/fuse.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/kernel.h"
#include "compiler/graph/onnx_import.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/passes/pipeline.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

// What the builders of a model's graph and of the graphs inside it share.
struct Building {
  Plan plan;
  Fusion fusion = Fusion::kFull;
  std::map<std::string, int> workloads;  // workload index by digest
  std::set<TensorId> swapped;            // tensors whose memory moves while the model runs
  std::vector<Origin> origins;           // of all graphs
};

class PlanBuilder {
 public:
  PlanBuilder(const Graph& graph, Building& building)
      : graph_(graph), building_(building), plan_(building.plan), tensors_(graph.values.size(), -1) {
    for (const ir::OpenSize& size : graph.sizes) Declare(size);
    building.origins.insert(building.origins.end(), graph.origins.begin(), graph.origins.end());
  }

  absl::Status Run() {
    for (ValueId id : graph_.inputs) plan_.inputs.push_back(TensorOf(id));
    for (const auto& [id, data] : graph_.defaults) plan_.defaults[TensorOf(id)] = data;
    HONE_RETURN_IF_ERROR(AddNodes());
    AddOutputs();
    for (const auto& [call, cluster] : called_) AddUpdate(call, cluster);
    AddValues();
    return absl::OkStatus();
  }

 private:
  absl::Status AddNodes() {
    for (const Node& node : graph_.nodes) {
      if (IsView(node)) alias_source_[node.outputs[0]] = node.inputs[0];
    }
    HONE_ASSIGN_OR_RETURN(std::vector<Cluster> clusters, Fuse(graph_, building_.fusion));
    for (const Cluster& cluster : clusters) {
      const Node& exit = graph_.nodes[static_cast<size_t>(cluster.nodes.back())];
      HONE_RETURN_IF_ERROR(IsControlFlow(exit) ? AddControlFlow(exit) : AddCall(cluster));
      if (IsControl(exit, "Foreign")) plan_.calls.back().origins = OriginsOf(cluster.nodes);
      if (!IsControlFlow(exit)) called_.emplace_back(static_cast<int>(plan_.calls.size()) - 1, cluster);
    }
    return absl::OkStatus();
  }

  void Declare(const ir::OpenSize& size) {
    if (std::ranges::find(plan_.sizes, size.name, &ir::OpenSize::name) == plan_.sizes.end())
      plan_.sizes.push_back(size);
  }

  TensorId AddTensor(PlanTensor tensor) {
    plan_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(plan_.tensors.size()) - 1;
  }

  TensorId TensorOf(ValueId id) {
    if (tensors_[id] >= 0) return tensors_[id];
    const Value& value = graph_.values[id];
    if (value.elements != nullptr) return AddSizes(id);
    PlanTensor tensor{.name = value.name, .type = value.type, .data = value.data};
    if (auto source = alias_source_.find(id); source != alias_source_.end() && value.data == nullptr) {
      HONE_CHECK(value.type.elements() == graph_.values[source->second].type.elements());
      tensor.alias_of = plan_.Root(TensorOf(source->second));
    }
    return tensors_[id] = AddTensor(std::move(tensor));
  }

  // Adds a call that writes a value which consists of sizes.
  TensorId AddSizes(ValueId id) {
    Graph copy{.target = graph_.target, .sizes = graph_.sizes};
    copy.values.assign(2, graph_.values[id]);
    copy.values[1].elements = nullptr;
    copy.nodes = {{.name = copy.values[0].name, .op = "Identity", .opset = kOwnOpset, .inputs = {0}, .outputs = {1}}};
    copy.outputs = {1};
    PlanBuilder builder(copy, building_);
    builder.tensors_[1] = tensors_[id] = AddTensor({copy.values[1].name, copy.values[1].type, nullptr});
    HONE_CHECK(builder.AddCall({.nodes = {0}, .op = "sizes"}).ok());
    return tensors_[id];
  }

  absl::Status AddCall(const Cluster& cluster) {
    HONE_ASSIGN_OR_RETURN(Kernel kernel, BuildKernel(graph_, cluster));
    std::map<std::string, ir::Size, std::less<>> values;
    for (size_t i = 0; i < kernel.sizes.size(); ++i) values[kernel.workload.sizes[i].name] = kernel.sizes[i];
    // Checks that the kernel's outputs have the sizes of their tensors; a larger one would overwrite other tensors'
    // memory.
    for (size_t i = 0; i < kernel.outputs.size(); ++i) {
      const ir::BufferNode& made = *kernel.workload.outputs[i];
      ir::Shape shape;
      for (const ir::Size& extent : made.shape) shape.push_back(extent.Substitute(values));
      HONE_CHECK((graph_.values[kernel.outputs[i]].type == TensorType{made.dtype, shape}));
    }
    const int next = static_cast<int>(plan_.workloads.size());
    auto [it, added] = building_.workloads.emplace(ir::WorkloadDigest(kernel.workload), next);
    if (added) plan_.workloads.push_back(std::move(kernel.workload));
    PlanCall call{.workload = it->second, .arguments = {}, .sizes = std::move(kernel.sizes)};
    for (ValueId id : kernel.inputs) call.arguments.push_back(TensorOf(id));
    for (ValueId id : kernel.outputs) call.arguments.push_back(TensorOf(id));
    call.origins = OriginsOf(cluster.nodes);
    plan_.calls.push_back(std::move(call));
    return absl::OkStatus();
  }

  // The origins of these nodes that compute something, or all if none does.
  std::vector<Origin> OriginsOf(const std::vector<int>& nodes) const {
    std::set<int> numbers;
    for (const int node : nodes) {
      const std::vector<int>& of_node = graph_.nodes[static_cast<size_t>(node)].origins;
      numbers.insert(of_node.begin(), of_node.end());
    }
    std::vector<Origin> origins;
    for (const int number : numbers) origins.push_back(graph_.origins[static_cast<size_t>(number)]);
    if (std::ranges::any_of(origins, &Origin::computes)) std::erase_if(origins, std::not_fn(&Origin::computes));
    return origins;
  }

  // --- Control flow.

  // Appends an action before the next call, and returns its number.
  int AddAction(PlanAction action) {
    action.call = static_cast<int>(plan_.calls.size());
    plan_.actions.push_back(std::move(action));
    return static_cast<int>(plan_.actions.size()) - 1;
  }
  void Copy(TensorId source, TensorId target) {
    AddAction({.kind = ActionKind::kCopy, .source = source, .target = target});
  }
  void SetSize(const std::string& size, const ir::Size& value) {
    AddAction({.kind = ActionKind::kSetSize, .size = size, .value = value});
  }
  void ReadSize(const std::string& size, TensorId source) {
    AddAction({.kind = ActionKind::kReadSize, .size = size, .source = source});
  }
  // Lets a jump lead to the next action that is appended, which is a label.
  void JumpHere(int jump) { plan_.actions[jump].destination = AddAction({.kind = ActionKind::kLabel}); }

  // An open size of the plan alone: a condition or a counter.
  ir::OpenSize NewSize(const Node& node, std::string_view what, int64_t max) {
    ir::OpenSize size{fmt::format("{}.{}.{}", node.name, what, plan_.sizes.size()), 0, max};
    Declare(size);
    return size;
  }

  absl::Status AddControlFlow(const Node& node) {
    if (IsControl(node, "If")) return AddIf(node);
    if (IsControl(node, "Loop")) return AddLoop(node);
    if (IsControl(node, "Fit")) return AddFit(node);
    if (IsControl(node, "Foreign")) return AddForeign(node);
    ReadSize(SizesMadeBy(node).front(), TensorOf(node.inputs[0]));
    plan_.tensors[TensorOf(node.outputs[0])].alias_of = plan_.Root(TensorOf(node.inputs[0]));
    return absl::OkStatus();
  }

  absl::Status AddForeign(const Node& node) {
    PlanCall call{.workload = -1, .arguments = {}, .foreign = static_cast<int>(plan_.foreign.size())};
    for (const ValueId id : node.inputs) call.arguments.push_back(TensorOf(id));
    for (const ValueId id : node.outputs) call.arguments.push_back(TensorOf(id));
    // A tensor of an argument may be an alias of one with another shape, so the call tells all extents.
    const auto is_open = [&](TensorId id) { return !ir::IsFixed(plan_.tensors[id].type.shape); };
    if (std::ranges::any_of(call.arguments, is_open)) {
      for (const TensorId id : call.arguments) {
        const ir::Shape& shape = plan_.tensors[id].type.shape;
        call.sizes.insert(call.sizes.end(), shape.begin(), shape.end());
      }
    }
    plan_.foreign.push_back({node.name, StringAttribute(node, "model", ""), node.inputs.size(), node.outputs.size()});
    plan_.calls.push_back(std::move(call));
    return absl::OkStatus();
  }

  absl::Status AddFit(const Node& node) {
    const TensorId from = TensorOf(node.inputs[0]), to = TensorOf(node.outputs[0]);
    const ir::Shape made = plan_.tensors[from].type.shape, wanted = plan_.tensors[to].type.shape;
    for (size_t d = 0; d < made.size(); ++d) {
      if (made[d] != wanted[d]) AddAction({.kind = ActionKind::kRequire, .value = made[d] - wanted[d], .source = from});
    }
    plan_.tensors[to].alias_of = plan_.Root(from);
    return absl::OkStatus();
  }

  // Adds the calls of a graph inside a node; `inputs` has one tensor per input of it. Returns those of its outputs.
  absl::StatusOr<std::vector<TensorId>> AddBody(const Graph& body, const std::vector<TensorId>& inputs) {
    PlanBuilder inner(body, building_);
    for (size_t i = 0; i < inputs.size(); ++i) inner.tensors_[body.inputs[i]] = inputs[i];
    HONE_RETURN_IF_ERROR(inner.AddNodes());
    std::vector<TensorId> outputs;
    for (const ValueId id : body.outputs) outputs.push_back(inner.TensorOf(id));
    return outputs;
  }

  std::vector<TensorId> TensorsOf(const Node& node, size_t first) {
    std::vector<TensorId> tensors;
    for (size_t i = first; i < node.inputs.size(); ++i) tensors.push_back(TensorOf(node.inputs[i]));
    return tensors;
  }

  absl::Status AddIf(const Node& node) {
    const ir::OpenSize condition = NewSize(node, "condition", 1);
    ReadSize(condition.name, TensorOf(node.inputs[0]));
    const std::vector<TensorId> captures = TensorsOf(node, 1);
    const int skip = AddAction({.kind = ActionKind::kJumpIfZero, .value = ir::Size::Open(condition)});
    HONE_RETURN_IF_ERROR(AddBranch(node, BodyOf(node, "then"), captures));
    const int done = AddAction({.kind = ActionKind::kJump});
    JumpHere(skip);
    HONE_RETURN_IF_ERROR(AddBranch(node, BodyOf(node, "else"), captures));
    JumpHere(done);
    return absl::OkStatus();
  }

  absl::Status AddBranch(const Node& node, const Graph& branch, const std::vector<TensorId>& captures) {
    const size_t calls = plan_.calls.size(), actions = plan_.actions.size();
    const auto tensors = static_cast<TensorId>(plan_.tensors.size());
    HONE_ASSIGN_OR_RETURN(const std::vector<TensorId> made, AddBody(branch, captures));
    for (size_t i = 0; i < made.size(); ++i) {
      if (node.outputs[i] == kAbsent) continue;
      const TensorType& type = graph_.values[node.outputs[i]].type;
      const ir::Shape shape = plan_.tensors[made[i]].type.shape;
      for (size_t d = 0; d < shape.size(); ++d) {
        type.shape[d].ForEachSymbol([&](const ir::OpenSize& symbol) {
          if (std::ranges::find(SizesMadeBy(node), symbol.name) != SizesMadeBy(node).end()) {
            SetSize(symbol.name, shape[d]);
          }
        });
      }
      const TensorId output = TensorOf(node.outputs[i]);
      const bool is_own = made[i] >= tensors && IsComputed(made[i]) && plan_.tensors[made[i]].type == type;
      if (is_own && std::count(made.begin(), made.end(), made[i]) == 1) {
        Rename(made[i], output, calls, actions);
      } else {
        Copy(made[i], output);
      }
    }
    return absl::OkStatus();
  }

  // Whether calls write the tensor, at one place in memory.
  bool IsComputed(TensorId id) const {
    const PlanTensor& tensor = plan_.tensors[id];
    return tensor.data == nullptr && tensor.alias_of < 0 && !building_.swapped.contains(id);
  }

  // Lets the calls and actions from these numbers on use `to` in place of `from`, which nothing before them uses.
  void Rename(TensorId from, TensorId to, size_t calls, size_t actions) {
    const auto rename = [&](TensorId& id) { id = id == from ? to : id; };
    for (size_t i = calls; i < plan_.calls.size(); ++i) std::ranges::for_each(plan_.calls[i].arguments, rename);
    for (size_t i = actions; i < plan_.actions.size(); ++i) {
      rename(plan_.actions[i].source);
      rename(plan_.actions[i].target);
    }
    for (PlanTensor& tensor : plan_.tensors) rename(tensor.alias_of);
  }

  // The order in a step: the body's calls, the rows, the condition, the next states, the sizes.
  absl::Status AddLoop(const Node& node) {
    const Graph& body = BodyOf(node, "body");
    const auto states = static_cast<size_t>(IntAttribute(node, "states", 0));
    const std::string counter = StringAttribute(node, "counter", "");
    const int64_t steps_max = IntAttribute(node, "steps_max", 0);
    std::vector<TensorId> inputs = TensorsOf(node, 2);
    for (size_t i = 0; i < states; ++i) inputs[i] = AddState(node, body, i, inputs[i]);
    const ir::Size limit = AddLimit(node, steps_max);
    const ir::OpenSize goes_on = NewSize(node, "condition", 1);
    if (node.inputs[1] == kAbsent) {
      SetSize(goes_on.name, 1);
    } else {
      ReadSize(goes_on.name, TensorOf(node.inputs[1]));
    }
    const ir::OpenSize step{counter, 0, steps_max};
    Declare(step);
    SetSize(counter, 0);
    const int begin = AddAction({.kind = ActionKind::kLabel});
    const int ended = AddAction({.kind = ActionKind::kJumpIfZero, .value = limit - ir::Size::Open(step)});
    const int stopped = AddAction({.kind = ActionKind::kJumpIfZero, .value = ir::Size::Open(goes_on)});
    const auto tensors = static_cast<TensorId>(plan_.tensors.size());
    HONE_ASSIGN_OR_RETURN(const std::vector<TensorId> made, AddBody(body, inputs));
    for (size_t i = states; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kAbsent) continue;
      AddAction({.kind = ActionKind::kCopyRow,
                 .value = ir::Size::Open(step),
                 .source = made[1 + i],
                 .target = TensorOf(node.outputs[i])});
    }
    if (!IsTrue(body.values[body.outputs[0]])) ReadSize(goes_on.name, made[0]);
    NextStates({inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(states)}, made, tensors);
    NextSizes(node, body, states);
    SetSize(counter, ir::Size::Open(step) + ir::Size(1));
    AddAction({.kind = ActionKind::kJump, .destination = begin});
    JumpHere(ended);
    plan_.actions[stopped].destination = plan_.actions[ended].destination;
    if (const std::string done = StringAttribute(node, "steps", ""); !done.empty()) {
      SetSize(done, ir::Size::Open(step));
    }
    return absl::OkStatus();
  }

  // The tensor of a state, with its first value.
  TensorId AddState(const Node& node, const Graph& body, size_t index, TensorId first) {
    const TensorType& type = body.values[body.inputs[index]].type;
    const ir::Shape from = plan_.tensors[first].type.shape;
    for (size_t d = 0; d < type.shape.size(); ++d) {
      if (IsOwnSize(node, type.shape[d])) SetSize(NameOf(type.shape[d]), from[d]);
    }
    TensorId state = node.outputs[index] == kAbsent ? AddTensor({.name = {}, .type = type, .data = nullptr})
                                                    : TensorOf(node.outputs[index]);
    building_.swapped.insert(state);
    Copy(first, state);
    return state;
  }

  static std::string NameOf(const ir::Size& size) {
    std::string name;
    size.ForEachSymbol([&](const ir::OpenSize& symbol) { name = symbol.name; });
    return name;
  }
  // Whether the dimension of a state is a size that the loop's steps change.
  static bool IsOwnSize(const Node& node, const ir::Size& size) {
    return !size.IsFixed() && std::ranges::find(SizesMadeBy(node), NameOf(size)) != SizesMadeBy(node).end();
  }

  // The most steps that a loop may do, as a size.
  ir::Size AddLimit(const Node& node, int64_t steps_max) {
    if (node.inputs[0] == kAbsent) return steps_max;
    if (const std::optional<ir::Size> known = SizeOfScalar(graph_, node.inputs[0])) return Max(*known, ir::Size(0));
    const ir::OpenSize limit = NewSize(node, "steps", steps_max);
    ReadSize(limit.name, TensorOf(node.inputs[0]));
    return ir::Size::Open(limit);
  }

  // Gives the states their next values; made[1 + i] is that of state i, and tensors from `first` on are the body's.
  void NextStates(const std::vector<TensorId>& states, const std::vector<TensorId>& made, TensorId first) {
    std::set<TensorId> taken;
    std::vector<TensorId> next;
    for (size_t i = 0; i < states.size(); ++i) {
      next.push_back(plan_.Root(made[1 + i]));
      const bool is_state = std::ranges::find(states, next[i]) != states.end();
      if (next[i] == states[i] || (!is_state && taken.insert(next[i]).second)) continue;
      const TensorId kept = AddTensor({.name = {}, .type = plan_.tensors[made[1 + i]].type, .data = nullptr});
      Copy(next[i], kept);  // its source changes below
      next[i] = kept;
    }
    for (size_t i = 0; i < states.size(); ++i) {
      if (next[i] == states[i]) continue;
      const bool fits = ByteSize(plan_.tensors[next[i]].type) == ByteSize(plan_.tensors[states[i]].type);
      if (next[i] >= first && plan_.tensors[next[i]].data == nullptr && fits) {
        building_.swapped.insert(next[i]);
        AddAction({.kind = ActionKind::kSwap, .source = next[i], .target = states[i]});
      } else {
        Copy(next[i], states[i]);
      }
    }
  }

  // Gives the sizes that states have their next values, all at once.
  void NextSizes(const Node& node, const Graph& body, size_t states) {
    std::vector<std::pair<std::string, ir::Size>> next;
    for (size_t i = 0; i < states; ++i) {
      const ir::Shape &old = body.values[body.inputs[i]].type.shape,
                      &made = body.values[body.outputs[1 + i]].type.shape;
      for (size_t d = 0; d < old.size(); ++d) {
        if (IsOwnSize(node, old[d]) && old[d] != made[d]) next.emplace_back(NameOf(old[d]), made[d]);
      }
    }
    if (next.size() > 1) {
      for (auto& [name, value] : next) {
        const ir::OpenSize kept = NewSize(node, "next", value.max());
        SetSize(kept.name, value);
        value = ir::Size::Open(kept);
      }
    }
    for (const auto& [name, value] : next) SetSize(name, value);
  }

  // --- Outputs.

  // Gives every graph output a tensor with the model's name. If the value is an input, a constant or already an output,
  // that tensor is an alias. If its memory moves, the tensor is a copy.
  void AddOutputs() {
    std::set<TensorId> named(plan_.inputs.begin(), plan_.inputs.end());
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      TensorId id = TensorOf(graph_.outputs[i]);
      if (building_.swapped.contains(plan_.Root(id))) {
        const TensorId moved = id;
        id = AddTensor({.name = {}, .type = plan_.tensors[moved].type, .data = nullptr});
        Copy(moved, id);
        named.insert(id);
      } else if (plan_.tensors[id].data != nullptr || !named.insert(id).second) {
        id = AddTensor({.name = {}, .type = plan_.tensors[id].type, .data = nullptr, .alias_of = plan_.Root(id)});
      }
      plan_.tensors[id].name = graph_.output_names[i];
      plan_.outputs.push_back(id);
    }
  }

  void AddValues() {
    for (size_t id = 0; id < tensors_.size(); ++id) {
      if (tensors_[id] < 0 || building_.swapped.contains(plan_.Root(tensors_[id]))) continue;
      for (const FileValue& value : graph_.values[id].held) {
        plan_.values.push_back({value.name, tensors_[id], value.axes});
      }
    }
  }

  bool IsOneOf(const std::vector<TensorId>& ids, TensorId id) const { return std::ranges::find(ids, id) != ids.end(); }

  // Adds the update of a call that writes rows of an input of the model, if an output of the model is the result.
  void AddUpdate(int call, const Cluster& cluster) {
    const Node& node = graph_.nodes[cluster.nodes[0]];
    if (cluster.nodes.size() != 1 || FactsOf(node).writes_rows == nullptr) return;
    const std::optional<WrittenRows> written = FactsOf(node).writes_rows(graph_, node);
    if (!written.has_value()) return;
    const TensorId input = TensorOf(node.inputs[0]), output = TensorOf(node.outputs[0]);
    if (!IsOneOf(plan_.inputs, input) || !IsOneOf(plan_.outputs, output) || plan_.tensors[output].alias_of >= 0) return;
    const TensorId starts = written->starts == kAbsent ? -1 : TensorOf(written->starts);
    plan_.updates.push_back({call, input, output, TensorOf(written->rows), starts, written->axis});
  }

  const Graph& graph_;
  Building& building_;
  Plan& plan_;
  std::vector<TensorId> tensors_;                // per value; -1 if it has none yet
  std::map<ValueId, ValueId> alias_source_;      // per view output: the value it is a view of
  std::vector<std::pair<int, Cluster>> called_;  // the number of its call, and the cluster
};
}  // namespace

absl::Status ForeignNeedsCpu(const std::string& name) {
  return absl::UnimplementedError(
      fmt::format("ONNX Runtime is to compute a part of the model ('{}'), which is supported beside CPUs only; compile "
                  "it for a target such as 'cpu'",
                  name));
}

absl::StatusOr<Plan> BuildPlan(const Graph& graph, Fusion fusion) {
  Building building{.plan = {}, .fusion = fusion, .workloads = {}, .swapped = {}, .origins = {}};
  HONE_RETURN_IF_ERROR(PlanBuilder(graph, building).Run());
  std::set<std::string> called;
  for (const PlanCall& call : building.plan.calls) {
    for (const Origin& origin : call.origins) called.insert(origin.name);
  }
  std::ranges::copy_if(building.origins, std::back_inserter(building.plan.uncalled),
                       [&](const Origin& origin) { return !called.contains(origin.name); });
  return std::move(building.plan);
}

absl::StatusOr<Plan> BuildPlan(const std::string& onnx_path, const ImportOptions& options, const target::Target& target,
                               const PassOptions<Graph>& passes) {
  HONE_ASSIGN_OR_RETURN(Graph graph, ImportOnnx(onnx_path, options));
  graph.target = target;
  const auto foreign = std::ranges::find_if(graph.nodes, [](const Node& node) { return IsControl(node, "Foreign"); });
  if (foreign != graph.nodes.end() && target.facts().has_grid) {
    return Annotate(ForeignNeedsCpu(foreign->name), onnx_path);
  }
  HONE_RETURN_IF_ERROR(Annotate(RunPasses(graph, passes), onnx_path));
  absl::StatusOr<Plan> plan = BuildPlan(graph);
  return plan.ok() ? std::move(plan) : Annotate(plan.status(), onnx_path);
}

}  // namespace hone::graph
