// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <numeric>
#include <utility>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/graph/passes/permute.h"
#include "compiler/graph/passes/view.h"

namespace hone::graph {
namespace {

using Ints = std::vector<int64_t>;
using ir::Shape;

// The source of position i when `groups` x `size` channels are read column by column.
Ints ShuffleIndices(int64_t groups, int64_t size) {
  Ints indices;
  for (int64_t i = 0; i < groups * size; ++i) indices.push_back(i % groups * size + i / groups);
  return indices;
}

// Returns the number of groups if the Transpose is the middle of a shuffle; else 0.
int64_t ShuffleGroups(const Graph& graph, const UseDefView& view, const Node& transpose) {
  const Shape& split = graph.values[transpose.inputs[0]].type.shape;
  if (split.size() != 5 || TransposePerm(transpose, 5) != Perm{0, 2, 1, 3, 4}) return 0;
  const Node* before = view.Producer(transpose.inputs[0]);
  const Node* after = view.OnlyConsumer(transpose.outputs[0]);
  if (before == nullptr || !IsView(*before) || view.OnlyConsumer(transpose.inputs[0]) == nullptr) return 0;
  if (after == nullptr || !IsView(*after)) return 0;
  const Shape whole = {split[0], split[1] * split[2], split[3], split[4]};
  const bool fits =
      graph.values[before->inputs[0]].type.shape == whole && graph.values[after->outputs[0]].type.shape == whole;
  return fits && split[1].IsFixed() && split[2].IsFixed() ? split[1].value() : 0;
}

// Returns the number of groups for which the constant indices are a shuffle; 0 if there is none.
int64_t GroupsOf(const Value& indices) {
  if (indices.data == nullptr || indices.type.dtype != ir::DType::kInt64 || indices.type.shape.size() != 1) return 0;
  const Ints values = ReadConstant<int64_t>(indices);
  const int64_t count = static_cast<int64_t>(values.size());
  for (int64_t groups = 2; groups < count; ++groups) {
    if (count % groups == 0 && values == ShuffleIndices(groups, count / groups)) return groups;
  }
  return 0;
}

absl::StatusOr<ValueId> Spell(Graph& graph, const Node& gather, int64_t groups) {
  const Shape whole = graph.values[gather.inputs[0]].type.shape;
  const int64_t rank = static_cast<int64_t>(whole.size());
  int64_t axis = IntAttribute(gather, "axis", 0);
  axis += axis < 0 ? rank : 0;
  Shape split = whole;
  split[axis] = split[axis] / groups;
  split.insert(split.begin() + axis, groups);
  Perm perm(split.size());
  std::iota(perm.begin(), perm.end(), int64_t{0});
  std::swap(perm[axis], perm[axis + 1]);
  HONE_ASSIGN_OR_RETURN(const ValueId parts, AddReshape(graph, gather.inputs[0], split));
  HONE_ASSIGN_OR_RETURN(const ValueId swapped, AddOp(graph, "Transpose", {parts}, {{"perm", perm}}));
  return AddReshape(graph, swapped, whole);
}

}  // namespace

absl::Status NameShuffles(Graph& graph) {
  std::map<ValueId, ValueId> replacements;
  const UseDefView view(graph);
  const size_t count = graph.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const Node transpose = graph.nodes[i];
    const int64_t groups = Is(transpose, "Transpose") ? ShuffleGroups(graph, view, transpose) : 0;
    if (groups < 2) continue;
    const ValueId source = view.Producer(transpose.inputs[0])->inputs[0];
    const ValueId result = view.OnlyConsumer(transpose.outputs[0])->outputs[0];
    const int64_t channels = graph.values[source].type.shape[1].value();
    const ValueId indices = AddConstant<int64_t>(graph, "shuffle", ir::DType::kInt64, {channels},
                                                 ShuffleIndices(groups, channels / groups));
    HONE_ASSIGN_OR_RETURN(replacements[result], AddOp(graph, "Gather", {source, indices}, {{"axis", int64_t{1}}}));
  }
  ReplaceUses(graph, replacements);
  Tidy(graph);
  return absl::OkStatus();
}

absl::Status SpellShuffles(Graph& graph) {
  std::map<ValueId, ValueId> replacements;
  const size_t count = graph.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const Node gather = graph.nodes[i];
    if (!Is(gather, "Gather") || graph.values[gather.inputs[0]].type != graph.values[gather.outputs[0]].type) continue;
    const int64_t groups = GroupsOf(graph.values[gather.inputs[1]]);
    if (groups < 2) continue;
    HONE_ASSIGN_OR_RETURN(replacements[gather.outputs[0]], Spell(graph, gather, groups));
  }
  ReplaceUses(graph, replacements);
  Tidy(graph);
  return absl::OkStatus();
}

}  // namespace hone::graph
