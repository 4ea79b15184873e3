// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/ops/vocabulary.h"
#include "compiler/graph/passes/passes.h"

namespace hone::graph {
namespace {

using Ints = std::vector<int64_t>;
using Values = std::vector<ValueId>;

constexpr int64_t kUnsplitLengthMax =
    512;  // up to this axis length, quadratic work costs less than the extra launches of blocks
constexpr int64_t kBlock = 128;
// A CPU unrolls a sum over one of these blocks, and launches cost little: see ScanBlocks.
constexpr int64_t kUnrolledBlock = 16, kUnrolledBlockMin = 12;
constexpr int64_t kUnrolledLengthMax = 24;                   // the longest axis whose sums are unrolled without blocks
constexpr int64_t kManyForNetwork = 8, kManyForDigits = 64;  // elements for each that is taken
constexpr int64_t kHeldMax = 16, kManyForHeld = 256;         // so many stay in registers, by several threads
constexpr int64_t kRankedLengthMax = 64, kRankedComparisonsMax = 32 << 10;  // up to either, ranks beat digits
constexpr int64_t kColumnsMin = 8;                                          // so many columns fill vectors
constexpr int64_t kQuadraticStepsMax = 100 << 10;  // the most additions of a short axis that cost less than launches

const Shape& DimsOf(const Graph& graph, ValueId value) { return graph.values[value].type.shape; }

// The shape with the axis split into blocks.
Shape Blocked(Shape shape, int64_t axis, int64_t blocks, int64_t block) {
  shape[static_cast<size_t>(axis)] = blocks;
  shape.insert(shape.begin() + axis + 1, block);
  return shape;
}

// The shape with another extent for the axis.
Shape WithExtent(Shape shape, int64_t axis, int64_t extent) {
  shape[static_cast<size_t>(axis)] = extent;
  return shape;
}

// --- CumSum

struct Sums {
  int64_t axis;
  int64_t exclusive, reverse;  // the values of the attributes
};

absl::StatusOr<ValueId> AddCumSum(Graph& graph, ValueId value, const Sums& sums) {
  return AddOp(graph, "CumSum", {value, AddInts(graph, "axis", {sums.axis})},
               {{"exclusive", sums.exclusive}, {"reverse", sums.reverse}});
}

// Whether threads make the sums of all columns behind the axis in one pass, row by row (schedule step `scan`).
bool ScansColumns(const Graph& graph, const Shape& shape, int64_t axis) {
  const auto place = static_cast<size_t>(axis);
  return !graph.target.facts().has_grid && shape[place].max() > kUnrolledLengthMax &&
         ir::Product(std::span(shape).subspan(place + 1)).max() >= kColumnsMin;
}

// How the axis of a CumSum is cut: the length of a block; 0 if the sums are better made without blocks. With a block
// that is unrolled, each sum is one addition to the sum before it. Lanes have no such chains: they all add at once.
int64_t ScanBlock(const Graph& graph, const Shape& shape, int64_t axis) {
  const int64_t extent = shape[static_cast<size_t>(axis)].value();
  if (graph.target.facts().has_grid) return extent <= kUnsplitLengthMax ? 0 : kBlock;
  if (extent <= kUnrolledLengthMax || ScansColumns(graph, shape, axis)) return 0;
  if (extent <= kUnsplitLengthMax && ir::Product(shape).max() <= kQuadraticStepsMax / extent) return 0;
  for (int64_t block = kUnrolledBlock; block >= kUnrolledBlockMin; --block) {
    if (extent % block == 0) return block;  // no padding
  }
  return kUnrolledBlock;
}

absl::StatusOr<ValueId> SumUp(Graph& graph, ValueId value, const Sums& sums) {
  const Shape shape = DimsOf(graph, value);
  const int64_t axis = sums.axis, extent = shape[static_cast<size_t>(axis)].value();
  const int64_t block = ScanBlock(graph, shape, axis);
  if (block == 0) return AddCumSum(graph, value, sums);
  const int64_t blocks = (extent + block - 1) / block;
  if (extent % block != 0) {
    Ints pads(2 * shape.size(), 0);
    pads[shape.size() + static_cast<size_t>(axis)] = blocks * block - extent;
    HONE_ASSIGN_OR_RETURN(value, AddOp(graph, "Pad", {value, AddInts(graph, "pads", pads)}));
  }
  HONE_ASSIGN_OR_RETURN(value, AddReshape(graph, value, Blocked(shape, axis, blocks, block)));
  HONE_ASSIGN_OR_RETURN(ValueId before, AddOp(graph, "ReduceSum", {value, AddInts(graph, "axes", {axis + 1})},
                                              {{"keepdims", int64_t{0}}}));
  HONE_ASSIGN_OR_RETURN(before, SumUp(graph, before, {axis, 1, sums.reverse}));
  HONE_ASSIGN_OR_RETURN(before, AddReshape(graph, before, Blocked(shape, axis, blocks, 1)));
  HONE_ASSIGN_OR_RETURN(ValueId within, AddCumSum(graph, value, {axis + 1, sums.exclusive, sums.reverse}));
  HONE_ASSIGN_OR_RETURN(value, AddOp(graph, "Add", {within, before}));
  HONE_ASSIGN_OR_RETURN(value, AddReshape(graph, value, WithExtent(shape, axis, blocks * block)));
  if (extent % block == 0) return value;
  return AddSlice(graph, value, axis, 0, extent);
}

absl::StatusOr<Values> SplitCumSum(Graph& graph, const Node& node) {
  const ValueId data = node.inputs[0];
  const TensorType type = graph.values[data].type;
  const Value& axes = graph.values[node.inputs[1]];
  const int64_t given =
      axes.type.dtype == ir::DType::kInt32 ? ReadConstant<int32_t>(axes)[0] : ReadConstant<int64_t>(axes)[0];
  const int64_t axis = AxisFromFront(given, type.shape.size());
  const Size& extent = type.shape[static_cast<size_t>(axis)];
  const bool several_columns =
      static_cast<size_t>(axis) + 2 < type.shape.size() && ScansColumns(graph, type.shape, axis);
  if (!extent.IsFixed() || (ScanBlock(graph, type.shape, axis) == 0 && !several_columns)) return Values{};
  const Sums sums{axis, IntAttribute(node, "exclusive", 0), IntAttribute(node, "reverse", 0)};
  HONE_ASSIGN_OR_RETURN(ValueId sum, AddCast(graph, data, ComputeType(type.dtype)));
  // The dimensions after the axis become one, so that vectors lie along all of them.
  Shape flat(type.shape.begin(), type.shape.begin() + axis + 1);
  flat.push_back(ir::Product(std::span(type.shape).subspan(static_cast<size_t>(axis) + 1)));
  if (flat.size() < type.shape.size()) {
    HONE_ASSIGN_OR_RETURN(sum, AddReshape(graph, sum, flat));
  }
  HONE_ASSIGN_OR_RETURN(sum, SumUp(graph, sum, sums));
  HONE_ASSIGN_OR_RETURN(sum, AddReshape(graph, sum, type.shape));
  HONE_ASSIGN_OR_RETURN(sum, AddCast(graph, sum, type.dtype));
  return Values{sum};
}

// --- TopK

struct Choice {
  int64_t axis, count;
  int64_t largest, sorted;  // the values of the attributes
};

// Whether the axis is sorted by digits, which only threads can do. A short axis, or few comparisons, is ordered faster
// by ranks.
bool SortsByDigits(const Graph& graph, const Shape& shape, int64_t axis) {
  const int64_t extent = shape[static_cast<size_t>(axis)].max();
  if (graph.target.facts().has_grid || extent <= kRankedLengthMax || extent > INT32_MAX) return false;
  return ir::Product(shape).max() > kRankedComparisonsMax / extent;
}

absl::StatusOr<Values> AddTopK(Graph& graph, ValueId value, const Choice& choice) {
  const bool digits = SortsByDigits(graph, DimsOf(graph, value), choice.axis);
  return AddNode(graph,
                 {.name = {},
                  .op = digits ? "DigitTopK" : "TopK",
                  .domain = digits ? "hone" : "",
                  .opset = kOwnOpset,
                  .inputs = {value, AddInts(graph, "k", {choice.count})},
                  .outputs = {kNewValue, kNewValue},
                  .attributes = {{"axis", choice.axis}, {"largest", choice.largest}, {"sorted", choice.sorted}}});
}

// Whether few of many elements are taken, so that most of them can be left out first. Threads leave them out
// themselves (compiler/passes/order_loops.h), and groups are faster only for very few of the largest.
bool TakesFewOfMany(const Graph& graph, const Shape& shape, const Choice& choice) {
  const int64_t extent = shape[static_cast<size_t>(choice.axis)].value();
  if (extent <= kUnsplitLengthMax || choice.count == 0) return false;
  if (!SortsByDigits(graph, shape, choice.axis)) return extent >= kManyForNetwork * choice.count;
  const int64_t many = choice.count <= kHeldMax && graph.target.threads > 1 ? kManyForHeld : kManyForDigits;
  return choice.largest != 0 && extent >= many * choice.count;
}

// Elements of one line, and their positions along it.
struct Candidates {
  ValueId values, positions;
};

absl::StatusOr<Values> Take(Graph& graph, ValueId value, const Choice& choice);

// The numbers first + step * [0, count) along an axis of a value with `rank` dimensions; the other extents are 1.
ValueId AddSteps(Graph& graph, std::string_view hint, int64_t axis, size_t rank, int64_t count, int64_t step,
                 int64_t first = 0) {
  Ints steps(static_cast<size_t>(count)), dims(rank - static_cast<size_t>(axis), 1);
  for (int64_t k = 0; k < count; ++k) steps[static_cast<size_t>(k)] = first + k * step;
  dims[0] = count;
  return AddConstant<int64_t>(graph, hint, ir::DType::kInt64, dims, steps);
}

// Chooses the first k from the results of all blocks and from the incomplete last block. These candidates stay in axis
// order, so that of equal elements the first is chosen, as in the unsplit TopK.
absl::StatusOr<Values> TakeOfRest(Graph& graph, ValueId value, Candidates left, int64_t whole, const Choice& choice) {
  const Shape shape = DimsOf(graph, value);
  const int64_t axis = choice.axis, extent = shape[static_cast<size_t>(axis)].value();
  if (whole < extent) {
    const ValueId places = AddSteps(graph, "rest", axis, shape.size(), extent - whole, 1, whole);
    const ValueId rest_shape = AddSizes(graph, "shape", WithExtent(shape, axis, extent - whole));
    HONE_ASSIGN_OR_RETURN(const ValueId expanded, AddOp(graph, "Expand", {places, rest_shape}));
    HONE_ASSIGN_OR_RETURN(const ValueId tail, AddSlice(graph, value, axis, whole, extent));
    HONE_ASSIGN_OR_RETURN(left.positions, AddOp(graph, "Concat", {left.positions, expanded}, {{"axis", axis}}));
    HONE_ASSIGN_OR_RETURN(left.values, AddOp(graph, "Concat", {left.values, tail}, {{"axis", axis}}));
  }
  HONE_ASSIGN_OR_RETURN(Values result, Take(graph, left.values, choice));
  HONE_ASSIGN_OR_RETURN(result[1], AddOp(graph, "GatherElements", {left.positions, result[1]}, {{"axis", axis}}));
  return result;
}

// The largest k elements are in the k groups with the largest maxima: the maxima of k other groups precede every
// element of any other group. The number of groups is chosen near the number of remaining elements, which minimizes the
// comparisons.
absl::StatusOr<Values> TakeOfGroups(Graph& graph, ValueId value, const Choice& choice) {
  const Shape shape = DimsOf(graph, value);
  const int64_t axis = choice.axis, extent = shape[static_cast<size_t>(axis)].value(), count = choice.count;
  const auto group = static_cast<int64_t>(std::sqrt(static_cast<double>(extent) / static_cast<double>(count)));
  const int64_t groups = extent / group, whole = groups * group;
  HONE_ASSIGN_OR_RETURN(ValueId data, AddSlice(graph, value, axis, 0, whole));
  HONE_ASSIGN_OR_RETURN(data, AddReshape(graph, data, Blocked(shape, axis, groups, group)));
  HONE_ASSIGN_OR_RETURN(const ValueId most, AddOp(graph, "ReduceMax", {data, AddInts(graph, "axes", {axis + 1})},
                                                  {{"keepdims", int64_t{0}}}));
  HONE_ASSIGN_OR_RETURN(const Values tops, Take(graph, most, {axis, count, 1, 1}));
  HONE_ASSIGN_OR_RETURN(ValueId chosen, AddCast(graph, tops[1], ir::DType::kInt32));
  HONE_ASSIGN_OR_RETURN(const Values in_order, AddTopK(graph, chosen, {axis, count, 0, 1}));
  const Shape parts = Blocked(shape, axis, count, group), left = WithExtent(shape, axis, count * group);
  Shape one = parts;
  one[static_cast<size_t>(axis) + 1] = 1;
  HONE_ASSIGN_OR_RETURN(chosen, AddReshape(graph, in_order[0], one));
  HONE_ASSIGN_OR_RETURN(const ValueId indices, AddOp(graph, "Expand", {chosen, AddSizes(graph, "shape", parts)}));
  HONE_ASSIGN_OR_RETURN(data, AddOp(graph, "GatherElements", {data, indices}, {{"axis", axis}}));
  HONE_ASSIGN_OR_RETURN(data, AddReshape(graph, data, left));
  HONE_ASSIGN_OR_RETURN(ValueId positions, AddCast(graph, chosen, ir::DType::kInt64));
  const ValueId size = AddConstant<int64_t>(graph, "group", ir::DType::kInt64, {}, {group});
  HONE_ASSIGN_OR_RETURN(positions, AddOp(graph, "Mul", {positions, size}));
  HONE_ASSIGN_OR_RETURN(positions,
                        AddOp(graph, "Add", {positions, AddSteps(graph, "steps", axis + 1, parts.size(), group, 1)}));
  HONE_ASSIGN_OR_RETURN(positions, AddReshape(graph, positions, left));
  return TakeOfRest(graph, value, {data, positions}, whole, choice);
}

// The smallest k elements are among the smallest k of every block. (Groups with the smallest minima would be wrong: a
// NaN, which sorts last, would be its group's minimum.) Blocks of four times k leave a quarter of the axis.
absl::StatusOr<Values> TakeOfBlocks(Graph& graph, ValueId value, const Choice& choice) {
  const Shape shape = DimsOf(graph, value);
  const int64_t axis = choice.axis, extent = shape[static_cast<size_t>(axis)].value();
  const int64_t block = std::max(kBlock, 4 * choice.count), blocks = extent / block, whole = blocks * block;
  const Shape left = WithExtent(shape, axis, blocks * choice.count);
  HONE_ASSIGN_OR_RETURN(ValueId data, AddSlice(graph, value, axis, 0, whole));
  HONE_ASSIGN_OR_RETURN(data, AddReshape(graph, data, Blocked(shape, axis, blocks, block)));
  HONE_ASSIGN_OR_RETURN(const Values tops, AddTopK(graph, data, {axis + 1, choice.count, choice.largest, 1}));
  const ValueId first = AddSteps(graph, "steps", axis, shape.size() + 1, blocks, block);
  HONE_ASSIGN_OR_RETURN(ValueId positions, AddOp(graph, "Add", {tops[1], first}));
  HONE_ASSIGN_OR_RETURN(positions, AddReshape(graph, positions, left));
  HONE_ASSIGN_OR_RETURN(data, AddReshape(graph, tops[0], left));
  return TakeOfRest(graph, value, {data, positions}, whole, choice);
}

absl::StatusOr<Values> Take(Graph& graph, ValueId value, const Choice& choice) {
  if (!TakesFewOfMany(graph, DimsOf(graph, value), choice)) return AddTopK(graph, value, choice);
  return choice.largest != 0 ? TakeOfGroups(graph, value, choice) : TakeOfBlocks(graph, value, choice);
}

absl::StatusOr<Values> SplitTopK(Graph& graph, const Node& node) {
  const Shape& shape = DimsOf(graph, node.inputs[0]);
  const int64_t axis = AxisFromFront(IntAttribute(node, "axis", -1), shape.size());
  const ValueId some = node.outputs[0] != kAbsent ? node.outputs[0] : node.outputs[1];
  const Size &extent = shape[static_cast<size_t>(axis)], &count = DimsOf(graph, some)[static_cast<size_t>(axis)];
  if (extent.IsFixed() && count.IsFixed()) {
    const Choice choice{axis, count.value(), IntAttribute(node, "largest", 1), IntAttribute(node, "sorted", 1)};
    if (TakesFewOfMany(graph, shape, choice)) return Take(graph, node.inputs[0], choice);
  }
  if (!SortsByDigits(graph, shape, axis)) return Values{};
  return AddNode(graph, {.name = {},
                         .op = "DigitTopK",
                         .domain = "hone",
                         .opset = kOwnOpset,
                         .inputs = node.inputs,
                         .outputs = {kNewValue, kNewValue},
                         .attributes = node.attributes});
}

absl::StatusOr<Values> SplitLongAxis(Graph& graph, const Node& node) {
  if (Is(node, "CumSum")) return SplitCumSum(graph, node);
  if (Is(node, "TopK")) return SplitTopK(graph, node);
  return Values{};
}

}  // namespace

absl::Status SplitAxes(Graph& graph) { return ReplaceNodes(graph, SplitLongAxis); }

}  // namespace hone::graph
