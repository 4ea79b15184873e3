// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/ir/elements.h"

namespace hone::graph {
namespace {

ValueId PositionsOf(Graph& graph, const Node& nonzero) {
  const Value from = graph.values[nonzero.inputs[0]];
  const std::vector<int64_t> shape = ir::Values(from.type.shape);
  const int64_t size = ir::SizeOf(from.type.dtype);
  const int64_t count = from.type.elements().value();
  std::vector<int64_t> found;
  for (int64_t k = 0; k < count; ++k) {
    if (ir::ElementAsDouble(from.type.dtype, from.data->data() + k * size) != 0) found.push_back(k);
  }
  std::vector<int64_t> positions(shape.size() * found.size());
  for (size_t n = 0; n < found.size(); ++n) {
    int64_t rest = found[n];
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) positions[d * found.size() + n] = rest % shape[d];
  }
  return AddConstant<int64_t>(graph, "positions", ir::DType::kInt64,
                              {static_cast<int64_t>(shape.size()), static_cast<int64_t>(found.size())}, positions);
}

// Without an axis it selects from the flattened elements.
absl::StatusOr<ValueId> GatherKept(Graph& graph, const Node& compress) {
  const std::vector<uint8_t> condition = ReadConstant<uint8_t>(graph.values[compress.inputs[1]]);
  ValueId x = compress.inputs[0];
  if (!compress.attributes.contains("axis")) {
    HONE_ASSIGN_OR_RETURN(x, AddReshape(graph, x, ir::Shape{graph.values[x].type.elements()}));
  }
  const ir::Shape& shape = graph.values[x].type.shape;
  const int64_t axis = AxisFromFront(IntAttribute(compress, "axis", 0), shape.size());
  const ir::Size& extent = shape[static_cast<size_t>(axis)];
  // If the axis may be shorter than the condition, it is not known which elements are kept.
  if (!extent.IsFixed() && extent.min() < static_cast<int64_t>(condition.size())) return kAbsent;
  std::vector<int64_t> kept;
  for (size_t k = 0; k < condition.size() && static_cast<int64_t>(k) < extent.max(); ++k) {
    if (condition[k] != 0) kept.push_back(static_cast<int64_t>(k));
  }
  return AddOp(graph, "Gather", {x, AddInts(graph, "kept", kept)}, {{"axis", axis}});
}

absl::StatusOr<ValueId> LowerSelection(Graph& graph, const Node& node) {
  if (Is(node, "NonZero")) return PositionsOf(graph, node);
  const bool compress = Is(node, "Compress") && graph.values[node.inputs[1]].type.dtype == ir::DType::kBool;
  return compress ? GatherKept(graph, node) : absl::StatusOr<ValueId>(kAbsent);
}

}  // namespace

absl::Status LowerSelections(Graph& graph) { return LowerNodes(graph, LowerSelection); }

}  // namespace hone::graph
