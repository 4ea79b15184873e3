// SPDX-License-Identifier: Apache-2.0
// How a node reads its inputs, found by looking at the stages that its operator emits. What fusion decides by. Not
// here: what the stages do not show (op_facts.h).
#ifndef HONE_COMPILER_GRAPH_TRAITS_H_
#define HONE_COMPILER_GRAPH_TRAITS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

enum class Access : uint8_t {
  kNone,       // not read at run time (a shape, an axis)
  kSame,       // element [i, j, ...] of an equally shaped input for element [i, j, ...] of the output
  kBroadcast,  // each dimension of the input is one of the output's, in order, or has extent 1
  kOther,
};

struct NodeTraits {
  bool elementwise = false;    // no reduction, one output, every input read kSame or kBroadcast
  bool reduces = false;        // some stage reduces
  bool moves_once = false;     // one output, whose elements are moved as Movement::kOnce or kView
  bool reads_once = false;     // a reduction that reads nothing but one input, and every element of it once
  std::vector<Access> access;  // per input; of elementwise nodes only
  // The node is a computation on rows: it reduces over the last dimensions of row_shape and may broadcast the results
  // back over them. Every stage has the shape row_shape or that of its first row_outer dimensions (ones may follow).
  bool row = false;
  size_t row_outer = 0;
  std::vector<int64_t> row_shape;
  // A sum of products: for element [i.., n] of the output it runs over the row [i..] of this input.
  std::optional<size_t> sums_rows_of;
  // A sum of products that uses every element of this input once, as of the matrix that meets a vector.
  std::optional<size_t> streams;
  bool permutes = false;  // one output, which has the elements of the one input with its dimensions in another order
  // A sum of products that keeps the last dimension apart: element [.., c] of the output comes from elements [.., c] of
  // the first input alone, as in a depthwise convolution with channels last.
  bool sums_apart = false;
};

absl::StatusOr<NodeTraits> FindTraits(const Graph& graph, const Node& node);

// True if shape is the first `outer` dimensions of row_shape, followed by ones at most.
bool IsRowReduced(const std::vector<int64_t>& shape, const std::vector<int64_t>& row_shape, size_t outer);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_TRAITS_H_
