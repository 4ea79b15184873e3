// SPDX-License-Identifier: Apache-2.0
// The rule for FlexAttention of ai.onnx.preview: attention whose scores and probabilities the graphs score_mod and
// prob_mod of the node change.
#include <cmath>

#include "base/status.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

class FlexAttentionRule {
 public:
  explicit FlexAttentionRule(Decomposition& b) : b_(b), query_(b.Input(0)), key_(b.Input(1)), value_(b.Input(2)) {}

  absl::StatusOr<Values> Write() {
    HONE_RETURN_IF_ERROR(Check());
    const ir::DType dtype = b_.ElementType(query_);
    HONE_ASSIGN_OR_RETURN(const ir::DType precision, Precision());
    const double scale = b_.Float("scale", 1 / std::sqrt(static_cast<double>(b_.Extent(query_, 3))));
    const ValueId queries = GroupQueries(b_.Mul(query_, b_.Like(query_, scale)));
    const ValueId products = b_.MatMul(queries, ShareHeads(b_.Transpose(key_, {0, 1, 3, 2})));
    // From here to the product with the values everything has the precision of the softmax.
    ValueId weights = Change("score_mod", b_.Cast(products, precision));
    weights = Change("prob_mod", b_.Op("Softmax", {weights}, {{"axis", int64_t{-1}}}));
    const ValueId output = b_.Cast(b_.MatMul(weights, ShareHeads(b_.Cast(value_, precision))), dtype);
    return Values{IsGrouped() ? b_.Reshape(output, {0, heads_, -1, b_.Extent(value_, 3)}) : output};
  }

 private:
  absl::Status Check() {
    for (const std::string& graph : b_.Graphs()) {
      if (graph != "score_mod" && graph != "prob_mod") {
        return Unsupported(fmt::format("attribute {} is not supported; score_mod can do what it does", graph));
      }
    }
    for (const ValueId input : {query_, key_, value_}) {
      if (b_.Rank(input) != 4) return Malformed("query, key and value (inputs 0 to 2) must have 4 dimensions");
    }
    heads_ = b_.Extent(query_, 1);
    kv_heads_ = b_.Extent(key_, 1);
    if (heads_ < 1 || kv_heads_ < 1 || heads_ % kv_heads_ != 0) {
      return Malformed(fmt::format("{} heads of queries do not divide into {} heads of keys", heads_, kv_heads_));
    }
    if (b_.Extent(value_, 1) != kv_heads_ || !b_.SameExtent(key_, 2, value_, 2)) {
      return Malformed("key and value (inputs 1 and 2) must have the same number of heads and of positions");
    }
    return b_.status();
  }

  absl::StatusOr<ir::DType> Precision() {
    const int64_t stated = b_.Int("softmax_precision", 0);
    return stated == 0 ? ComputeType(b_.ElementType(query_)) : FromOnnxType(stated);
  }

  // Heads of queries that share a head of keys are a dimension of their own, along which keys and values are broadcast.
  bool IsGrouped() const { return heads_ != kv_heads_; }
  ValueId GroupQueries(ValueId query) {
    if (!IsGrouped()) return query;
    return b_.Reshape(query, {0, kv_heads_, heads_ / kv_heads_, -1, b_.Extent(query, 3)});
  }
  ValueId ShareHeads(ValueId x) { return IsGrouped() ? b_.Unsqueeze(x, {2}) : x; }

  // Returns x after the graph of the node, which works on [batch, heads, queries, keys]; x itself if there is no graph.
  ValueId Change(std::string_view graph, ValueId x) {
    if (!b_.HasGraph(graph)) return x;
    const ValueId per_head = IsGrouped() ? Regroup(x, {heads_}, 3) : x;
    const ValueId changed = b_.Inline(graph, per_head);
    if (b_.status().ok() && b_.Type(changed) != b_.Type(per_head)) {
      b_.Fail(Malformed(fmt::format("{} must return a tensor of the type and shape that it gets", graph)));
    }
    return IsGrouped() ? Regroup(changed, {kv_heads_, heads_ / kv_heads_}, 2) : changed;
  }

  // Replaces the dimensions between the batch and the last two, of which the first is dimension `rows`.
  ValueId Regroup(ValueId x, const std::vector<int64_t>& heads, int64_t rows) {
    return b_.Op("Reshape", {x, b_.Concat({b_.ShapeOf(x, 0, 1), b_.List(heads), b_.ShapeOf(x, rows, 2)}, 0)});
  }

  Decomposition& b_;
  const ValueId query_, key_, value_;
  int64_t heads_ = 1, kv_heads_ = 1;
};

absl::StatusOr<Values> FlexAttention(Decomposition& b) { return FlexAttentionRule(b).Write(); }

constexpr Row kPreviewRows[] = {
    {"FlexAttention", FlexAttention, 3},
};

}  // namespace

std::span<const Row> PreviewRows() { return kPreviewRows; }

}  // namespace hone::graph::decompose
