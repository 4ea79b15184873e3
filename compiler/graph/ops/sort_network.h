// SPDX-License-Identifier: Apache-2.0
// Sorts long axes by Batcher's bitonic network ("Sorting networks and their applications", 1968). Its comparisons do
// not depend on the data, so each step is one stage.
//
// The positions along the axis ("places") are sorted by their keys. Start with SortByNetwork.
#ifndef HONE_COMPILER_GRAPH_OPS_SORT_NETWORK_H_
#define HONE_COMPILER_GRAPH_OPS_SORT_NETWORK_H_

#include <cstdint>

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

// A sorted axis: pairs of a key and its place in the original axis, each packed into one 64-bit number with the key in
// the high 32 bits. They ascend; equal keys are ordered by place. The axis is padded to the next power of two; the
// padding has the largest key and is last.
struct SortedAxis {
  ir::Buffer buffer;
  size_t axis;
  Dims parts;  // dimensions of the buffer that the axis is split into; their product is its length

  static constexpr int64_t kPlaces = int64_t{1} << 32;

  int64_t Length() const { return Product(parts); }
  // The pair at a position of the sorted axis. `i` has the indices of the other dimensions; the `seen` indices from
  // `axis` on are replaced by the position.
  ir::Expr At(Indices i, const ir::Expr& position, size_t seen = 1) const;
  ir::Expr PlaceAt(Indices i, const ir::Expr& position) const;
};

// An i64 that ascends with the key, an integer; with `descending` it falls.
ir::Expr AscendingKey(const ir::Expr& key, bool descending);

// Sorts each line along the axis by its keys, which are integers of at most 32 bits. The packed keys always ascend:
// with `descending` they are -1 - key, and u32 keys are first reduced by 2^31. Equal keys keep the order of their
// places.
SortedAxis SortByNetwork(StageBuilder& builder, const ir::Buffer& keys, size_t axis, bool descending);

// Returns an i64 buffer of extent `bounds` along the axis: for each i[axis] in [0, bounds) the first position in the
// sorted axis whose key is >= i[axis]. It is a binary search, with one stage per bit of the axis length. `sorted` must
// be of keys that are not u32, and not descending.
ir::Buffer FirstOfKeys(StageBuilder& builder, const SortedAxis& sorted, const Shape& shape, const Size& bounds);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_SORT_NETWORK_H_
