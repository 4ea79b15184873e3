// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <span>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/passes/passes.h"

namespace hone::graph {
namespace {

bool IsGlobalPool(const Node& node) {
  return (Is(node, "GlobalAveragePool") || Is(node, "GlobalMaxPool")) && !node.attributes.contains("layout");
}

// Returns the first of the trailing dimensions of `from` that are reduced in `to`. Returns the rank of `from` if other
// dimensions are reduced, or if the shapes do not tell.
size_t FirstReduced(const ir::Shape& from, const ir::Shape& to) {
  const bool to_one = ir::Product(to) == 1;
  if (to_one) return 0;
  if (to.size() != from.size()) return from.size();
  size_t first = from.size();
  while (first > 0 && to[first - 1] == 1) --first;
  for (size_t d = 0; d < first; ++d) {
    if (from[d] != to[d]) return from.size();
  }
  return first;
}

// The limit on the last dimension: shorter ones are flattened, because partial results along them would leave most of
// two vectors, or most lanes of a group, unused. A launch with a grid always flattens a reduction to one number,
// because it is split in memory order.
int64_t ShortLengthLimit(const target::Target& target, bool to_one) {
  const bool any_length = to_one && target.facts().has_grid;
  return any_length ? std::numeric_limits<int64_t>::max() : 2 * target.ElementsInStep();
}

absl::StatusOr<ValueId> FlattenReduction(Graph& graph, const Node& node) {
  const bool pool = IsGlobalPool(node);
  if (!pool && AxisFormOf(node) != AxisForm::kAxes) return kAbsent;
  const ir::Shape from = graph.values[node.inputs[0]].type.shape;
  const ir::Shape to = graph.values[node.outputs[0]].type.shape;
  const size_t first = pool ? 2 : FirstReduced(from, to);
  // A result without dimensions offers no axis to distribute over groups.
  const bool needs_one = to.empty() && graph.target.facts().has_grid && !from.empty();
  if ((first + 2 > from.size() && !needs_one) || from.back().max() >= ShortLengthLimit(graph.target, first == 0))
    return kAbsent;
  ir::Shape flat(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(first));
  flat.push_back(ir::Product(std::span(from).subspan(first)));
  if (flat.back() == from.back() && !needs_one) return kAbsent;
  auto attributes = node.attributes;
  if (!pool) attributes = {{"axes", std::vector<int64_t>{static_cast<int64_t>(first)}}, {"keepdims", int64_t{1}}};
  HONE_ASSIGN_OR_RETURN(const ValueId data, AddReshape(graph, node.inputs[0], flat));
  HONE_ASSIGN_OR_RETURN(const ValueId reduced, AddOp(graph, node.op, {data}, std::move(attributes)));
  return AddReshape(graph, reduced, to);
}

// The same for a search along one axis: the dimensions after the axis become one, so that vectors lie along all of
// them.
absl::StatusOr<ValueId> FlattenSearch(Graph& graph, const Node& node) {
  const ir::Shape from = graph.values[node.inputs[0]].type.shape;
  const ir::Shape to = graph.values[node.outputs[0]].type.shape;
  const auto axis = static_cast<size_t>(AxisFromFront(IntAttribute(node, "axis", 0), from.size()));
  if (axis + 3 > from.size()) return kAbsent;
  ir::Shape flat(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  flat.push_back(ir::Product(std::span(from).subspan(axis + 1)));
  auto attributes = node.attributes;
  attributes.insert_or_assign("axis", static_cast<int64_t>(axis));
  attributes.insert_or_assign("keepdims", int64_t{0});
  HONE_ASSIGN_OR_RETURN(const ValueId data, AddReshape(graph, node.inputs[0], flat));
  HONE_ASSIGN_OR_RETURN(const ValueId found, AddOp(graph, node.op, {data}, std::move(attributes)));
  return AddReshape(graph, found, to);
}

absl::StatusOr<ValueId> FlattenOne(Graph& graph, const Node& node) {
  return Is(node, "ArgMax") || Is(node, "ArgMin") ? FlattenSearch(graph, node) : FlattenReduction(graph, node);
}

}  // namespace

absl::Status FlattenReductions(Graph& graph) { return LowerNodes(graph, FlattenOne); }

}  // namespace hone::graph
