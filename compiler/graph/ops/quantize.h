// SPDX-License-Identifier: Apache-2.0
// Affine quantization as expressions: what the quantize operators and the quantized products share.
//
// q = saturate(round(x / scale) + zero_point), rounding half to even. Not here: the operators (quantize.cc).
#ifndef HONE_COMPILER_GRAPH_OPS_QUANTIZE_H_
#define HONE_COMPILER_GRAPH_OPS_QUANTIZE_H_

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

// saturate(round(scaled) + zero_point) as an integer of type `dtype` (8 or 16 bits); both operands are f32.
ir::Expr Saturate(ir::DType dtype, ir::Expr scaled, ir::Expr zero_point);

// The sum of a quantized product, requantized: scaled by a_scale * b_scale / y_scale, offset by y_zero_point.
struct Requantization {
  // Inputs of the node. Scale of a and y and zero point of y are scalars; those of b may be per output channel.
  size_t a_scale, b_scale, y_scale, y_zero_point;
};
// `channel` indexes b_scale if that has more than one element. The result is of y_zero_point's type.
ir::Expr Requantize(const OpArgs& args, const Requantization& inputs, ir::Expr sum, const ir::Expr& channel);

// Fails unless inputs a and b are 8-bit integers, their zero points (if there) are of the same types.
absl::Status CheckQuantizedOperands(const OpArgs& args, size_t a, size_t b, size_t a_zero_point, size_t b_zero_point);
// InvalidArgument unless input i is there and has one element.
absl::Status CheckScalar(const OpArgs& args, size_t i);
// Whether there is a zero point in input i that may be another number than 0.
bool HasOffset(const OpArgs& args, size_t i);

// The input_range of products of quantized operands: small scales, small integers.
void QuantizedRange(const OpArgs& args, size_t input, double* low, double* high);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_QUANTIZE_H_
