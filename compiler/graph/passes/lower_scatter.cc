// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/graph/passes/view.h"

namespace hone::graph {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kScatterPlacesMax = int64_t{1} << 25;  // a map of this size takes 128 MiB

bool IsScatter(const Node& node) { return Is(node, "Scatter") || Is(node, "ScatterElements") || Is(node, "ScatterND"); }

std::optional<Ints> ReadIndices(const Value& indices) {
  if (indices.data == nullptr) return std::nullopt;
  if (indices.type.dtype == ir::DType::kInt64) return ReadConstant<int64_t>(indices);
  if (indices.type.dtype != ir::DType::kInt32) return std::nullopt;
  const std::vector<int32_t> narrow = ReadConstant<int32_t>(indices);
  return Ints(narrow.begin(), narrow.end());
}

int64_t CountElements(const Ints& shape) { return TensorType{ir::DType::kInt64, shape}.elements().value(); }

// Converts an index to one counted from the front, modulo the extent, as the operator does.
int64_t FromFront(int64_t index, int64_t extent) { return (index % extent + extent) % extent; }

// The destinations of a scatter's updates. A place is a row-major element number.
struct ScatterShape {
  Ints updates;  // leading extents of the updates: one index tuple each
  Ints places;   // leading extents of the data that the indices address
};

// Returns nullopt if an extent is open. The indices are constant.
std::optional<ScatterShape> ReadScatterShape(const Graph& graph, const Node& node) {
  ir::Shape places = graph.values[node.inputs[0]].type.shape;
  ScatterShape scatter{ir::Values(graph.values[node.inputs[1]].type.shape), {}};
  if (Is(node, "ScatterND")) {
    places.resize(static_cast<size_t>(scatter.updates.back()));
    scatter.updates.pop_back();
  }
  if (!ir::IsFixed(places)) return std::nullopt;
  scatter.places = ir::Values(places);
  return scatter;
}

// The place of each update of a ScatterND, from its index tuple.
Ints PlacesOfTuples(const ScatterShape& scatter, const Ints& indices) {
  Ints places(static_cast<size_t>(CountElements(scatter.updates)), 0);
  const size_t depth = scatter.places.size();
  for (size_t k = 0; k < indices.size(); ++k) {
    const int64_t extent = scatter.places[k % depth];
    places[k / depth] = places[k / depth] * extent + FromFront(indices[k], extent);
  }
  return places;
}

// The same for ScatterElements: the update's own position, with the index replacing the one along the axis.
Ints PlacesOfElements(const ScatterShape& scatter, const Ints& indices, int64_t axis) {
  const size_t rank = scatter.places.size();
  const size_t indexed = static_cast<size_t>(AxisFromFront(axis, rank));
  Ints places(indices.size(), 0);
  for (size_t k = 0; k < indices.size(); ++k) {
    int64_t rest = static_cast<int64_t>(k), stride = 1;
    for (size_t d = rank; d-- > 0; rest /= scatter.updates[d], stride *= scatter.places[d]) {
      const int64_t own = rest % scatter.updates[d];
      places[k] += stride * (d == indexed ? FromFront(indices[k], scatter.places[d]) : own);
    }
  }
  return places;
}

// A scatter seen from its result.
struct InverseMap {
  std::vector<int32_t> updates;  // per place: the last update that goes there; -1 (a valid Gather index) if none
  std::vector<uint8_t> written;  // per place: whether an update goes there
  bool distinct = true;          // whether no two updates go to one place
};

InverseMap InvertPlaces(const Ints& places, int64_t count) {
  InverseMap inverse{std::vector<int32_t>(count, -1), std::vector<uint8_t>(count, 0)};
  for (size_t u = 0; u < places.size(); ++u) {
    uint8_t& written = inverse.written[places[u]];
    inverse.distinct = inverse.distinct && written == 0;
    written = 1;
    inverse.updates[places[u]] = static_cast<int32_t>(u);
  }
  return inverse;
}

// The operator that combines the data with an update; "" if the update replaces the data.
std::string_view CombinerOf(const Node& node) {
  const std::string reduction = StringAttribute(node, "reduction", "none");
  if (reduction == "add") return "Add";
  if (reduction == "mul") return "Mul";
  if (reduction == "max") return "Max";
  return reduction == "min" ? "Min" : "";
}

absl::StatusOr<ValueId> LowerScatter(Graph& graph, const Node& node) {
  const std::optional<Ints> indices = IsScatter(node) ? ReadIndices(graph.values[node.inputs[1]]) : std::nullopt;
  if (!indices) return kAbsent;
  const ValueId data = node.inputs[0];
  const ir::Shape shape = graph.values[data].type.shape;
  const std::optional<ScatterShape> found = ReadScatterShape(graph, node);
  if (!found) return kAbsent;
  const ScatterShape& scatter = *found;
  const int64_t updates = CountElements(scatter.updates), places = CountElements(scatter.places);
  if (updates == 0 || places == 0 || updates > kScatterPlacesMax || places > kScatterPlacesMax) return kAbsent;
  const InverseMap inverse =
      InvertPlaces(Is(node, "ScatterND") ? PlacesOfTuples(scatter, *indices)
                                         : PlacesOfElements(scatter, *indices, IntAttribute(node, "axis", 0)),
                   places);
  const std::string_view combiner = CombinerOf(node);
  if (!combiner.empty() && !inverse.distinct) return kAbsent;

  ir::Shape list = {updates}, mask = scatter.places;  // shapes of the flattened updates and of `written`
  list.insert(list.end(), shape.begin() + static_cast<std::ptrdiff_t>(scatter.places.size()), shape.end());
  mask.resize(shape.size(), 1);
  const ValueId map = AddConstant(graph, "map", ir::DType::kInt32, scatter.places, inverse.updates);
  const ValueId written = AddConstant(graph, "written", ir::DType::kBool, mask, inverse.written);
  HONE_ASSIGN_OR_RETURN(ValueId value, AddReshape(graph, node.inputs[2], list));
  HONE_ASSIGN_OR_RETURN(value, AddOp(graph, "Gather", {value, map}));
  if (!combiner.empty()) {
    HONE_ASSIGN_OR_RETURN(value, AddOp(graph, combiner, {data, value}));
  }
  return AddOp(graph, "Where", {written, value, data});
}

// Replaces a ScatterElements along the first axis whose indices are equal along each row (expanded from one index per
// row) by a ScatterND of complete rows. It then searches once per row instead of once per element.
absl::StatusOr<ValueId> ScatterRows(Graph& graph, const UseDefView& view, const Node& node) {
  if (!IsScatter(node) || Is(node, "ScatterND")) return kAbsent;
  const ir::Shape shape = graph.values[node.inputs[0]].type.shape, updates = graph.values[node.inputs[1]].type.shape;
  if (shape.size() < 2 || AxisFromFront(IntAttribute(node, "axis", 0), shape.size()) != 0) return kAbsent;
  if (!std::equal(shape.begin() + 1, shape.end(), updates.begin() + 1)) return kAbsent;
  const Node* expand = view.Producer(node.inputs[1], "Expand");
  if (expand == nullptr) return kAbsent;
  const ValueId rows = expand->inputs[0];
  ir::Shape expanded(shape.size(), 1);
  expanded[0] = updates[0];
  if (graph.values[rows].type.shape != expanded) return kAbsent;
  HONE_ASSIGN_OR_RETURN(const ValueId tuples, AddReshape(graph, rows, ir::Shape{updates[0], 1}));
  std::map<std::string, Attribute> attributes;
  if (const auto reduction = node.attributes.find("reduction"); reduction != node.attributes.end())
    attributes.insert(*reduction);
  return AddOp(graph, "ScatterND", {node.inputs[0], tuples, node.inputs[2]}, std::move(attributes));
}

}  // namespace

absl::Status LowerScatters(Graph& graph) {
  const UseDefView view(graph);
  HONE_RETURN_IF_ERROR(LowerNodes(graph, [&](Graph& g, const Node& node) { return ScatterRows(g, view, node); }));
  return LowerNodes(graph, LowerScatter);
}

}  // namespace hone::graph
