// SPDX-License-Identifier: Apache-2.0
// Rules for attention of com.microsoft with as many heads of keys as of queries.
#include "compiler/graph/decompose/attention_core.h"
#include "compiler/graph/decompose/cache.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

using ir::DType;

// The widths of q, k and v in the columns of a merged projection: attribute qkv_hidden_sizes, or thirds.
absl::StatusOr<std::vector<int64_t>> ProjectedWidths(Decomposition& b, ValueId merged) {
  const int64_t columns = b.Extent(merged, -1);
  const std::vector<int64_t> widths = b.Ints("qkv_hidden_sizes", {columns / 3, columns / 3, columns / 3});
  if (widths.size() != 3 || widths[0] + widths[1] + widths[2] != columns) {
    return Malformed(
        fmt::format("the projection has {} columns; qkv_hidden_sizes must say how they are split in 3", columns));
  }
  return widths;
}

// Inputs: x, weights, bias (optional), mask, past, attention bias, past length (all optional). Outputs: y, present.
absl::StatusOr<Values> MergedAttention(Decomposition& b) {
  if (b.Int("do_rotary", 0) != 0) return Unsupported("attribute do_rotary is not supported");
  if (b.Int("past_present_share_buffer", 0) != 0) {
    return Unsupported("attribute past_present_share_buffer is not supported; export the model without it");
  }
  ValueId merged = b.MatMul(b.Input(0), b.Input(1));
  if (b.Has(2)) merged = b.Add(merged, b.Input(2));
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> widths, ProjectedWidths(b, merged));
  const Values parts = b.Split(merged, 2, widths);
  return AttendProjected(
      b, {.q = parts[0], .k = parts[1], .v = parts[2], .mask = b.Input(3), .past = b.Input(4), .bias = b.Input(5)});
}

// Part `i` of the parts that dimension 3 of x, [batch, positions, heads, parts, size], counts, as [batch, positions,
// heads * size].
Values UnpackParts(Decomposition& b, ValueId x, size_t parts) {
  const int64_t width = b.Extent(x, 2) * b.Extent(x, 4);
  Values unpacked = b.Split(x, 3, std::vector<int64_t>(parts, 1));
  for (ValueId& part : unpacked) part = b.Reshape(part, {0, 0, width});
  return unpacked;
}

// Adds the parts of a bias of q, k and v. Keys and values with 4 dimensions come from another node with their bias.
void AddBiases(Decomposition& b, ValueId bias, ValueId& q, ValueId& k, ValueId& v) {
  if (bias == kAbsent) return;
  if (b.Rank(k) == 4) {
    q = b.Add(q, b.Slice(bias, 0, 0, b.Extent(q, 2)));
    return;
  }
  const Values parts = b.Split(bias, 0, {b.Extent(q, 2), b.Extent(k, 2), b.Extent(v, 2)});
  q = b.Add(q, parts[0]);
  k = b.Add(k, parts[1]);
  v = b.Add(v, parts[2]);
}

// The inputs of MultiHeadAttention and its relatives by meaning; kAbsent where the node lacks them.
struct MultiHead {
  ValueId q, k, v, bias, padding, attention_bias, past_k, past_v, past_length;
};

// The padding mask as a term to add, [batch, 1, queries or 1, keys]: from lengths [batch], or 0 and 1 per key.
absl::StatusOr<ValueId> PaddingBias(Decomposition& b, ValueId mask, ValueId queries, ValueId keys) {
  ValueId visible = kAbsent;
  if (b.Rank(mask) == 1) {
    if (!b.SameExtent(mask, 0, queries, 0)) {
      return Unsupported("a mask of cumulative lengths is not supported; use a mask of one number per key");
    }
    visible = KeysBefore(b, keys, 2, mask);
  } else {
    const std::vector<int64_t> axes = b.Rank(mask) == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1};
    visible = b.Op("Greater", {b.Unsqueeze(mask, axes), b.Like(mask, 0)});
  }
  const DType dtype = b.ElementType(queries);
  return b.Where(visible, b.Number(dtype, 0), b.Number(dtype, b.Float("mask_filter_value", -10000)));
}

// Returns y, present keys, present values, scores. With a past length, the past is a buffer of fixed capacity, and the
// new positions are written into it.
absl::StatusOr<Values> AttendMultiHead(Decomposition& b, MultiHead in) {
  const int64_t heads = ReadHeads(b);
  if (b.Rank(in.q) == 5) {
    const Values parts = UnpackParts(b, in.q, 3);
    in.q = parts[0], in.k = parts[1], in.v = parts[2];
  } else if (b.Rank(in.k) == 5) {
    const Values parts = UnpackParts(b, in.k, 2);
    in.k = parts[0], in.v = parts[1];
  }
  if (in.k == kAbsent || in.v == kAbsent) return Malformed("keys (input 1) or values (input 2) are missing");
  AddBiases(b, in.bias, in.q, in.k, in.v);
  ValueId k = b.Rank(in.k) == 4 ? in.k : SplitHeads(b, in.k, heads);
  ValueId v = b.Rank(in.v) == 4 ? in.v : SplitHeads(b, in.v, heads);
  Scores scores{.scale = b.Float("scale", 0)};
  ValueId first = b.Number(DType::kInt64, 0);
  if (in.past_k != kAbsent && in.past_length != kAbsent) {
    first = b.Reshape(b.Cast(in.past_length, DType::kInt64), {1});
    const ValueId starts = b.Expand(first, {b.ShapeOf(k, 0, 1)}), count = b.ShapeOf(k, 2, 1);
    k = WriteCache(b, in.past_k, k, starts);
    v = WriteCache(b, in.past_v, v, starts);
    scores.visible = b.Unsqueeze(b.Op("Less", {b.Positions(k, 2), b.Add(first, count)}), {0});
  } else if (in.past_k != kAbsent) {
    first = b.Squeeze(b.ShapeOf(in.past_k, 2, 1), {0});
    k = b.Concat({in.past_k, k}, 2);
    v = b.Concat({in.past_v, v}, 2);
  }
  if (in.padding != kAbsent) {
    HONE_ASSIGN_OR_RETURN(const ValueId padding, PaddingBias(b, in.padding, in.q, k));
    scores.biases.push_back(padding);
  }
  if (in.attention_bias != kAbsent) scores.biases.push_back(in.attention_bias);
  if (b.Int("unidirectional", 0) != 0) {
    const ValueId causal = CausalMask(b, in.q, 1, k, 2, first);
    scores.visible = scores.visible == kAbsent ? causal : b.Op("And", {causal, scores.visible});
  }
  const Heads split{.q = in.q, .k = k, .v = v, .heads = heads, .key_heads = heads};
  const Attended attended = Attend(b, split, scores);
  return Values{attended.output, k, v, attended.scores};
}

// Inputs: q, k, v, bias, padding mask, attention bias, past keys, past values, past length, cache indirection.
absl::StatusOr<Values> MultiHeadAttention(Decomposition& b) {
  if (b.Has(9)) return Unsupported("input 9 (cache indirection of beams) is not supported");
  return AttendMultiHead(b, {.q = b.Input(0),
                             .k = b.Input(1),
                             .v = b.Input(2),
                             .bias = b.Input(3),
                             .padding = b.Input(4),
                             .attention_bias = b.Input(5),
                             .past_k = b.Input(6),
                             .past_v = b.Input(7),
                             .past_length = b.Input(8)});
}

// Inputs: q, k, v, mask, attention bias, past keys, past values, past length, beam width, cache indirection, bias. The
// past is a buffer if attribute past_present_share_buffer says so.
absl::StatusOr<Values> DecoderMaskedMultiHeadAttention(Decomposition& b) {
  if (b.Has(9)) return Unsupported("input 9 (cache indirection of beams) is not supported");
  const bool shared = b.Int("past_present_share_buffer", 0) != 0;
  if (shared && !b.Has(7)) return Malformed("input 7 (the length of the past) is missing");
  return AttendMultiHead(b, {.q = b.Input(0),
                             .k = b.Input(1),
                             .v = b.Input(2),
                             .bias = b.Input(10),
                             .padding = b.Input(3),
                             .attention_bias = b.Input(4),
                             .past_k = b.Input(5),
                             .past_v = b.Input(6),
                             .past_length = shared ? b.Input(7) : kAbsent});
}

// Sequences without padding, one after the other, and where their tokens are in the padded batch.
struct Packing {
  ValueId offsets;  // i64[tokens]: the place of each token in [batch * positions]
  ValueId shape;    // i64[2]: batch, positions
  ValueId bias;     // 0 for keys that are tokens, else a large negative number: [batch, 1, 1, keys]
};

// `places` is [batch, positions]: those of the tokens, then those of the padding. `ends` is [batch + 1]: how many
// tokens there are before each sequence, and in all.
Packing ReadPacking(Decomposition& b, ValueId tokens, ValueId places, ValueId ends) {
  Packing packing;
  const ValueId flat = b.Cast(b.Reshape(places, {-1}), DType::kInt64);
  packing.offsets = b.Op("Slice", {flat, b.List({0}), b.ShapeOf(tokens, 0, 1), b.List({0})});
  packing.shape = b.ShapeOf(places, 0, 2);
  const ValueId lengths = b.Sub(b.Slice(ends, 0, 1, INT64_MAX), b.Slice(ends, 0, 0, -1));
  const ValueId inside = KeysBefore(b, places, 1, lengths);
  const DType dtype = b.ElementType(tokens);
  packing.bias = b.Where(inside, b.Number(dtype, 0), b.Number(dtype, b.Float("mask_filter_value", -10000)));
  return packing;
}

// [tokens, width] to [batch, positions, width], where padding is 0.
ValueId Pack(Decomposition& b, ValueId x, const Packing& packing) {
  const ValueId width = b.ShapeOf(x, 1, 1);
  const ValueId all = b.Op("ReduceProd", {packing.shape}, {{"axes", std::vector<int64_t>{0}}});
  const ValueId zeros = b.Expand(b.Like(x, 0), {all, width});
  const ValueId padded = b.Op("ScatterND", {zeros, b.Unsqueeze(packing.offsets, {1}), x});
  return b.Op("Reshape", {padded, b.Concat({packing.shape, width}, 0)});
}

absl::StatusOr<Values> AttendPacked(Decomposition& b, const Values& qkv, const Packing& packing, ValueId bias) {
  const int64_t heads = ReadHeads(b);
  Scores scores{.scale = b.Float("scale", 0), .biases = {packing.bias}};
  if (bias != kAbsent) scores.biases.push_back(bias);
  const Attended attended = Attend(b,
                                   {.q = Pack(b, qkv[0], packing),
                                    .k = SplitHeads(b, Pack(b, qkv[1], packing), heads),
                                    .v = SplitHeads(b, Pack(b, qkv[2], packing), heads),
                                    .heads = heads,
                                    .key_heads = heads},
                                   scores);
  const ValueId rows = b.Reshape(attended.output, {-1, b.Extent(attended.output, 2)});
  return Values{b.Op("Gather", {rows, packing.offsets})};
}

// Inputs: x [tokens, width], weights, bias, places, ends, attention bias (optional).
absl::StatusOr<Values> PackedAttention(Decomposition& b) {
  const ValueId merged = b.Add(b.MatMul(b.Input(0), b.Input(1)), b.Input(2));
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> widths, ProjectedWidths(b, merged));
  return AttendPacked(b, b.Split(merged, 1, widths), ReadPacking(b, merged, b.Input(3), b.Input(4)), b.Input(5));
}

// Inputs: q [tokens, width] or all three [tokens, heads, 3, size], k, v, bias, places, ends, attention bias.
absl::StatusOr<Values> PackedMultiHeadAttention(Decomposition& b) {
  Values qkv = {b.Input(0), b.Input(1), b.Input(2)};
  if (b.Rank(qkv[0]) == 4) {
    const int64_t width = b.Extent(qkv[0], 1) * b.Extent(qkv[0], 3);
    qkv = b.Split(qkv[0], 2, {1, 1, 1});
    for (ValueId& part : qkv) part = b.Reshape(part, {0, width});
  }
  if (qkv[1] == kAbsent || qkv[2] == kAbsent) return Malformed("keys (input 1) or values (input 2) are missing");
  if (b.Has(3)) {
    const Values biases = b.Split(b.Input(3), 0, {b.Extent(qkv[0], 1), b.Extent(qkv[1], 1), b.Extent(qkv[2], 1)});
    for (size_t i = 0; i < 3; ++i) qkv[i] = b.Add(qkv[i], biases[i]);
  }
  return AttendPacked(b, qkv, ReadPacking(b, qkv[0], b.Input(4), b.Input(5)), b.Input(6));
}

constexpr Row kAttentionRows[] = {
    {"Attention", MergedAttention, 2, 23},
    {"DecoderMaskedMultiHeadAttention", DecoderMaskedMultiHeadAttention, 1},
    {"MultiHeadAttention", MultiHeadAttention, 1},
    {"PackedAttention", PackedAttention, 5},
    {"PackedMultiHeadAttention", PackedMultiHeadAttention, 1},
};

}  // namespace

std::span<const Row> AttentionRows() { return kAttentionRows; }

}  // namespace hone::graph::decompose
