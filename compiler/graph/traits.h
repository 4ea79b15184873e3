// SPDX-License-Identifier: Apache-2.0
// Node traits: how a node reads its inputs, found by analysing the stages that its operator emits. Fusion decides by
// them. Not here: properties that the stages do not show (op_facts.h).
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
  kSame,       // output element [i, j, ...] reads element [i, j, ...] of an input of the same shape
  kBroadcast,  // each input dimension is one of the output's, in order, or has extent 1
  kOther,
};

struct NodeTraits {
  bool elementwise = false;    // no reduction, one output, and every input is read as kSame or kBroadcast
  bool reduces = false;        // at least one stage reduces
  bool moves_once = false;     // one output, whose elements are moved as Movement::kOnce or kView says
  bool reads_once = false;     // a reduction that reads only one input, and each element of it exactly once
  std::vector<Access> access;  // one per input; empty unless elementwise
  // The node computes row by row, as a softmax or a normalization does. A row is the last dimensions of row_shape, from
  // dimension row_outer on. The node reduces over rows and may broadcast the results back over them. Every stage has
  // the shape row_shape, or that of its first row_outer dimensions (followed by ones).
  bool row = false;
  size_t row_outer = 0;
  ir::Shape row_shape;
  // The index of an input if the node is a sum of products whose output element [i.., n] sums over row [i..] of this
  // input: the left operand of a matrix product. Else empty.
  std::optional<size_t> row_operand;
  // The index of an input if the node is a sum of products that uses every element of this input once, as a
  // matrix-vector product uses the matrix. Else empty.
  std::optional<size_t> streamed_operand;
  bool permutes = false;  // one output, which is the only input with its dimensions permuted
  // A sum of products that treats every index of the last dimension separately: output element [.., c] depends on
  // elements [.., c] of the first input only, as in a depthwise convolution with channels last.
  bool sums_per_channel = false;
  // A reduction that reads each element of input 0 a few times, as pools and depthwise convolutions do.
  bool window = false;
};

absl::StatusOr<NodeTraits> FindTraits(const Graph& graph, const Node& node);

// Returns true if shape is the first `outer` dimensions of row_shape, followed by nothing but ones.
// It may have fewer dimensions than row_shape, but not more.
bool IsRowReduced(const ir::Shape& shape, const ir::Shape& row_shape, size_t outer);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_TRAITS_H_
