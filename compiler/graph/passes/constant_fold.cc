#include "compiler/graph/passes/constant_fold.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/passes/permute.h"

namespace hone::graph {
namespace {

constexpr int64_t kMaxSteps = int64_t{1} << 25;
constexpr int64_t kMaxGrowthBytes = int64_t{1} << 20;  // what a result may be larger than its inputs

int64_t BytesOfValues(const Graph& graph, const std::vector<ValueId>& ids) {
  int64_t bytes = 0;
  for (ValueId id : ids) bytes += id == kAbsent ? 0 : ByteSize(graph.values[id].type);
  return bytes;
}

absl::StatusOr<bool> FoldNode(Graph& graph, const Node& node) {
  HONE_ASSIGN_OR_RETURN(const bool known, IsKnown(graph, node));
  if (!known) return false;
  if (IsView(node)) {
    graph.values[node.outputs[0]].data = graph.values[node.inputs[0]].data;
    return true;
  }
  if (Is(node, "Transpose")) {  // as the interpreter would, but weights are large
    const Value& source = graph.values[node.inputs[0]];
    graph.values[node.outputs[0]].data = Permute(source, TransposePerm(node, source.type.shape.size()));
    return true;
  }
  if (BytesOfValues(graph, node.outputs) > BytesOfValues(graph, node.inputs) + kMaxGrowthBytes) return false;
  absl::StatusOr<std::vector<Constant>> values = Evaluate(graph, node, kMaxSteps);
  if (absl::IsResourceExhausted(values.status())) return false;
  HONE_RETURN_IF_ERROR(values.status());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kAbsent) graph.values[node.outputs[i]].data = (*values)[i].data;
  }
  return true;
}

}  // namespace

absl::Status FoldConstants(Graph& graph) {
  std::vector<Node> left;
  std::vector<Node> nodes = std::move(graph.nodes);
  for (Node& node : nodes) {
    HONE_ASSIGN_OR_RETURN(const bool folded, FoldNode(graph, node));
    if (!folded) left.push_back(std::move(node));
  }
  graph.nodes = std::move(left);
  Tidy(graph);
  return absl::OkStatus();
}

}  // namespace hone::graph
