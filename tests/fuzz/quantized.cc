// SPDX-License-Identifier: Apache-2.0
// Products in QDQ form, as quantizers write them.
//
// Scales are powers of two and sums are short, so every f32 between the integers is exact, and results are multiples of
// one step. The scale of the result is an odd multiple of that step: no quotient lies near a half, where a computation
// with other roundings would give another integer.
#include "tests/fuzz/recipes.h"

namespace hone::fuzz {
namespace {

using graph::kAbsent;
using ir::DType;

constexpr double kStep = 1.0 / 32, kWeightStep = 1.0 / 64, kResultStep = 15 * kStep * kWeightStep;

DType ByteType(Grower& g) { return g.OneIn(2) ? DType::kUInt8 : DType::kInt8; }

// kAbsent if q is.
ValueId Dequantize(Grower& g, ValueId q, double step) {
  if (q == kAbsent) return kAbsent;
  std::vector<ValueId> inputs = {q, g.Scalar(DType::kFloat32, step)};
  if (!g.OneIn(4)) inputs.push_back(g.Scalar(g.TypeOf(q).dtype, static_cast<double>(g.Below(5))));
  return g.GrowOne("DequantizeLinear", inputs, Effect::kMoves);
}

// An activation: a view, permutation or pool of it is one, too.
ValueId Activation(Grower& g, const Ints& shape) {
  const ValueId x = Dequantize(g, g.Operand(ByteType(g), shape), kStep);
  if (x == kAbsent || !g.OneIn(3)) return x;
  if (shape.size() == 4 && g.OneIn(2)) {
    const Ints window = {g.Between(1, 2), g.Between(1, 2)};
    const ValueId pooled = g.GrowOne("MaxPool", {x}, Effect::kMoves, {{"kernel_shape", window}});
    return pooled == kAbsent ? x : pooled;
  }
  const ValueId same = g.GrowOne(g.OneIn(2) ? "Dropout" : "Identity", {x}, Effect::kMoves);
  return same == kAbsent ? x : same;
}

// Weights, perhaps with a scale for each place along the axis.
ValueId Weights(Grower& g, const Ints& shape, int64_t axis) {
  const DType dtype = ByteType(g);
  const ValueId q = g.Constant(dtype, shape, dtype == DType::kInt8 ? -60 : 0, 60);
  if (g.OneIn(3)) return Dequantize(g, q, kWeightStep);
  const Ints places = {shape[static_cast<size_t>(axis)]};
  std::vector<ValueId> inputs = {q, g.Constant(DType::kFloat32, places, kWeightStep, kWeightStep)};
  if (g.OneIn(2)) inputs.push_back(g.Constant(dtype, places, 0, 30));
  return g.GrowOne("DequantizeLinear", inputs, Effect::kMoves, {{"axis", axis}});
}

// What follows a product: a sum, an activation, a quantization. Nothing else may read the floats between them: a
// schedule may round them, and a node that jumps at whole numbers would see it.
void Finish(Grower& g, ValueId y) {
  if (y == kAbsent) return;
  g.Hide(y);
  if (g.OneIn(4)) {
    const ValueId other = Dequantize(g, g.Operand(ByteType(g), g.ShapeOf(y)), kStep);
    const ValueId sum = other == kAbsent ? kAbsent : g.GrowOne("Add", {y, other}, Effect::kMoves);
    if (sum != kAbsent) g.Hide(y = sum);
  }
  ValueId bounded = kAbsent;
  if (g.OneIn(3)) bounded = g.GrowOne("Relu", {y}, Effect::kMoves);
  if (bounded == kAbsent && g.OneIn(3)) {
    const ValueId low = g.Scalar(DType::kFloat32, 0), high = g.Scalar(DType::kFloat32, 255 * kResultStep);
    bounded = g.GrowOne("Clip", {y, low, high}, Effect::kMoves);
  }
  if (bounded != kAbsent) g.Hide(y = bounded);
  if (g.OneIn(5)) return;
  const ValueId scale = g.Scalar(DType::kFloat32, kResultStep);
  const ValueId zero = g.Scalar(ByteType(g), static_cast<double>(g.Below(3) * 40));
  const ValueId q = g.GrowOne("QuantizeLinear", {y, scale, zero}, Effect::kJumps);
  if (q != kAbsent && g.OneIn(2)) g.Grow("DequantizeLinear", {q, scale, zero}, Effect::kRounds);
}

// A bias of whole steps of the product.
ValueId Bias(Grower& g, int64_t places) {
  const double value = static_cast<double>(g.Between(-9, 9)) * kStep * kWeightStep;
  return g.Constant(DType::kFloat32, {places}, value, value);
}

void QuantizedConv(Grower& g) {
  const int64_t channels = g.Between(1, 9);
  const bool depthwise = g.OneIn(4);
  const ValueId x = Activation(g, {g.Between(1, 2), channels, g.Between(1, 9), g.Between(1, 9)});
  if (x == kAbsent) return;
  const int64_t filters = depthwise ? channels : g.Between(1, 20);
  const Ints weights = {filters, depthwise ? 1 : channels, g.Between(1, 3), g.Between(1, 3)};
  std::vector<ValueId> inputs = {x, Weights(g, weights, 0)};
  if (inputs[1] == kAbsent) return;
  if (g.OneIn(2)) inputs.push_back(Bias(g, filters));
  Attributes attributes;
  if (depthwise) attributes["group"] = channels;
  if (g.OneIn(2)) attributes["pads"] = Ints{g.Below(2), g.Below(2), g.Below(2), g.Below(2)};
  if (g.OneIn(3)) attributes["strides"] = Ints{g.Between(1, 2), g.Between(1, 2)};
  Finish(g, g.GrowOne("Conv", inputs, Effect::kMoves, attributes));
}

void QuantizedMatMul(Grower& g) {
  const int64_t rows = g.Extent(), k = g.Extent(), columns = g.Extent();
  Ints left = {rows, k};
  if (g.OneIn(3)) left.insert(left.begin(), g.Between(1, 3));
  const ValueId a = Activation(g, left);
  const ValueId b = g.OneIn(4) ? Activation(g, {k, columns}) : Weights(g, {k, columns}, 1);
  if (a != kAbsent && b != kAbsent) Finish(g, g.GrowOne("MatMul", {a, b}, Effect::kMoves));
}

void QuantizedGemm(Grower& g) {
  const int64_t rows = g.Extent(), k = g.Extent(), columns = g.Extent();
  const bool turned = g.OneIn(2);
  std::vector<ValueId> inputs = {Activation(g, {rows, k}),
                                 Weights(g, turned ? Ints{columns, k} : Ints{k, columns}, turned ? 0 : 1)};
  if (inputs[0] == kAbsent || inputs[1] == kAbsent) return;
  if (!g.OneIn(3)) inputs.push_back(Bias(g, columns));
  Finish(g, g.GrowOne("Gemm", inputs, Effect::kMoves, {{"transB", static_cast<int64_t>(turned)}}));
}

constexpr Recipe kQuantizedRecipes[] = {{3, QuantizedConv}, {2, QuantizedMatMul}, {2, QuantizedGemm}};

}  // namespace

std::span<const Recipe> QuantizedRecipes() { return kQuantizedRecipes; }

}  // namespace hone::fuzz
