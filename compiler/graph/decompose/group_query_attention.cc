// SPDX-License-Identifier: Apache-2.0
// The rule for attention whose heads of queries share heads of keys, of com.microsoft.
#include "compiler/graph/decompose/attention_core.h"
#include "compiler/graph/decompose/cache.h"
#include "compiler/graph/decompose/rotary.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

using ir::DType;

// The node's inputs by meaning, and its heads.
struct Grouped {
  ValueId q, k, v;  // [batch, positions, heads * size]
  ValueId past_k, past_v;
  int64_t heads, key_heads;
};

absl::StatusOr<Grouped> ReadGrouped(Decomposition& b) {
  Grouped grouped{.q = b.Input(0),
                  .k = b.Input(1),
                  .v = b.Input(2),
                  .past_k = b.Input(3),
                  .past_v = b.Input(4),
                  .heads = b.Int("num_heads", 0),
                  .key_heads = b.Int("kv_num_heads", 0)};
  if (grouped.heads < 1 || grouped.key_heads < 1 || grouped.heads % grouped.key_heads != 0) {
    return Malformed(fmt::format("there are {} heads and {} heads of keys; the latter must divide the former",
                                 grouped.heads, grouped.key_heads));
  }
  if (b.Int("sliding_window_cache", 0) != 0) return Unsupported("attribute sliding_window_cache is not supported");
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    if (b.String(name, "NONE") != "NONE") return Unsupported("a quantized cache of keys and values is not supported");
  }
  if (grouped.k == kAbsent) {
    const int64_t size = b.Extent(grouped.q, 2) / (grouped.heads + 2 * grouped.key_heads);
    const int64_t key_width = grouped.key_heads * size;
    const Values parts = b.Split(grouped.q, 2, {grouped.heads * size, key_width, key_width});
    grouped.q = parts[0], grouped.k = parts[1], grouped.v = parts[2];
  }
  if (grouped.v == kAbsent) return Malformed("values (input 2) are missing");
  const bool empty = b.Rank(grouped.past_k) == 4 && b.KnownExtent(grouped.past_k, 2) == 0;
  if (empty) grouped.past_k = grouped.past_v = kAbsent;
  return grouped;
}

// Normalizes each head by the root of its mean square and scales it by weights [size].
ValueId NormalizeHeads(Decomposition& b, ValueId x, ValueId weights, int64_t heads, double epsilon) {
  const int64_t width = b.Extent(x, 2);
  const ValueId split = b.Reshape(x, {0, 0, heads, width / heads});
  const ValueId normal = b.Op("RMSNormalization", {split, weights}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  return b.Reshape(normal, {0, 0, width});
}

// The new positions follow the past of each entry of the batch.
struct Place {
  ValueId starts;     // i64[batch]; kAbsent means 0 for all
  ValueId positions;  // i64[batch or 1, positions]
};

// The past has seqlens_k + 1 - new positions, unless the new positions are all there are.
Place PlaceOf(Decomposition& b, const Grouped& grouped, ValueId seqlens_k, ValueId total) {
  const ValueId row = b.Unsqueeze(b.Positions(grouped.q, 1), {0}), count = b.ShapeOf(grouped.q, 1, 1);
  const ValueId is_all = b.Op("Equal", {b.Reshape(b.Cast(total, DType::kInt64), {1}), count});
  const std::optional<std::vector<double>> known = b.Known(is_all);
  if (grouped.past_k == kAbsent || (known && (*known)[0] != 0)) return {kAbsent, row};
  const ValueId last = b.Reshape(b.Cast(seqlens_k, DType::kInt64), {-1});
  ValueId starts = b.Sub(b.Add(last, b.Number(DType::kInt64, 1)), count);
  if (!known) starts = b.Where(is_all, b.Number(DType::kInt64, 0), starts);
  return {starts, b.Add(b.Unsqueeze(starts, {1}), row)};
}

// The past with the update behind it. Its capacity is that of the past, or the total if that is known and larger.
ValueId WithPast(Decomposition& b, ValueId past, ValueId update, ValueId starts, ValueId total) {
  if (past == kAbsent) return update;
  if (starts == kAbsent) starts = b.Expand(b.Number(DType::kInt64, 0), {b.ShapeOf(update, 0, 1)});
  if (b.IsKnown(total)) {
    const ValueId capacity = b.ShapeOf(past, 2, 1), wanted = b.Reshape(b.Cast(total, DType::kInt64), {1});
    const ValueId missing = b.Sub(b.Op("Max", {wanted, capacity}), capacity);
    const ValueId pads = b.Concat({b.List({0, 0, 0, 0, 0, 0}), missing, b.List({0})}, 0);
    if (b.Known(missing) != std::vector<double>{0}) past = b.Op("Pad", {past, pads});
  }
  return WriteCache(b, past, update, starts);
}

// bool [batch or 1, 1, positions, keys]: the keys that a query sees. kAbsent if it sees all.
absl::StatusOr<ValueId> VisibleKeys(Decomposition& b, ValueId keys, const Place& place, ValueId seqlens_k) {
  const ValueId columns = b.Positions(keys, 2);
  const int64_t window = b.Int("local_window_size", -1);
  if (b.Int("causal", 1) == 0) {
    if (window >= 0) return Malformed("attribute local_window_size needs causal attention");
    const ValueId last = b.Reshape(b.Cast(seqlens_k, DType::kInt64), {-1, 1, 1, 1});
    return b.Op("LessOrEqual", {columns, last});
  }
  const ValueId rows = b.Unsqueeze(place.positions, {1, 3});
  const ValueId causal = b.Op("LessOrEqual", {columns, rows});
  if (window < 0) return causal;
  return b.Op("And", {causal, b.Op("Greater", {b.Add(columns, b.Number(DType::kInt64, window)), rows})});
}

// Inputs: q or q, k and v in one, k, v, past keys, past values, seqlens_k, total length, cosines, sines, position ids,
// attention bias, sink per head, scales of the cache (2), weights of the norms of q and k. Outputs: y, present keys,
// present values, scores.
absl::StatusOr<Values> GroupQueryAttention(Decomposition& b) {
  HONE_ASSIGN_OR_RETURN(Grouped in, ReadGrouped(b));
  if (b.Has(12) || b.Has(13)) return Unsupported("a quantized cache of keys and values is not supported");
  const ValueId seqlens_k = b.Input(5), total = b.Input(6);
  const Place place = PlaceOf(b, in, seqlens_k, total);
  if (b.Has(14)) {
    const double epsilon = b.Float("qk_norm_epsilon", 1e-6);
    in.q = NormalizeHeads(b, in.q, b.Input(14), in.heads, epsilon);
    in.k = NormalizeHeads(b, in.k, b.Input(15), in.key_heads, epsilon);
  }
  if (b.Int("do_rotary", 0) != 0) {
    const Rotation rotation{b.Input(7), b.Input(8), b.Int("rotary_interleaved", 0) != 0};
    const ValueId positions =
        b.Has(9) ? b.Input(9) : b.Expand(place.positions, {b.ShapeOf(in.q, 0, 1), b.ShapeOf(in.q, 1, 1)});
    in.q = Rotate(b, in.q, positions, in.heads, rotation);
    in.k = Rotate(b, in.k, positions, in.key_heads, rotation);
  }
  const ValueId k = WithPast(b, in.past_k, SplitHeads(b, in.k, in.key_heads), place.starts, total);
  const ValueId v = WithPast(b, in.past_v, SplitHeads(b, in.v, in.key_heads), place.starts, total);
  Scores scores{.scale = b.Float("scale", 0), .softcap = b.Float("softcap", 0)};
  if (b.Has(10)) scores.biases.push_back(b.Input(10));
  HONE_ASSIGN_OR_RETURN(scores.visible, VisibleKeys(b, k, place, seqlens_k));
  if (b.Has(11)) {
    scores.sink = b.Input(11);
  } else if (b.Int("smooth_softmax", 0) > 0) {
    scores.sink = b.Like(in.q, 0);
  }
  const Heads heads{.q = in.q, .k = k, .v = v, .heads = in.heads, .key_heads = in.key_heads};
  const Attended attended = Attend(b, heads, scores);
  Values outputs = {attended.output, k, v, kAbsent};
  if (b.IsOutputUsed(3)) {
    outputs[3] = PerHead(b, b.Int("qk_output", 0) == 2 ? attended.probabilities : attended.scores, heads);
  }
  return outputs;
}

constexpr Row kGroupQueryRows[] = {
    {"GroupQueryAttention", GroupQueryAttention, 1},
};

}  // namespace

std::span<const Row> GroupQueryRows() { return kGroupQueryRows; }

}  // namespace hone::graph::decompose
