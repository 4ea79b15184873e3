// SPDX-License-Identifier: Apache-2.0
// Rules for operators of com.microsoft that have their own tensor expressions (ops/), and for others made of them.
#include <utility>

#include "base/status.h"
#include "compiler/graph/decompose/fused_activation.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

// The node itself, whatever domain the file has it in.
absl::StatusOr<Values> Keep(Decomposition& b) {
  return Values{b.Op(b.node().op, b.node().inputs, b.node().attributes, kMicrosoft)};
}

// A product of x with the packed weights, scales and bias (optional) in the node's inputs from `first` on.
ValueId PackedProduct(Decomposition& b, ValueId x, size_t first, int64_t outputs) {
  Values inputs = {x, b.Input(first), b.Input(first + 1)};
  if (b.Has(first + 2)) inputs.insert(inputs.end(), {kAbsent, kAbsent, b.Input(first + 2)});
  return b.Op(
      "MatMulNBits", std::move(inputs),
      {{"K", b.Int("K", 0)}, {"N", outputs}, {"bits", b.Int("bits", 4)}, {"block_size", b.Int("block_size", 0)}},
      kMicrosoft);
}

// x + skip (input 1), if the node has it, and its normalization with scale (input 2).
struct Normalized {
  ValueId sum, value;
};

Normalized NormalizeInput(Decomposition& b) {
  const ValueId sum = b.Has(1) ? b.Add(b.Input(0), b.Input(1)) : b.Input(0);
  if (!b.Has(2)) return {sum, sum};
  const Attributes attributes = {{"axis", int64_t{-1}}, {"epsilon", b.Float("epsilon", 1e-5)}};
  return {sum, b.Op("RMSNormalization", {sum, b.Input(2)}, attributes)};
}

// Inputs: x, skip, scale of the norm, weights, scales and bias of the gate, the same of the other factor; skip, norm
// and biases are optional. Outputs: activation(gate) * factor, x + skip.
absl::StatusOr<Values> MatMulNBitsMlp(Decomposition& b) {
  const Normalized x = NormalizeInput(b);
  const int64_t outputs = b.Int("N", 0);
  ValueId gate = PackedProduct(b, x.value, 3, outputs);
  const std::string activation = b.String("activation", "");
  if (activation == "silu" || activation == "swish" || activation == "Silu") {
    gate = b.Op("Swish", {gate});
  } else {
    gate = ApplyActivation(b, gate, activation, {});
  }
  return Values{b.Mul(gate, PackedProduct(b, x.value, 6, outputs)), x.sum};
}

// Inputs: x, skip (optional), scale of the norm, weights, scales and bias (optional) of q, k and v. Outputs: q, k, v,
// x + skip.
absl::StatusOr<Values> MatMulNBitsQkv(Decomposition& b) {
  const Normalized x = NormalizeInput(b);
  const int64_t key_width = b.Int("Nkv", 0);
  return Values{PackedProduct(b, x.value, 3, b.Int("Nq", 0)), PackedProduct(b, x.value, 6, key_width),
                PackedProduct(b, x.value, 9, key_width), x.sum};
}

// The numbers packed in the bytes of the last dimension, as f32. The first number of a byte is in its lowest bits.
// Returns the first `count` of them.
ValueId UnpackNumbers(Decomposition& b, ValueId bytes, int64_t bits, int64_t count) {
  if (bits == 8) return b.Cast(bytes, ir::DType::kFloat32);
  const int64_t rank = static_cast<int64_t>(b.Rank(bytes));
  const ValueId mask = b.Like(bytes, static_cast<double>((1 << bits) - 1));
  Values parts;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    const ValueId shifted =
        b.Op("BitShift", {bytes, b.Like(bytes, static_cast<double>(shift))}, {{"direction", std::string("RIGHT")}});
    parts.push_back(b.Unsqueeze(b.Op("BitwiseAnd", {shifted, mask}), {rank}));
  }
  const ValueId numbers =
      b.Op("Reshape", {b.Concat(parts, rank), b.Concat({b.ShapeOf(bytes, 0, rank - 1), b.List({-1})}, 0)});
  return b.Cast(b.Slice(numbers, -1, 0, count), ir::DType::kFloat32);
}

// Inputs: packed rows u8[rows, bytes], indices of rows, scales [rows, blocks], zero points (optional, packed).
absl::StatusOr<Values> GatherBlockQuantized(Decomposition& b) {
  const int64_t bits = b.Int("bits", 4), block = b.Int("block_size", 128);
  if (b.ElementType(b.Input(0)) != ir::DType::kUInt8) return Unsupported("only packed rows of u8 are supported");
  if (bits != 2 && bits != 4 && bits != 8) {
    return Unsupported(fmt::format("attribute bits is {}; 2, 4 and 8 are supported", bits));
  }
  const int64_t quantized = b.Int("quantize_axis", 1);
  if (b.Rank(b.Input(0)) != 2 || b.Int("gather_axis", 0) != 0 || (quantized != 1 && quantized != -1)) {
    return Unsupported("only rows of 2 dimensions are supported, gathered along axis 0 and quantized along axis 1");
  }
  const int64_t count = b.Extent(b.Input(0), 1) * (8 / bits), blocks = b.Extent(b.Input(2), 1);
  if (block < 1 || count != block * blocks) {
    return Unsupported(fmt::format("rows of {} numbers are not {} whole blocks of {}", count, blocks, block));
  }
  const auto rows = [&](size_t input) { return b.Op("Gather", {b.Input(input), b.Input(1)}); };
  const int64_t rank = static_cast<int64_t>(b.Rank(b.Input(1))) + 1;
  const ValueId numbers = UnpackNumbers(b, rows(0), bits, count);
  const ValueId shape = b.ShapeOf(numbers, 0, rank - 1);
  const ValueId split = b.Op("Reshape", {numbers, b.Concat({shape, b.List({blocks, block})}, 0)});
  const ValueId zeros = b.Has(3) ? b.Unsqueeze(UnpackNumbers(b, rows(3), bits, blocks), {rank})
                                 : b.Number(ir::DType::kFloat32, static_cast<double>(1 << (bits - 1)));
  const ValueId scales = b.Unsqueeze(b.Cast(rows(2), ir::DType::kFloat32), {rank});
  const ValueId values = b.Mul(b.Sub(split, zeros), scales);
  const ValueId joined = b.Op("Reshape", {values, b.Concat({shape, b.List({count})}, 0)});
  return Values{b.Cast(joined, b.ElementType(b.Input(2)))};
}

// As ONNX's operator of this name, with one state per entry of the batch.
absl::StatusOr<Values> LinearAttention(Decomposition& b) {
  if (b.Int("state_window", 0) != 0) return Unsupported("attribute state_window is not supported; it must be 0");
  Attributes attributes = b.node().attributes;
  attributes.erase("state_window");
  attributes.erase("chunk_size");  // advice on how to compute, without effect on the result
  if (b.Float("scale", 0) == 0) attributes.erase("scale");
  const Values outputs = b.Ops("LinearAttention", b.node().inputs, b.IsOutputUsed(1) ? 2 : 1, std::move(attributes));
  return outputs;
}

// Inputs: a, bias of a, scale, b (optional). Outputs: scale * softplus(a + bias), sigmoid(b).
absl::StatusOr<Values> LinearAttentionGate(Decomposition& b) {
  const ValueId a = b.Cast(b.Input(0), b.ElementType(b.Input(1)));
  const ValueId decay = b.Mul(b.Op("Softplus", {b.Add(a, b.Input(1))}), b.Input(2));
  return Values{b.Cast(decay, b.ElementType(b.Input(0))), b.IsOutputUsed(1) ? b.Op("Sigmoid", {b.Input(3)}) : kAbsent};
}

constexpr Row kOwnRows[] = {
    {"CropAndResize", Keep, 4},
    {"GatherBlockQuantized", GatherBlockQuantized, 3},
    {"Inverse", Keep},
    {"LinearAttention", LinearAttention, 3, 27},
    {"LinearAttentionGate", LinearAttentionGate, 3},
    {"MatMulNBits", Keep, 3},
    {"MatMulNBitsMlp", MatMulNBitsMlp, 1},
    {"MatMulNBitsQkv", MatMulNBitsQkv, 1},
};

}  // namespace

std::span<const Row> OwnOperatorRows() { return kOwnRows; }

}  // namespace hone::graph::decompose
