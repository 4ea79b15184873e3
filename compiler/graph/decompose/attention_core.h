// SPDX-License-Identifier: Apache-2.0
// Attention as ONNX's operators, shared by all attention operators: two products with a softmax between them, which
// fusion makes one kernel of.
//
// Not here: the operators themselves, which differ in how they get queries, keys and values and in what they mask
// (attention.cc, group_query_attention.cc). Start with Attend.
#ifndef HONE_COMPILER_GRAPH_DECOMPOSE_ATTENTION_CORE_H_
#define HONE_COMPILER_GRAPH_DECOMPOSE_ATTENTION_CORE_H_

#include <vector>

#include "compiler/graph/decompose/decomposition.h"

namespace hone::graph::decompose {

struct Heads {
  ValueId q;     // [batch, queries, heads * size]
  ValueId k, v;  // [batch, key heads, keys, size]; the sizes of k and v may differ
  int64_t heads = 1;
  int64_t key_heads = 1;  // divides heads: consecutive heads of q share a head of k and v
};

struct Scores {
  double scale = 0;    // factor of the products; 0 means 1 / sqrt(size)
  double softcap = 0;  // c: scores become c * tanh(score / c); 0 means that they do not
  // Terms that are added to the scores, [batch or 1, heads or 1, queries or 1, keys].
  Values biases = {};
  // False hides a key from a query: the score becomes the least number of its type. Bool, [batch or 1, 1, queries or 1,
  // keys] or [queries, keys]. kAbsent means that all queries see all keys.
  ValueId visible = kAbsent;
  // Per head the score of one more key, whose value is 0: f32[heads] or a scalar. kAbsent if there is none.
  ValueId sink = kAbsent;
};

struct Attended {
  ValueId output;         // [batch, queries, heads * size of v]
  ValueId scores;         // before the softmax, in the form that PerHead expects
  ValueId probabilities;  // after it, in the same form
};

Attended Attend(Decomposition& b, const Heads& heads, const Scores& scores);

// Returns the scores or the probabilities as [batch, heads, queries, keys].
ValueId PerHead(Decomposition& b, ValueId scores, const Heads& heads);

// Attribute num_heads. If it is less than 1, that is an error, and the result is 1.
int64_t ReadHeads(Decomposition& b);

// [batch, positions, heads * size] to [batch, heads, positions, size].
ValueId SplitHeads(Decomposition& b, ValueId x, int64_t heads);

// bool[batch, 1, 1, keys]: whether the key's position is less than the limit of its batch entry. `limits` is [batch],
// integers.
ValueId KeysBefore(Decomposition& b, ValueId keys, int64_t key_axis, ValueId limits);

// bool[queries, keys]: whether the key is not after the query, if query i has position `first` + i. `first` is a scalar
// of i64.
ValueId CausalMask(Decomposition& b, ValueId queries, int64_t query_axis, ValueId keys, int64_t key_axis,
                   ValueId first);

// Attention of com.microsoft after its projection: reads the attributes num_heads, mask_filter_value, scale and
// unidirectional of the node.
struct ProjectedAttention {
  ValueId q, k, v;         // [batch, positions, heads * size]
  ValueId mask = kAbsent;  // mask_index in any of its forms
  ValueId past = kAbsent;  // [2, batch, heads, past positions, size]
  ValueId bias = kAbsent;  // added to the scores
};
// Returns the output and the keys and values with those of the past, [2, batch, heads, positions, size].
absl::StatusOr<Values> AttendProjected(Decomposition& b, const ProjectedAttention& projected);

}  // namespace hone::graph::decompose

#endif  // HONE_COMPILER_GRAPH_DECOMPOSE_ATTENTION_CORE_H_
