// SPDX-License-Identifier: Apache-2.0
// Rotary embeddings: pairs of elements of each head, turned by an angle that depends on the position.
#ifndef HONE_COMPILER_GRAPH_DECOMPOSE_ROTARY_H_
#define HONE_COMPILER_GRAPH_DECOMPOSE_ROTARY_H_

#include "compiler/graph/decompose/decomposition.h"

namespace hone::graph::decompose {

// Cosines and sines of the angles, one row per position.
struct Rotation {
  ValueId cosines, sines;    // [positions max, pairs]
  bool interleaved = false;  // pairs are neighbours; else they are one element of each half
};

// Rotates the first 2 * pairs elements of each head of x, [batch, positions, heads * size] or [batch, heads, positions,
// size]. `positions` is i64[batch, positions].
ValueId Rotate(Decomposition& b, ValueId x, ValueId positions, int64_t heads, const Rotation& rotation);

}  // namespace hone::graph::decompose

#endif  // HONE_COMPILER_GRAPH_DECOMPOSE_ROTARY_H_
