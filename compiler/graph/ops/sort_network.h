// SPDX-License-Identifier: Apache-2.0
// Long axes in order, by Batcher's bitonic network ("Sorting networks and their applications", 1968): its comparisons
// are the same whatever the data, so that each step is a stage.
//
// What is sorted are places of an axis by their keys. Start with SortByNetwork.
#ifndef HONE_COMPILER_GRAPH_OPS_SORT_NETWORK_H_
#define HONE_COMPILER_GRAPH_OPS_SORT_NETWORK_H_

#include <cstdint>

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

// Keys and places of an axis, each pair one number of 64 bits, the key above: in ascending order, equal keys in the
// order of their places. The axis is as long as the next power of two; what it lacks stands behind, with the largest
// key.
struct SortedAxis {
  ir::Buffer buffer;
  size_t axis;
  Dims parts;  // that the axis is seen as, in the buffer; product: its length

  static constexpr int64_t kPlaces = int64_t{1} << 32;

  int64_t Length() const { return Product(parts); }
  // The pair at a position of the axis; i has the other indices, and `seen` in place of the axis.
  ir::Expr At(Indices i, const ir::Expr& position, size_t seen = 1) const;
  ir::Expr PlaceAt(Indices i, const ir::Expr& position) const;
};

// keys: of 32 bits at most.
SortedAxis SortByNetwork(StageBuilder& builder, const ir::Buffer& keys, size_t axis, bool descending);

// Where in the sorted axis keys >= i[axis] begin, for i[axis] in [0, bounds): a buffer of i64, its axis of that extent.
// By binary search, in as many stages as the length has bits.
ir::Buffer FirstOfKeys(StageBuilder& builder, const SortedAxis& sorted, const Dims& shape, int64_t bounds);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_SORT_NETWORK_H_
