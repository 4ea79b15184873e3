// SPDX-License-Identifier: Apache-2.0
// Affine quantization as expressions, shared by the quantize operators and the quantized products.
//
// q = saturate(round(x / scale) + zero_point), where halves round to even. Not here: the operators (quantize.cc).
#ifndef HONE_COMPILER_GRAPH_OPS_QUANTIZE_H_
#define HONE_COMPILER_GRAPH_OPS_QUANTIZE_H_

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

// Returns saturate(round(scaled) + zero_point) as an integer of type `dtype` (8 or 16 bits). Both operands are f32.
ir::Expr Saturate(ir::DType dtype, ir::Expr scaled, ir::Expr zero_point);

// How the scale of an element is found: one for all, one per position along the axis, or one per block along it.
struct Granularity {
  size_t axis = 0;
  int64_t block = 0;  // block length; 0: not blocked

  // The place of the scale, or of the zero point, for the element at these indices.
  Exprs Place(const ir::Buffer& parameter, Indices i) const;
};
// Reads how the node is quantized. Its inputs are data, scale and zero point; its attributes are axis and block_size.
// InvalidArgument if the shapes do not fit.
absl::StatusOr<Granularity> ReadGranularity(const OpArgs& args);

// How the integer sum of a quantized product a * b becomes the output y: it is scaled by a_scale * b_scale / y_scale
// and offset by y_zero_point.
struct Requantization {
  // Indices of node inputs. The scales of a and y and the zero point of y are scalars; the scale of b may have one
  // element per output channel.
  size_t a_scale, b_scale, y_scale, y_zero_point;
};
// Returns the requantized sum, in the type of y_zero_point. `channel` is the index into b_scale; it is unused if
// b_scale has one element.
ir::Expr Requantize(const OpArgs& args, const Requantization& inputs, ir::Expr sum, const ir::Expr& channel);
// The same for scales and a zero point that are given as values, of f32. `out` is an 8-bit integer type.
struct RequantizationValues {
  ir::Expr a_scale, b_scale, y_scale, y_zero_point;
};
ir::Expr RequantizeBy(const RequantizationValues& values, ir::DType out, ir::Expr sum);

// InvalidArgument unless inputs a and b are 8-bit integers and their zero points, if present, have the same types as
// they.
absl::Status CheckQuantizedOperands(const OpArgs& args, size_t a, size_t b, size_t a_zero_point, size_t b_zero_point);
// InvalidArgument unless input i is present and has one element.
absl::Status CheckScalar(const OpArgs& args, size_t i);
// Returns true if input i is a zero point that is present and not known to be 0.
bool HasOffset(const OpArgs& args, size_t i);

// The OpDef::input_range of products of quantized operands: small scales, small integers.
void QuantizedRange(const OpArgs& args, size_t input, double* low, double* high);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_QUANTIZE_H_
