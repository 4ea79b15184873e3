// SPDX-License-Identifier: Apache-2.0
// Affine quantization in rules: the reads and the two roundings that ONNX Runtime's quantized operators use.
//
// A quantized tensor is three values: integers, a scale (f32) and a zero point (of the integers' type; kAbsent means
// 0). An integer q stands for the number (q - zero point) * scale. Not here: the rules (quantized.cc,
// quantized_product.cc) and the operators that quantize (ops/quantize.h). Start with Dequantize and Quantize.
#ifndef HONE_COMPILER_GRAPH_DECOMPOSE_QUANTIZATION_H_
#define HONE_COMPILER_GRAPH_DECOMPOSE_QUANTIZATION_H_

#include <cstddef>

#include "compiler/graph/decompose/decomposition.h"

namespace hone::graph::decompose {

inline constexpr ir::DType kF32 = ir::DType::kFloat32;

struct QuantizedTensor {
  ValueId integers = kAbsent, scale = kAbsent, zero_point = kAbsent;
};

// Returns the tensor whose integers, scale and zero point are inputs `first`, `first` + 1 and `first` + 2.
QuantizedTensor QuantizedInput(const Decomposition& b, size_t first);

// Returns (q - zero point) * scale as f32.
ValueId Dequantize(Decomposition& b, const QuantizedTensor& x);
// Returns q - zero point as i32.
ValueId CenteredIntegers(Decomposition& b, const QuantizedTensor& x);
// Returns the zero point as f32; 0 if it is absent.
ValueId ZeroPointAsFloat(Decomposition& b, ValueId zero_point);

// Returns saturate(round(x / scale) + zero point): halves round to even before the zero point is added. The result has
// the type of the zero point, or `dtype` if that is absent.
ValueId Quantize(Decomposition& b, ValueId x, ValueId scale, ValueId zero_point, ir::DType dtype);
// Returns saturate(round(x)) as `dtype`; halves round to even. The zero point is part of x, so that a half rounds to
// the even integer, not to an even distance from the zero point.
ValueId RoundToIntegers(Decomposition& b, ValueId x, ir::DType dtype);

}  // namespace hone::graph::decompose

#endif  // HONE_COMPILER_GRAPH_DECOMPOSE_QUANTIZATION_H_
