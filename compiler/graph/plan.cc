// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/status.h"
#include "compiler/graph/fuse.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/kernel.h"
#include "compiler/graph/onnx_import.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/passes/pipeline.h"

namespace hone::graph {
namespace {

class PlanBuilder {
 public:
  // The nodes from number `views_end` on become kernels of their own, although they are views.
  PlanBuilder(const Graph& graph, size_t views_end)
      : graph_(graph), views_end_(views_end), tensors_(graph.values.size(), -1) {}

  absl::StatusOr<Plan> Run() {
    plan_.sizes = graph_.sizes;
    for (ValueId id : graph_.inputs) plan_.inputs.push_back(TensorOf(id));
    for (const auto& [id, data] : graph_.defaults) plan_.defaults[TensorOf(id)] = data;
    for (size_t i = 0; i < views_end_; ++i) {
      const Node& node = graph_.nodes[i];
      if (IsView(node)) alias_source_[node.outputs[0]] = node.inputs[0];
    }
    HONE_ASSIGN_OR_RETURN(std::vector<Cluster> clusters, Fuse(graph_));
    for (size_t i = views_end_; i < graph_.nodes.size(); ++i) clusters.push_back({{static_cast<int>(i)}, "sizes"});
    for (const Cluster& cluster : clusters) HONE_RETURN_IF_ERROR(AddCall(cluster));
    AddOutputs();
    return std::move(plan_);
  }

 private:
  TensorId AddTensor(PlanTensor tensor) {
    plan_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(plan_.tensors.size()) - 1;
  }

  TensorId Root(TensorId id) const { return plan_.tensors[id].alias_of >= 0 ? plan_.tensors[id].alias_of : id; }

  TensorId TensorOf(ValueId id) {
    if (tensors_[id] >= 0) return tensors_[id];
    const Value& value = graph_.values[id];
    PlanTensor tensor{.name = value.name, .type = value.type, .data = value.data};
    if (auto source = alias_source_.find(id); source != alias_source_.end() && value.data == nullptr) {
      HONE_CHECK(value.type.elements() == graph_.values[source->second].type.elements());
      tensor.alias_of = Root(TensorOf(source->second));
    }
    return tensors_[id] = AddTensor(std::move(tensor));
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
    auto [it, added] = workloads_.emplace(ir::WorkloadDigest(kernel.workload), next);
    if (added) plan_.workloads.push_back(std::move(kernel.workload));
    PlanCall call{.workload = it->second, .arguments = {}, .sizes = std::move(kernel.sizes)};
    for (ValueId id : kernel.inputs) call.arguments.push_back(TensorOf(id));
    for (ValueId id : kernel.outputs) call.arguments.push_back(TensorOf(id));
    plan_.calls.push_back(std::move(call));
    return absl::OkStatus();
  }

  // Gives every graph output a tensor with the model's name. If the value is an input, a constant or already an output,
  // that tensor is an alias.
  void AddOutputs() {
    std::set<TensorId> named(plan_.inputs.begin(), plan_.inputs.end());
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      TensorId id = TensorOf(graph_.outputs[i]);
      if (plan_.tensors[id].data != nullptr || !named.insert(id).second) {
        id = AddTensor({.name = {}, .type = plan_.tensors[id].type, .data = nullptr, .alias_of = Root(id)});
      }
      plan_.tensors[id].name = graph_.output_names[i];
      plan_.outputs.push_back(id);
    }
  }

  const Graph& graph_;
  const size_t views_end_;
  Plan plan_;
  std::vector<TensorId> tensors_;            // per value; -1 if it has none yet
  std::map<ValueId, ValueId> alias_source_;  // per view output: the value it is a view of
  std::map<std::string, int> workloads_;     // workload index by digest
};

// Adds an Identity for each output whose elements are open sizes. These nodes become kernels that write the elements.
absl::Status WriteSizes(Graph& graph) {
  std::map<ValueId, ValueId> written;
  for (ValueId& output : graph.outputs) {
    if (graph.values[output].elements == nullptr) continue;
    const auto [copy, added] = written.try_emplace(output, kAbsent);
    if (added) {
      HONE_ASSIGN_OR_RETURN(copy->second, AddOp(graph, "Identity", {output}));
    }
    output = copy->second;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Plan> BuildPlan(const Graph& graph) {
  const auto is_sizes = [&](ValueId id) { return graph.values[id].elements != nullptr; };
  if (std::ranges::none_of(graph.outputs, is_sizes)) return PlanBuilder(graph, graph.nodes.size()).Run();
  Graph written = graph;
  HONE_RETURN_IF_ERROR(WriteSizes(written));
  return PlanBuilder(written, graph.nodes.size()).Run();
}

absl::StatusOr<Plan> BuildPlan(const std::string& onnx_path, const ImportOptions& options, const target::Target& target,
                               const PassOptions<Graph>& passes) {
  HONE_ASSIGN_OR_RETURN(Graph graph, ImportOnnx(onnx_path, options));
  graph.target = target;
  HONE_RETURN_IF_ERROR(Annotate(RunPasses(graph, passes), onnx_path));
  absl::StatusOr<Plan> plan = BuildPlan(graph);
  return plan.ok() ? std::move(plan) : Annotate(plan.status(), onnx_path);
}

}  // namespace hone::graph
