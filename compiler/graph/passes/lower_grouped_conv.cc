// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/passes.h"

namespace hone::graph {
namespace {

bool CanLowerGroupedConv(const Graph& graph, const Node& node) {
  if (!Is(node, "Conv")) return false;
  const int64_t groups = IntAttribute(node, "group", 1);
  const ir::Size& outputs = graph.values[node.inputs[1]].type.shape[0];
  return groups > 1 && outputs.IsFixed() && outputs.value() > groups;
}

absl::StatusOr<ValueId> LowerGroupedConv(Graph& graph, const Node& node) {
  if (!CanLowerGroupedConv(graph, node)) return kAbsent;
  const int64_t groups = IntAttribute(node, "group", 1);
  ir::Shape weights = graph.values[node.inputs[1]].type.shape;
  weights[0] = weights[0] / groups;
  weights.insert(weights.begin(), groups);
  auto attributes = node.attributes;
  attributes.erase("group");
  std::vector<ValueId> inputs = node.inputs;
  HONE_ASSIGN_OR_RETURN(inputs[1], AddReshape(graph, node.inputs[1], weights));
  HONE_ASSIGN_OR_RETURN(const ValueId result,
                        AddOp(graph, "GroupedConv", std::move(inputs), std::move(attributes), "hone"));
  return AddReshape(graph, result, graph.values[node.outputs[0]].type.shape);
}

}  // namespace

absl::Status LowerGroupedConvs(Graph& graph) { return LowerNodes(graph, LowerGroupedConv); }

}  // namespace hone::graph
