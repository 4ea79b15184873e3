// SPDX-License-Identifier: Apache-2.0
// Evaluates arithmetic on shapes: nodes whose results are known but for open sizes.
//
// The stages of the node's operator are evaluated element by element on expressions, so every operator is covered by
// its only definition (op.h). Not here: nodes whose results are numbers (Evaluate in emit.h).
#ifndef HONE_COMPILER_GRAPH_SIZE_ELEMENTS_H_
#define HONE_COMPILER_GRAPH_SIZE_ELEMENTS_H_

#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Returns one list of elements per node output; null for an absent output. The whole result is empty if the node cannot
// be evaluated: it reads a value that is not known, an index or a condition depends on an open size in a way that is
// not decided by its range, a shape is open, or there is too much to evaluate.
absl::StatusOr<std::vector<ElementExprs>> EvaluateElements(const Graph& graph, const Node& node);

// Sets the elements of the node's outputs if EvaluateElements can compute them, and returns whether it could. Outputs
// whose elements are all numbers become constants. The caller removes the node.
absl::StatusOr<bool> FoldElements(Graph& graph, const Node& node);

// The sizes that the elements of a list state; nullopt if one of them is no size.
std::optional<ir::Shape> SizesOf(std::span<const ir::Expr> elements, std::span<const ir::OpenSize> symbols);

// The smallest and the largest value of an integer where each open size in it is at an end of its range. Between the
// ends it may have other values. nullopt if it depends on anything else, or on more than eight sizes.
struct ValueEnds {
  int64_t smallest, largest;
};
std::optional<ValueEnds> ValuesAtEnds(const ir::Expr& element, std::span<const ir::OpenSize> symbols);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_SIZE_ELEMENTS_H_
