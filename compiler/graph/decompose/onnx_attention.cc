// SPDX-License-Identifier: Apache-2.0
// The rule for Attention of ai.onnx (since opset 23): products with queries, keys and values around a softmax, as
// exporters of older opsets write them.
#include <cmath>
#include <limits>
#include <utility>

#include "base/status.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

// Indices of the inputs. Key and value are [batch, heads, positions, size], or [batch, positions, heads * size].
enum AttentionInput : size_t { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kKeyCount };

// What attribute qk_matmul_output_mode asks for as output 3.
enum class ScoreStage : int64_t { kProduct, kCapped, kMasked, kSoftmax };

class AttentionRule {
 public:
  explicit AttentionRule(Decomposition& b) : b_(b) {}

  absl::StatusOr<Values> Write() {
    HONE_RETURN_IF_ERROR(ReadHeads());
    const ValueId key = Extend(kPastKey, SplitHeads(b_.Input(kKey), kv_heads_));
    const ValueId value = Extend(kPastValue, SplitHeads(b_.Input(kValue), kv_heads_));
    const ValueId query = SplitHeads(b_.Input(kQuery), heads_);
    ReadMasks(query, key);
    ValueId output = b_.MatMul(WriteWeights(query, key), ShareHeads(value));
    if (IsGrouped()) output = b_.Reshape(output, {0, heads_, -1, b_.Extent(value, 3)});
    if (joined_) output = b_.Reshape(b_.Transpose(output, {0, 2, 1, 3}), {0, 0, -1});
    return Values{output, key, value, scores_};
  }

 private:
  absl::Status ReadHeads() {
    const size_t rank = b_.Rank(b_.Input(kQuery));
    if ((rank != 3 && rank != 4) || b_.Rank(b_.Input(kKey)) != rank || b_.Rank(b_.Input(kValue)) != rank) {
      return Malformed("query, key and value (inputs 0 to 2) must all have 3 or all have 4 dimensions");
    }
    joined_ = rank == 3;
    heads_ = joined_ ? b_.Int("q_num_heads", 0) : b_.Extent(b_.Input(kQuery), 1);
    kv_heads_ = joined_ ? b_.Int("kv_num_heads", 0) : b_.Extent(b_.Input(kKey), 1);
    if (heads_ < 1 || kv_heads_ < 1 || heads_ % kv_heads_ != 0) {
      return Malformed(fmt::format("{} heads of queries do not divide into {} heads of keys", heads_, kv_heads_));
    }
    if (b_.Has(kPastKey) != b_.Has(kPastValue)) return Malformed("past_key and past_value must be given together");
    if (b_.Has(kPastKey) && b_.Has(kKeyCount)) {
      return Malformed("nonpad_kv_seqlen (input 6) cannot be given together with past_key (input 4)");
    }
    return b_.status();
  }

  // [batch, heads, positions, size]
  ValueId SplitHeads(ValueId x, int64_t heads) {
    return joined_ ? b_.Transpose(b_.Reshape(x, {0, 0, heads, -1}), {0, 2, 1, 3}) : x;
  }

  // Appends the new positions to those of the past.
  ValueId Extend(size_t past, ValueId x) { return b_.Has(past) ? b_.Concat({b_.Input(past), x}, 2) : x; }

  // Heads of queries that share a head of keys are a dimension of their own, [batch, heads of keys, heads that share
  // one, positions, size], along which keys and values are broadcast. They are therefore not repeated in memory.
  bool IsGrouped() const { return heads_ != kv_heads_; }
  ValueId GroupHeads(ValueId query) {
    if (!IsGrouped()) return query;
    return b_.Reshape(query, {0, kv_heads_, heads_ / kv_heads_, -1, b_.Extent(query, 3)});
  }
  ValueId ShareHeads(ValueId x) { return IsGrouped() ? b_.Unsqueeze(x, {2}) : x; }

  // Gives a mask [(batch,) (heads,) queries, keys] the dimensions of the scores.
  ValueId GroupMask(ValueId mask) {
    const int64_t rank = static_cast<int64_t>(b_.Rank(mask));
    if (!IsGrouped() || rank < 3) return mask;
    if (b_.Extent(mask, -3) == 1) return b_.Unsqueeze(mask, {rank - 3});
    const ValueId heads = b_.List({kv_heads_, heads_ / kv_heads_}), rest = b_.ShapeOf(mask, rank - 2, 2);
    const Values shape = rank == 3 ? Values{heads, rest} : Values{b_.ShapeOf(mask, 0, 1), heads, rest};
    return b_.Op("Reshape", {mask, b_.Concat(shape, 0)});
  }

  // [batch, heads, queries, keys]
  ValueId UngroupScores(ValueId scores) {
    if (!IsGrouped()) return scores;
    const ValueId shape = b_.Concat({b_.ShapeOf(scores, 0, 1), b_.List({heads_}), b_.ShapeOf(scores, 3, 2)}, 0);
    return b_.Op("Reshape", {scores, shape});
  }

  // i64[n]: the positions 0 to n - 1 of dimension 2 of x.
  ValueId Positions(ValueId x) {
    const ValueId count = b_.Squeeze(b_.ShapeOf(x, 2, 1), {0});
    return b_.Op("Range", {b_.Number(ir::DType::kInt64, 0), count, b_.Number(ir::DType::kInt64, 1)});
  }

  // Sets allowed_ and bias_.
  void ReadMasks(ValueId query, ValueId key) {
    if (b_.Has(kMask)) {
      const ValueId mask = GroupMask(PadMask(b_.Input(kMask), key));
      if (b_.ElementType(mask) == ir::DType::kBool) {
        Allow(mask);
      } else {
        bias_ = b_.Cast(mask, b_.ElementType(query));
      }
    }
    if (b_.Int("is_causal", 0) == 0 && !b_.Has(kKeyCount)) return;
    const ValueId columns = Positions(key);
    ValueId counts = kAbsent;  // [batch, 1, ...]: the number of keys that are no padding
    if (b_.Has(kKeyCount)) {
      const std::vector<int64_t> ones = IsGrouped() ? std::vector<int64_t>{1, 2, 3, 4} : std::vector<int64_t>{1, 2, 3};
      counts = b_.Unsqueeze(b_.Cast(b_.Input(kKeyCount), ir::DType::kInt64), ones);
      Allow(b_.Op("Less", {columns, counts}));
    }
    if (b_.Int("is_causal", 0) == 0) return;
    // The last key that a query may see is its own: queries follow the keys of the past, or are the last of the keys.
    ValueId rows = b_.Unsqueeze(Positions(query), {1});
    if (b_.Has(kPastKey)) {
      rows = b_.Add(rows, b_.ShapeOf(b_.Input(kPastKey), 2, 1));
    } else if (counts != kAbsent) {
      rows = b_.Add(rows, b_.Sub(counts, b_.ShapeOf(query, 2, 1)));
    }
    Allow(b_.Op("LessOrEqual", {columns, rows}));
  }

  void Allow(ValueId condition) { allowed_ = allowed_ == kAbsent ? condition : b_.Op("And", {allowed_, condition}); }

  // Keys beyond the last column of the mask are not seen.
  ValueId PadMask(ValueId mask, ValueId key) {
    if (b_.SameExtent(mask, -1, key, 2)) return mask;
    const int64_t rank = static_cast<int64_t>(b_.Rank(mask));
    const ValueId missing = b_.Sub(b_.ShapeOf(key, 2, 1), b_.ShapeOf(mask, rank - 1, 1));
    const ValueId pads = b_.Concat({b_.List(std::vector<int64_t>(static_cast<size_t>(2 * rank - 1), 0)), missing}, 0);
    const bool is_bool = b_.ElementType(mask) == ir::DType::kBool;
    return b_.Op("Pad", {mask, pads, b_.Like(mask, is_bool ? 0 : -kInfinity)});
  }

  // The weights of the values: [batch, heads, queries, keys], or grouped. Sets scores_.
  ValueId WriteWeights(ValueId query, ValueId key) {
    const double scale = b_.Float("scale", 1 / std::sqrt(static_cast<double>(b_.Extent(query, 3))));
    const ValueId turned = ShareHeads(b_.Transpose(key, {0, 1, 3, 2}));
    ValueId scores = b_.MatMul(GroupHeads(b_.Mul(query, b_.Like(query, scale))), turned);
    Keep(ScoreStage::kProduct, scores);
    const double cap = b_.Float("softcap", 0);
    if (cap > 0) scores = b_.Mul(b_.Op("Tanh", {b_.Div(scores, b_.Like(scores, cap))}), b_.Like(scores, cap));
    Keep(ScoreStage::kCapped, scores);
    if (bias_ != kAbsent) scores = b_.Add(scores, bias_);
    if (allowed_ != kAbsent) scores = b_.Op("Where", {allowed_, scores, b_.Like(scores, -kInfinity)});
    Keep(ScoreStage::kMasked, scores);
    const ValueId weights = ZeroMaskedRows(Softmax(scores));
    Keep(ScoreStage::kSoftmax, weights);
    return weights;
  }

  ValueId Softmax(ValueId scores) {
    const ir::DType dtype = b_.ElementType(scores);
    const int64_t precision = b_.Int("softmax_precision", 0);
    // Softmax of 16-bit floats computes in f32 anyway.
    const absl::StatusOr<ir::DType> work = precision == 0 ? dtype : FromOnnxType(precision);
    if (!work.ok()) b_.Fail(work.status());
    const bool converts = work.ok() && *work != dtype && *work != ComputeType(dtype);
    const ValueId x = converts ? b_.Cast(scores, *work) : scores;
    return b_.Cast(b_.Op("Softmax", {x}, {{"axis", int64_t{-1}}}), dtype);
  }

  // The weights of a query that sees no key are 0. (Their softmax is NaN.) Whether that can be depends on the masks
  // alone, which are smaller than the scores and often shared by layers. Without input masks every query sees itself.
  ValueId ZeroMaskedRows(ValueId weights) {
    if (!b_.Has(kMask) && !b_.Has(kKeyCount)) return weights;
    ValueId seen = allowed_;
    if (bias_ != kAbsent) {
      const ValueId finite = b_.Op("Greater", {bias_, b_.Like(bias_, -kInfinity)});
      seen = seen == kAbsent ? finite : b_.Op("And", {seen, finite});
    }
    const ValueId any = b_.Op("ReduceMax", {seen}, {{"axes", std::vector<int64_t>{-1}}});
    return b_.Op("Where", {any, weights, b_.Like(weights, 0)});
  }

  void Keep(ScoreStage stage, ValueId value) {
    if (b_.IsOutputUsed(3) && b_.Int("qk_matmul_output_mode", 0) == static_cast<int64_t>(stage)) {
      scores_ = UngroupScores(value);
    }
  }

  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  Decomposition& b_;
  bool joined_ = false;  // the heads are joined in the last dimension
  int64_t heads_ = 1, kv_heads_ = 1;
  ValueId allowed_ = kAbsent;  // bool: which keys a query sees; kAbsent: all
  ValueId bias_ = kAbsent;     // what is added to the scores; kAbsent: nothing
  ValueId scores_ = kAbsent;   // output 3
};

absl::StatusOr<Values> Attention(Decomposition& b) { return AttentionRule(b).Write(); }

constexpr Row kOnnxAttentionRows[] = {
    {"Attention", Attention, 3},
};

}  // namespace

std::span<const Row> OnnxAttentionRows() { return kOnnxAttentionRows; }

}  // namespace hone::graph::decompose
