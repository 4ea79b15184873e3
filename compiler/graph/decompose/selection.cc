// SPDX-License-Identifier: Apache-2.0
// Rules for operators of ai.onnx whose outputs have as many elements as the data selects: NonZero, Compress, Unique.
//
// All of them count: the number of selected elements up to each place gives the size of the output and, by a binary
// search (Places), where its elements come from. If the data is constant, NonZero and Compress are left to
// passes/lower_selection.cc.
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

using ir::DType;

constexpr int64_t kAll = -1;

// What a list of bools selects.
struct Selection {
  ir::Size size;             // the number of selected elements
  ValueId counts = kAbsent;  // i64[n]: the number of selected elements up to each, itself included
  ValueId places = kAbsent;  // i64[size]: where they are
};

Selection Select(Decomposition& b, ValueId chosen) {
  const ValueId ones = b.Cast(chosen, DType::kInt64);
  Selection result;
  result.counts = b.Op("CumSum", {ones, b.Number(DType::kInt64, 0)});
  const ValueId count = b.Op("ReduceSum", {ones, b.List({0})}, {{"keepdims", int64_t{0}}});
  result.size = b.ReadSize(count, b.Type(ones).shape.empty() ? ir::Size(1) : b.Type(ones).shape[0]);
  result.places = b.Op("Places", {result.counts, b.SizeList({result.size})}, {}, "hone");
  return result;
}

// Whether each element differs from zero.
ValueId IsNonZero(Decomposition& b, ValueId x) {
  if (b.ElementType(x) == DType::kBool) return x;
  return b.Op("Not", {b.Op("Equal", {x, b.Like(x, 0)})});
}

absl::StatusOr<Values> NonZero(Decomposition& b) {
  const ValueId x = b.Input(0);
  if (b.IsKnown(x)) return Values{};
  const size_t rank = b.Rank(x);
  if (rank == 0) return Unsupported("NonZero of a scalar is supported only if the scalar is a constant");
  const ValueId places = Select(b, b.Reshape(IsNonZero(b, x), {kAll})).places;
  if (rank == 1) return Values{b.Unsqueeze(places, {0})};
  Values rows(rank);
  ValueId rest = places;
  for (size_t d = rank; d-- > 0;) {
    const ValueId extent = b.ShapeOf(x, static_cast<int64_t>(d), 1);
    rows[d] = b.Unsqueeze(d == 0 ? rest : b.Op("Mod", {rest, extent}), {0});
    if (d > 0) rest = b.Div(rest, extent);
  }
  return Values{b.Concat(rows, 0)};
}

// Inputs: x, bools. Without an axis it selects from the flattened elements. Elements beyond the bools are left out.
absl::StatusOr<Values> Compress(Decomposition& b) {
  const ValueId condition = b.Input(1);
  if (b.IsKnown(condition)) return Values{};
  if (b.ElementType(condition) != DType::kBool || b.Rank(condition) != 1)
    return Malformed("input 1 must be a list of bool");
  const bool flat = !b.HasAttribute("axis");
  const ValueId x = flat ? b.Reshape(b.Input(0), {kAll}) : b.Input(0);
  return Values{b.Op("Gather", {x, Select(b, condition).places}, {{"axis", flat ? int64_t{0} : b.Int("axis", 0)}})};
}

// The rows of a matrix in ascending order, and what of them differs from the row before.
struct Sorted {
  ValueId order = kAbsent;   // i64[rows]: the place of each in the matrix; equal rows keep their order
  ValueId starts = kAbsent;  // bool[rows]: whether it is the first or differs from the one before
};

// Marks the elements along axis 0 of a list of bools: the first, and those marked in `differs`, which has one less.
ValueId WithFirst(Decomposition& b, ValueId list, ValueId differs) {
  const ValueId first = b.Op("Expand", {b.Number(DType::kBool, 1), b.Op("Min", {b.ShapeOf(list, 0, 1), b.List({1})})});
  return b.Concat({first, differs}, 0);
}

Sorted SortElements(Decomposition& b, ValueId list) {
  constexpr int64_t kEnd = INT64_MAX;
  const Values sorted =
      b.Ops("TopK", {list, b.ShapeOf(list, 0, 1)}, 2, {{"axis", int64_t{0}}, {"largest", int64_t{0}}});
  const ValueId same = b.Op("Equal", {b.Slice(sorted[0], 0, 1, kEnd), b.Slice(sorted[0], 0, 0, -1)});
  return {sorted[1], WithFirst(b, list, b.Op("Not", {same}))};
}

// Each row is compared with all others: its place in the order is the number of rows before it.
Sorted SortRows(Decomposition& b, ValueId matrix) {
  constexpr int64_t kEnd = INT64_MAX;
  const ValueId left = b.Unsqueeze(matrix, {1}), right = b.Unsqueeze(matrix, {0});
  const ValueId differs = b.Op("Not", {b.Op("Equal", {left, right})});  // [rows, rows, columns]
  const ValueId column = b.Op("ArgMax", {b.Cast(differs, DType::kInt32)}, {{"axis", int64_t{2}}});
  const ValueId less = b.Op("GatherElements", {b.Op("Less", {left, right}), column}, {{"axis", int64_t{2}}});
  const ValueId equal = b.Op("Not", {b.Op("GatherElements", {differs, column}, {{"axis", int64_t{2}}})});
  const ValueId places = b.Positions(matrix, 0);
  const ValueId earlier = b.Op("Less", {b.Unsqueeze(places, {1}), b.Unsqueeze(places, {0})});
  const ValueId before = b.Op("Or", {b.Squeeze(less, {2}), b.Op("And", {b.Squeeze(equal, {2}), earlier})});
  const ValueId rank = b.Op("ReduceSum", {b.Cast(before, DType::kInt64), b.List({0})}, {{"keepdims", int64_t{0}}});
  const Values order = b.Ops("TopK", {rank, b.ShapeOf(rank, 0, 1)}, 2, {{"axis", int64_t{0}}, {"largest", int64_t{0}}});
  const ValueId sorted = b.Op("Gather", {matrix, order[1]});
  const ValueId unlike = b.Op("Not", {b.Op("Equal", {b.Slice(sorted, 0, 1, kEnd), b.Slice(sorted, 0, 0, -1)})});
  const ValueId any =
      b.Op("ReduceMax", {b.Cast(unlike, DType::kInt32)}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}});
  return {order[1], WithFirst(b, rank, b.Cast(any, DType::kBool))};
}

// The different elements of a list or, with a matrix, its different rows.
struct Classes {
  ValueId first = kAbsent;     // i64: the first place of each
  ValueId class_of = kAbsent;  // i64[n]: for each element its place among them
  ValueId counts = kAbsent;    // i64: how often each occurs
};

Classes InOrder(Decomposition& b, const Sorted& sorted) {
  const Selection starts = Select(b, sorted.starts);
  const ValueId total = b.ShapeOf(sorted.order, 0, 1);
  const Values back = b.Ops("TopK", {sorted.order, total}, 2, {{"axis", int64_t{0}}, {"largest", int64_t{0}}});
  const ValueId class_of = b.Op("Gather", {b.Sub(starts.counts, b.Number(DType::kInt64, 1)), back[1]});
  const ValueId ends = b.Slice(b.Concat({starts.places, total}, 0), 0, 1, INT64_MAX);
  return {b.Op("Gather", {sorted.order, starts.places}), class_of, b.Sub(ends, starts.places)};
}

// The same classes in the order in which they first occur.
Classes AsTheyOccur(Decomposition& b, const Classes& classes) {
  const ValueId first_of = b.Op("Gather", {classes.first, classes.class_of});  // of each element, that of its class
  const Selection firsts = Select(b, b.Op("Equal", {first_of, b.Positions(first_of, 0)}));
  const ValueId class_of = b.Sub(b.Op("Gather", {firsts.counts, first_of}), b.Number(DType::kInt64, 1));
  return {firsts.places, class_of, b.Op("Gather", {classes.counts, b.Op("Gather", {classes.class_of, firsts.places})})};
}

// Outputs: the different elements or, with an axis, slices; the first place of each; for each element its place among
// them; how often each occurs. They are sorted, or stand as they first occur.
absl::StatusOr<Values> Unique(Decomposition& b) {
  const bool flat = !b.HasAttribute("axis");
  const ValueId x = flat ? b.Reshape(b.Input(0), {kAll}) : b.Input(0);
  const int64_t rank = static_cast<int64_t>(b.Rank(x));
  const int64_t axis = flat ? 0 : b.Int("axis", 0) + (b.Int("axis", 0) < 0 ? rank : 0);
  if (axis < 0 || axis >= rank) return Malformed(fmt::format("attribute axis is {}", b.Int("axis", 0)));
  std::vector<int64_t> front = {axis};
  for (int64_t d = 0; d < rank; ++d) {
    if (d != axis) front.push_back(d);
  }
  Classes classes = InOrder(b, flat ? SortElements(b, x) : SortRows(b, b.Reshape(b.Transpose(x, front), {0, kAll})));
  if (b.Int("sorted", 1) == 0) classes = AsTheyOccur(b, classes);
  return Values{b.Op("Gather", {x, classes.first}, {{"axis", axis}}), classes.first, classes.class_of, classes.counts};
}

// Outputs: the different elements in the order in which they occur, the place of each element among them, their counts.
absl::StatusOr<Values> MicrosoftUnique(Decomposition& b) {
  const Classes classes = AsTheyOccur(b, InOrder(b, SortElements(b, b.Input(0))));
  return Values{b.Op("Gather", {b.Input(0), classes.first}), classes.class_of, classes.counts};
}

constexpr Row kSelectionRows[] = {
    {"Compress", Compress, 2},
    {"NonZero", NonZero, 1},
    {"Unique", Unique, 1},
};

constexpr Row kMicrosoftSelectionRows[] = {{"Unique", MicrosoftUnique, 1, 11}};

}  // namespace

std::span<const Row> MicrosoftSelectionRows() { return kMicrosoftSelectionRows; }
std::span<const Row> SelectionRows() { return kSelectionRows; }

}  // namespace hone::graph::decompose
