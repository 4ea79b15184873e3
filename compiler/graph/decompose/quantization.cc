// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/decompose/quantization.h"

#include <algorithm>

namespace hone::graph::decompose {

using ir::DType;

QuantizedTensor QuantizedInput(const Decomposition& b, size_t first) {
  return {b.Input(first), b.Input(first + 1), b.Input(first + 2)};
}

ValueId Dequantize(Decomposition& b, const QuantizedTensor& x) {
  return b.Op("DequantizeLinear", {x.integers, x.scale, x.zero_point});
}

ValueId CenteredIntegers(Decomposition& b, const QuantizedTensor& x) {
  const ValueId wide = b.Cast(x.integers, DType::kInt32);
  if (x.zero_point == kAbsent) return wide;
  const auto known = b.Known(x.zero_point);
  if (known && std::all_of(known->begin(), known->end(), [](double zero) { return zero == 0; })) return wide;
  return b.Sub(wide, b.Cast(x.zero_point, DType::kInt32));
}

ValueId ZeroPointAsFloat(Decomposition& b, ValueId zero_point) {
  return zero_point == kAbsent ? b.Number(kF32, 0) : b.Cast(zero_point, kF32);
}

ValueId Quantize(Decomposition& b, ValueId x, ValueId scale, ValueId zero_point, DType dtype) {
  return b.Op("QuantizeLinear", {x, scale, zero_point == kAbsent ? b.Number(dtype, 0) : zero_point});
}

ValueId RoundToIntegers(Decomposition& b, ValueId x, DType dtype) {
  return Quantize(b, x, b.Number(kF32, 1), kAbsent, dtype);
}

}  // namespace hone::graph::decompose
