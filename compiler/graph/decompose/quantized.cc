// SPDX-License-Identifier: Apache-2.0
// Rules for quantized operators of com.microsoft that add, multiply, join, pool and reduce 8-bit tensors, or apply a
// function to each element.
//
// Each rule computes in f32 or i32 with the roundings of ONNX Runtime's kernels for x86, in their order. Results are
// therefore equal, except where a sum in f32 rounds differently because it is taken in another order. Not here:
// quantized products (quantized_product.cc) and convolutions (convolution.cc).
#include <algorithm>
#include <utility>

#include "compiler/graph/decompose/attributes.h"
#include "compiler/graph/decompose/layouts.h"
#include "compiler/graph/decompose/quantization.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph::decompose {
namespace {

using ir::DType;

// --- Element-wise, with two operands. Inputs: a, b and y, each with its scale and its zero point.

// Returns true if ONNX Runtime's kernel sees one element of `operand` for a whole run of elements of `other`: the
// innermost dimension in which they differ is 1 in `operand`.
bool IsScalarInRuns(const Decomposition& b, ValueId operand, ValueId other) {
  const auto& a = b.Type(operand).shape;
  const auto& o = b.Type(other).shape;
  for (size_t back = 1; back <= o.size(); ++back) {
    const bool one = back > a.size() || a[a.size() - back] == 1;
    if (o[o.size() - back] == 1) {
      if (!one) return false;
      continue;
    }
    return one;
  }
  return false;
}

// y = round(ra * a + (rb * b + (y_zero - (ra * a_zero + rb * b_zero)))), with ra = a_scale / y_scale and rb likewise;
// each multiplication is rounded together with its addition. An operand that is one number for a run of elements is
// added first, as b.
absl::StatusOr<Values> QLinearAdd(Decomposition& b) {
  const auto multiply_add = [&](ValueId x, ValueId y, ValueId z) { return b.Op("MultiplyAdd", {x, y, z}, {}, "hone"); };
  const auto ratio = [&](const QuantizedTensor& x) { return b.Div(x.scale, b.Input(6)); };
  QuantizedTensor last = QuantizedInput(b, 0), first = QuantizedInput(b, 3);
  if (IsScalarInRuns(b, last.integers, first.integers)) std::swap(last, first);
  const ValueId last_ratio = ratio(last), first_ratio = ratio(first);
  const ValueId zeros = multiply_add(last_ratio, ZeroPointAsFloat(b, last.zero_point),
                                     b.Mul(first_ratio, ZeroPointAsFloat(b, first.zero_point)));
  ValueId sum = b.Sub(ZeroPointAsFloat(b, b.Input(7)), zeros);
  sum = multiply_add(b.Cast(first.integers, kF32), first_ratio, sum);
  sum = multiply_add(b.Cast(last.integers, kF32), last_ratio, sum);
  return Values{RoundToIntegers(b, sum, b.ElementType(last.integers))};
}

// y = round((a - a_zero) * (b - b_zero) * (a_scale * b_scale / y_scale) + y_zero); the first product is exact, the
// second is rounded to f32 before the addition. It is made in f64, so that no compiler rounds both together.
absl::StatusOr<Values> QLinearMul(Decomposition& b) {
  const QuantizedTensor first = QuantizedInput(b, 0), second = QuantizedInput(b, 3);
  const ValueId product = b.Mul(CenteredIntegers(b, first), CenteredIntegers(b, second));
  const ValueId ratio = b.Div(b.Mul(first.scale, second.scale), b.Input(6));
  const ValueId scaled = b.Cast(b.Mul(b.Cast(product, DType::kFloat64), b.Cast(ratio, DType::kFloat64)), kF32);
  return Values{RoundToIntegers(b, b.Add(scaled, ZeroPointAsFloat(b, b.Input(7))), b.ElementType(first.integers))};
}

// --- Element-wise, with one operand: inputs x, x_scale, x_zero_point, y_scale, y_zero_point.

// Quantizes `y` with inputs 3 and 4, in the type of input 0.
Values QuantizedOutput(Decomposition& b, ValueId y) {
  return {Quantize(b, y, b.Input(3), b.Input(4), b.ElementType(b.Input(0)))};
}

absl::StatusOr<Values> QLinearSigmoid(Decomposition& b) {
  return QuantizedOutput(b, b.Op("Sigmoid", {Dequantize(b, QuantizedInput(b, 0))}));
}

absl::StatusOr<Values> QLinearLeakyRelu(Decomposition& b) {
  const ValueId x = Dequantize(b, QuantizedInput(b, 0));
  return QuantizedOutput(b, b.Op("LeakyRelu", {x}, {{"alpha", b.Float("alpha", 0.01)}}));
}

// y = round(softmax(x) * floor(1 / y_scale)) + y_zero. Attribute opset is the version of ONNX's Softmax: before 13, the
// sums run over all dimensions from the axis on.
absl::StatusOr<Values> QLinearSoftmax(Decomposition& b) {
  const ValueId q = b.Input(0);
  const bool one_axis = b.Int("opset", 13) >= 13;
  const int64_t axis = b.Int("axis", -1);
  ValueId x = Dequantize(b, QuantizedInput(b, 0));
  if (one_axis) {
    x = b.Op("Softmax", {x}, {{"axis", axis}});
  } else {
    const ValueId rows = b.Op("Softmax", {b.Op("Flatten", {x}, {{"axis", axis}})}, {{"axis", int64_t{1}}});
    x = b.Op("Reshape", {rows, b.Op("Shape", {q})});
  }
  const ValueId levels = b.Op("Floor", {b.Div(b.Number(kF32, 1), b.Input(3))});
  return Values{Quantize(b, b.Mul(x, levels), b.Number(kF32, 1), b.Input(4), b.ElementType(q))};
}

// --- Joining: an operand is dequantized and quantized again, unless it has the quantization of the output already.

bool IsSameKnown(Decomposition& b, ValueId x, ValueId y) {
  if (x == y) return true;
  const auto known = b.Known(x);
  return known.has_value() && known == b.Known(y);
}

ValueId Requantized(Decomposition& b, const QuantizedTensor& x, ValueId scale, ValueId zero_point) {
  if (IsSameKnown(b, x.scale, scale) && IsSameKnown(b, x.zero_point, zero_point)) return x.integers;
  return Quantize(b, Dequantize(b, x), scale, zero_point, b.ElementType(x.integers));
}

// Inputs: y_scale, y_zero_point, then x, scale and zero point of each part.
absl::StatusOr<Values> QLinearConcat(Decomposition& b) {
  if ((b.node().inputs.size() - 2) % 3 != 0)
    return Malformed("its inputs after the second must come in groups of three");
  Values parts;
  for (size_t first = 2; first < b.node().inputs.size(); first += 3) {
    parts.push_back(Requantized(b, QuantizedInput(b, first), b.Input(0), b.Input(1)));
  }
  return Values{b.Concat(std::move(parts), b.Int("axis", 0))};
}

// Inputs: condition, x, x_scale, x_zero_point, y, y_scale, y_zero_point, z_scale, z_zero_point.
absl::StatusOr<Values> QLinearWhere(Decomposition& b) {
  const ValueId x = Requantized(b, QuantizedInput(b, 1), b.Input(7), b.Input(8));
  const ValueId y = Requantized(b, QuantizedInput(b, 4), b.Input(7), b.Input(8));
  return Values{b.Op("Where", {b.Input(0), x, y})};
}

// --- Reductions and pools: inputs x, x_scale, x_zero_point, y_scale, y_zero_point.

absl::StatusOr<Values> QLinearReduceMean(Decomposition& b) {
  Attributes attributes = {{"keepdims", b.Int("keepdims", 1)}};
  if (b.HasAttribute("axes")) attributes["axes"] = b.Ints("axes", {});
  return QuantizedOutput(b, b.Op("ReduceMean", {Dequantize(b, QuantizedInput(b, 0))}, std::move(attributes)));
}

// y = round(mean / y_scale + y_zero); the mean is that of the dequantized elements.
absl::StatusOr<Values> QLinearAveragePool(Decomposition& b) {
  const DType dtype = b.ElementType(b.Input(0));
  const bool channels_last = b.Int("channels_last", 0) != 0;
  const ValueId x = ChannelsFirst(b, Dequantize(b, QuantizedInput(b, 0)), channels_last);
  const ValueId mean = b.Op("AveragePool", {x}, AttributesWithout(b, {"channels_last"}));
  const ValueId scaled = b.Add(b.Div(mean, b.Input(3)), ZeroPointAsFloat(b, b.Input(4)));
  return Values{ChannelsBack(b, RoundToIntegers(b, scaled, dtype), channels_last)};
}

// y = round(sum * (x_scale / (y_scale * count))) + y_zero; the sum of the centered integers is exact.
absl::StatusOr<Values> QLinearGlobalAveragePool(Decomposition& b) {
  const ValueId q = b.Input(0);
  const int64_t rank = static_cast<int64_t>(b.Rank(q));
  if (rank < 3) return Malformed("input 0 must have a batch, channels and at least one more dimension");
  const int64_t first = b.Int("channels_last", 0) != 0 ? 1 : 2;
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < rank - 2; ++d) axes.push_back(first + d);
  const ValueId sum = b.Op("ReduceSum", {CenteredIntegers(b, QuantizedInput(b, 0)), b.List(axes)});
  const ValueId count = b.Op("ReduceProd", {b.ShapeOf(q, first, rank - 2)}, {{"keepdims", int64_t{0}}});
  const ValueId ratio = b.Div(b.Input(1), b.Mul(b.Input(3), b.Cast(count, kF32)));
  const ValueId scaled = b.Mul(b.Cast(sum, kF32), ratio);
  return Values{Quantize(b, scaled, b.Number(kF32, 1), b.Input(4), b.ElementType(q))};
}

// --- The parts of quantization.

// Without attribute axis there is one scale for all elements.
absl::StatusOr<Values> QuantizeWithScale(Decomposition& b) {
  return Values{b.Op("QuantizeLinear", b.node().inputs, b.node().attributes)};
}

absl::StatusOr<Values> DequantizeWithScale(Decomposition& b) {
  return Values{b.Op("DequantizeLinear", b.node().inputs, b.node().attributes)};
}

// Inputs: a, a_zero_point, b, b_zero_point.
absl::StatusOr<Values> MulInteger(Decomposition& b) {
  const ValueId first = CenteredIntegers(b, {b.Input(0), kAbsent, b.Input(1)});
  return Values{b.Mul(first, CenteredIntegers(b, {b.Input(2), kAbsent, b.Input(3)}))};
}

absl::StatusOr<Values> ReduceSumInteger(Decomposition& b) {
  const DType wide = ir::IsSignedInt(b.ElementType(b.Input(0))) ? DType::kInt32 : DType::kUInt32;
  const std::vector<int64_t> axes = b.Ints("axes", {});
  return Values{b.Op("ReduceSum", {b.Cast(b.Input(0), wide), axes.empty() ? kAbsent : b.List(axes)},
                     {{"keepdims", b.Int("keepdims", 1)}})};
}

constexpr Row kQuantizedRows[] = {
    {"DequantizeLinear", DequantizeWithScale, 2, 10},
    {"MulInteger", MulInteger, 1},
    {"QLinearAdd", QLinearAdd, 2},
    {"QLinearAveragePool", QLinearAveragePool, 2},
    {"QLinearConcat", QLinearConcat, 5},
    {"QLinearGlobalAveragePool", QLinearGlobalAveragePool, 2},
    {"QLinearLeakyRelu", QLinearLeakyRelu, 2},
    {"QLinearMul", QLinearMul, 2},
    {"QLinearReduceMean", QLinearReduceMean, 2},
    {"QLinearSigmoid", QLinearSigmoid, 2},
    {"QLinearSoftmax", QLinearSoftmax, 2},
    {"QLinearWhere", QLinearWhere, 3},
    {"QuantizeLinear", QuantizeWithScale, 2, 10},
    {"ReduceSumInteger", ReduceSumInteger},
};

}  // namespace

std::span<const Row> QuantizedRows() { return kQuantizedRows; }

}  // namespace hone::graph::decompose
