// SPDX-License-Identifier: Apache-2.0
// Rules for quantized products of com.microsoft: matrices, attention, embeddings and LSTM.
//
// The sums of products are exact (i32). What follows is f32 in the order of ONNX Runtime's kernels.
#include <utility>

#include "compiler/graph/decompose/attention_core.h"
#include "compiler/graph/decompose/quantization.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

using ir::DType;

// (a - a_zero) * (b - b_zero) as i32. `b` may have one zero point per column.
ValueId IntegerProduct(Decomposition& b, ValueId left, ValueId left_zero, ValueId right, ValueId right_zero) {
  return b.Op("MatMulInteger", {left, right, left_zero, right_zero});
}

// An i32 product times its scale, plus an optional bias, in the type of the scale. The arithmetic is in f32.
ValueId ScaledProduct(Decomposition& b, ValueId product, ValueId scale, ValueId bias) {
  const ValueId scaled = b.Mul(b.Cast(product, kF32), b.Cast(scale, kF32));
  return b.Cast(bias == kAbsent ? scaled : b.Add(scaled, b.Cast(bias, kF32)), b.ElementType(scale));
}

// Inputs: a, b, a_scale, b_scale, a_zero_point, b_zero_point, bias.
absl::StatusOr<Values> MatMulIntegerToFloat(Decomposition& b) {
  const ValueId product = IntegerProduct(b, b.Input(0), b.Input(4), b.Input(1), b.Input(5));
  return Values{ScaledProduct(b, product, b.Mul(b.Input(2), b.Input(3)), b.Input(6))};
}

// Inputs: a (f32, quantized to u8 over its range), b, b_scale, b_zero_point, bias.
absl::StatusOr<Values> DynamicQuantizeMatMul(Decomposition& b) {
  const Values left = b.Ops("DynamicQuantizeLinear", {b.Input(0)}, 3);
  const ValueId product = IntegerProduct(b, left[0], left[2], b.Input(1), b.Input(3));
  return Values{ScaledProduct(b, product, b.Mul(left[1], b.Input(2)), b.Input(4))};
}

// Inputs: a, a_scale, a_zero_point, b, b_scale, b_zero_point, c (i32, in units of a_scale * b_scale), y_scale,
// y_zero_point. Without y_scale the output is f32.
absl::StatusOr<Values> QGemm(Decomposition& b) {
  const auto oriented = [&](ValueId matrix, std::string_view attribute) {
    return b.Int(attribute, 0) != 0 ? b.Transpose(matrix, {1, 0}) : matrix;
  };
  ValueId sum =
      IntegerProduct(b, oriented(b.Input(0), "transA"), b.Input(2), oriented(b.Input(3), "transB"), b.Input(5));
  if (b.Has(6)) sum = b.Add(sum, b.Input(6));
  ValueId scale = b.Mul(b.Mul(b.Number(kF32, b.Float("alpha", 1)), b.Input(1)), b.Input(4));
  if (!b.Has(7)) return Values{ScaledProduct(b, sum, scale, kAbsent)};
  scale = b.Div(scale, b.Input(7));
  const DType dtype = b.Has(8) ? b.ElementType(b.Input(8)) : DType::kUInt8;
  return Values{Quantize(b, ScaledProduct(b, sum, scale, kAbsent), b.Number(kF32, 1), b.Input(8), dtype)};
}

// Inputs: x, weights, bias, x_scale, weight_scale, mask, x_zero_point, weight_zero_point, past. Outputs: y, present.
// Only the projection to queries, keys and values is quantized.
absl::StatusOr<Values> QAttention(Decomposition& b) {
  if (b.Int("do_rotary", 0) != 0) return Unsupported("attribute do_rotary is not supported");
  const ValueId product = IntegerProduct(b, b.Input(0), b.Input(6), b.Input(1), b.Input(7));
  const ValueId merged = ScaledProduct(b, product, b.Mul(b.Input(3), b.Input(4)), b.Input(2));
  const int64_t columns = b.Extent(merged, -1);
  if (columns % 3 != 0)
    return Malformed(fmt::format("the weights have {} columns, which is no multiple of 3", columns));
  const Values parts = b.Split(merged, 2, {columns / 3, columns / 3, columns / 3});
  return AttendProjected(b, {.q = parts[0], .k = parts[1], .v = parts[2], .mask = b.Input(5), .past = b.Input(8)});
}

// One row per index of a quantized table, dequantized.
ValueId EmbeddingRows(Decomposition& b, size_t table, size_t scale, size_t zero_point, ValueId indices) {
  const ValueId rows = b.Op("Gather", {b.Input(table), indices});
  return Dequantize(b, {rows, b.Input(scale), b.Input(zero_point)});
}

// Inputs: word ids, segment ids, then the tables of words, positions and segments, gamma, beta, the mask, and from 8 on
// the five scales and from 13 on the five zero points. Outputs: the normalized sum, and per row of the batch the number
// of positions that the mask keeps.
absl::StatusOr<Values> QEmbedLayerNormalization(Decomposition& b) {
  const ValueId ids = b.Input(0);
  ValueId sum = EmbeddingRows(b, 2, 8, 13, ids);
  sum = b.Add(sum, EmbeddingRows(b, 3, 9, 14, b.Positions(ids, 1)));
  if (b.Has(1) && b.Has(4)) sum = b.Add(sum, EmbeddingRows(b, 4, 10, 15, b.Input(1)));
  const ValueId gamma = Dequantize(b, {b.Input(5), b.Input(11), b.Input(16)});
  const ValueId beta = Dequantize(b, {b.Input(6), b.Input(12), b.Input(17)});
  Values outputs = {
      b.Op("LayerNormalization", {sum, gamma, beta}, {{"axis", int64_t{-1}}, {"epsilon", b.Float("epsilon", 1e-12)}})};
  if (b.IsOutputUsed(1)) {
    const ValueId kept =
        b.Has(7) ? b.Cast(b.Input(7), DType::kInt32) : b.Mul(b.Cast(ids, DType::kInt32), b.Number(DType::kInt32, 0));
    outputs.push_back(b.Op("ReduceSum", {kept, b.List({1})}, {{"keepdims", int64_t{0}}}));
  }
  return outputs;
}

// A weight of DynamicQuantizeLSTM as the f32 weight of ONNX's LSTM: [directions, inputs, gates] becomes [directions,
// gates, inputs]. The scale has one number per direction, or one per direction and gate.
ValueId LstmWeight(Decomposition& b, size_t weight, size_t scale) {
  const auto per_gate = [&](ValueId x) { return b.Rank(x) == 2 ? b.Unsqueeze(x, {1}) : b.Unsqueeze(x, {1, 2}); };
  ValueId integers = b.Cast(b.Input(weight), DType::kInt32);
  if (b.Has(scale + 1)) integers = b.Sub(integers, b.Cast(per_gate(b.Input(scale + 1)), DType::kInt32));
  return b.Transpose(b.Mul(b.Cast(integers, kF32), per_gate(b.Input(scale))), {0, 2, 1});
}

// Inputs: x, w, r, then as ONNX's LSTM, and from 8 on the scales and zero points of w and r. x is quantized to u8 as in
// ONNX Runtime. The state is not: results differ from ONNX Runtime's by what the quantization of the state costs.
absl::StatusOr<Values> DynamicQuantizeLstm(Decomposition& b) {
  const Values x = b.Ops("DynamicQuantizeLinear", {b.Input(0)}, 3);
  const Values inputs = {Dequantize(b, {x[0], x[1], x[2]}),
                         LstmWeight(b, 1, 8),
                         LstmWeight(b, 2, 10),
                         b.Input(3),
                         b.Input(4),
                         b.Input(5),
                         b.Input(6),
                         b.Input(7)};
  return b.Ops("LSTM", inputs, 3, b.node().attributes);
}

constexpr Row kQuantizedProductRows[] = {
    {"DynamicQuantizeLSTM", DynamicQuantizeLstm, 3},           {"DynamicQuantizeMatMul", DynamicQuantizeMatMul, 3},
    {"MatMulIntegerToFloat", MatMulIntegerToFloat, 4},         {"QAttention", QAttention, 5},
    {"QEmbedLayerNormalization", QEmbedLayerNormalization, 1}, {"QGemm", QGemm, 5},
};

}  // namespace

std::span<const Row> QuantizedProductRows() { return kQuantizedProductRows; }

}  // namespace hone::graph::decompose
