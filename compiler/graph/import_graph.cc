// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/import_graph.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status.h"
#include "compiler/graph/control_flow.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/size_elements.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

constexpr int64_t kFoldStepsMax =
    1 << 16;  // interpreter steps per node; enough for shape arithmetic, larger constants are left to the passes
// Interpreter steps per node for large constants whose values an operator needs at import (as in
// passes/constant_fold.cc).
constexpr int64_t kNeededFoldStepsMax = int64_t{1} << 25;

}  // namespace

namespace {

// The size that a dimension must have in all operands: a number other than 1 if there is one, else the size with the
// smallest maximum, for which all operands have memory. Empty if the sizes are equal or can never be.
std::optional<ir::Size> CommonExtent(const std::vector<ir::Size>& extents) {
  std::optional<ir::Size> common;
  bool differ = false;
  for (const ir::Size& extent : extents) {
    if (extent == ir::Size(1) || extent == common) continue;
    differ = differ || common.has_value();
    if (common.has_value() && common->IsFixed() && extent.IsFixed()) return std::nullopt;
    if (!common.has_value() || extent.IsFixed() || (!common->IsFixed() && extent.max() < common->max()))
      common = extent;
  }
  const auto may_be = [&](const ir::Size& extent) { return extent == ir::Size(1) || extent.max() >= common->max(); };
  return differ && std::ranges::all_of(extents, may_be) ? common : std::nullopt;
}

}  // namespace

absl::StatusOr<bool> ImportGraph::FitInputs(Node& node) {
  if (AxisFormOf(node) != AxisForm::kBroadcast || graph.sizes.empty() || proves_sizes) return false;
  std::vector<ir::Shape> shapes;
  size_t rank = 0;
  for (const ValueId id : node.inputs) {
    shapes.push_back(id == kAbsent ? ir::Shape{} : graph.values[id].type.shape);
    rank = std::max(rank, shapes.back().size());
  }
  std::vector<bool> fits(shapes.size(), false);
  for (size_t from_end = 1; from_end <= rank; ++from_end) {
    std::vector<ir::Size> extents;
    for (const ir::Shape& shape : shapes) {
      extents.push_back(from_end <= shape.size() ? shape[shape.size() - from_end] : ir::Size(1));
    }
    const std::optional<ir::Size> common = CommonExtent(extents);
    for (size_t i = 0; i < extents.size() && common.has_value(); ++i) {
      if (extents[i] == ir::Size(1) || extents[i] == *common) continue;
      shapes[i][shapes[i].size() - from_end] = *common;
      fits[i] = true;
    }
  }
  for (size_t i = 0; i < fits.size(); ++i) {
    if (!fits[i]) continue;
    HONE_ASSIGN_OR_RETURN(
        node.inputs[i], AddOp(graph, "Fit", {node.inputs[i], AddSizes(graph, "shape", shapes[i])}, {}, kControlDomain));
  }
  return std::ranges::find(fits, true) != fits.end();
}

absl::StatusOr<std::vector<ValueId>> ImportGraph::AddOperator(const Node& node, const std::vector<std::string>& names,
                                                              int64_t& steps_left) {
  const size_t values = graph.values.size();
  absl::StatusOr<std::vector<ValueId>> outputs = AddNode(graph, node, names);
  absl::Status too_large;
  for (auto id = node.inputs.rbegin(); !outputs.ok() && id != node.inputs.rend(); ++id) {
    graph.values.resize(values);
    const absl::StatusOr<bool> folded = FoldValue(*id, steps_left);
    too_large.Update(folded.status());
    if (folded.ok() && *folded) outputs = AddNode(graph, node, names);
  }
  if (outputs.ok()) return outputs;
  graph.values.resize(values);
  Node fitted = node;
  HONE_ASSIGN_OR_RETURN(const bool fits, FitInputs(fitted));
  if (fits) return AddNode(graph, std::move(fitted), names);
  if (too_large.ok()) return outputs;
  return absl::Status(outputs.status().code(), fmt::format("{} ({})", std::string(outputs.status().message()),
                                                           std::string(too_large.message())));
}

// Computes the node's outputs and stores their data; ResourceExhausted if it takes more steps than the limit.
absl::Status ImportGraph::Compute(const Node& node, int64_t max_steps, int64_t* steps) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Constant> values, Evaluate(graph, node, max_steps, steps));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kAbsent) graph.values[node.outputs[i]].data = values[i].data;
  }
  return absl::OkStatus();
}

absl::Status ImportGraph::Fold() {
  const Node& added = graph.nodes.back();
  if (IsControlFlow(added)) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const bool known, IsKnown(graph, added));
  if (known && !FactsOf(added).fold_late) {
    const absl::Status computed = Compute(added, kFoldStepsMax);
    if (computed.ok()) graph.nodes.pop_back();
    if (!absl::IsResourceExhausted(computed)) return computed;
  }
  const auto constant = [&](ValueId id) {
    return id == kAbsent || graph.values[id].data != nullptr || unfolded.contains(id) || late.contains(id);
  };
  if (!known) {
    HONE_ASSIGN_OR_RETURN(const bool folded, FoldElements(graph, added));
    if (folded) {
      graph.nodes.pop_back();
      return absl::OkStatus();
    }
  }
  if (!known && !std::all_of(added.inputs.begin(), added.inputs.end(), constant)) return absl::OkStatus();
  unfolded.insert(added.outputs.begin(), added.outputs.end());
  unfolded.erase(kAbsent);
  return absl::OkStatus();
}

// Sets the data of those of `values` that are in late. An input with a default becomes a constant thereby.
absl::Status ImportGraph::ReadLate(const std::set<ValueId>& values) {
  for (const ValueId id : values) {
    const auto read = late.find(id);
    if (read == late.end()) continue;
    HONE_ASSIGN_OR_RETURN(graph.values[id].data, read->second());
    late.erase(read);
    if (graph.defaults.erase(id) > 0) std::erase(graph.inputs, id);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ImportGraph::FoldValue(ValueId id, int64_t& steps_left) {
  if (!unfolded.contains(id) && !late.contains(id)) return false;
  std::set<ValueId> wanted = {id};
  std::vector<bool> folds(graph.nodes.size(), false);
  for (size_t i = folds.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    folds[i] = std::any_of(node.outputs.begin(), node.outputs.end(),
                           [&](ValueId made) { return unfolded.contains(made) && wanted.contains(made); });
    if (folds[i]) wanted.insert(node.inputs.begin(), node.inputs.end());
  }
  HONE_RETURN_IF_ERROR(ReadLate(wanted));
  absl::Status status;
  size_t next = 0;
  std::erase_if(graph.nodes, [&](const Node& node) {
    if (!folds[next++] || !status.ok()) return false;
    int64_t steps = 0;
    status = Annotate(Compute(node, std::min(kNeededFoldStepsMax, steps_left), &steps),
                      fmt::format("node '{}' ({})", node.name, node.op));
    if (status.ok()) steps_left -= steps;
    return status.ok();
  });
  std::erase_if(unfolded, [&](ValueId made) { return graph.values[made].data != nullptr; });
  HONE_RETURN_IF_ERROR(status);
  return true;
}

ValueId ImportGraph::Capture(ImportGraph& outside, ValueId id, const std::string& name, int64_t& steps_left) {
  if (outside.unfolded.contains(id)) outside.FoldValue(id, steps_left).status().IgnoreError();
  const Value& value = outside.graph.values[id];
  const ValueId made = AddValue(graph, name, value.type, value.data);
  graph.values[made].name = name;
  graph.values[made].elements = value.elements;
  for (const ir::OpenSize& size : outside.graph.sizes) DeclareSize(graph, size);
  if (const auto known = outside.small.find(id); known != outside.small.end()) small[made] = known->second;
  return made;
}

}  // namespace hone::graph
