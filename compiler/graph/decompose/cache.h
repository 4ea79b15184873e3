// SPDX-License-Identifier: Apache-2.0
// Keys or values of past positions, with new ones written behind them.
#ifndef HONE_COMPILER_GRAPH_DECOMPOSE_CACHE_H_
#define HONE_COMPILER_GRAPH_DECOMPOSE_CACHE_H_

#include "compiler/graph/decompose/decomposition.h"

namespace hone::graph::decompose {

// Writes `update`, [batch, heads, new positions, size], into `cache`, [batch, heads, capacity, size], from position
// starts[batch] (integers) on. The other positions keep what they hold.
inline ValueId WriteCache(Decomposition& b, ValueId cache, ValueId update, ValueId starts) {
  return b.Op("TensorScatter", {cache, update, starts}, {{"axis", int64_t{2}}});
}

}  // namespace hone::graph::decompose

#endif  // HONE_COMPILER_GRAPH_DECOMPOSE_CACHE_H_
