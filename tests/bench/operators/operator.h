// SPDX-License-Identifier: Apache-2.0
// Models of one operator each, as compare_operators.js times them: f32 in and out, channels first, or 8-bit integers.
//
// One function per family. What the shapes are: the fixed list is in make_operators.cc, chance in random_operators.h.
#ifndef HONE_TESTS_BENCH_OPERATORS_OPERATOR_H_
#define HONE_TESTS_BENCH_OPERATORS_OPERATOR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/models/onnx_proto.h"

namespace hone::models {

using Ints = std::vector<int64_t>;

struct Operator {
  std::string name;  // of the file; says the shape, and starts with the operator
  Ints shape;        // of the only input
  bool bytes;        // the input is u8, not f32
  double flops;      // a multiplication and an addition per weight, or one operation per element that is read
  onnx::ModelProto model;
  std::string round = {};  // of an odd shape: the name of the same operator of the nearest round one
};

// Over the spatial dimensions; one number each.
struct Window {
  Ints kernel, stride, dilation;
  Ints before, after;  // padding
  // The same number in every one of `rank` dimensions.
  static Window Of(size_t rank, int64_t kernel, int64_t stride = 1, int64_t pad = 0);
};

// "Conv" or "ConvTranspose", with weights and a bias.
Operator Convolution(std::string_view op, int64_t in, int64_t out, const Ints& space, const Window& w,
                     int64_t groups = 1);
// "MaxPool" or "AveragePool".
Operator Pool(std::string_view op, int64_t channels, const Ints& space, const Window& w);
Operator GlobalAveragePool(int64_t channels, const Ints& space);
// Activations u8 with a zero point, weights i8 without, as tools that quantize models make them.
Operator QuantizedConvolution(int64_t in, int64_t out, const Ints& space, const Window& w);
Operator QuantizedMatrix(int64_t rows, int64_t in, int64_t out);
// x of [batch.., rows, in] by constant weights of [in, out].
Operator MatrixProduct(const Ints& batch, int64_t rows, int64_t in, int64_t out);
// x of [batch.., rows, n] by itself transposed, as attention does.
Operator SelfProduct(const Ints& batch, int64_t rows, int64_t n);
// "Softmax", "LogSoftmax" or "LayerNormalization" along the last axis.
Operator Rows(std::string_view op, const Ints& shape);
// "ReduceMean", "ReduceMax" or "ReduceSum" over the axes.
Operator Reduce(std::string_view op, const Ints& shape, const Ints& axes);
Operator Transpose(const Ints& shape, const Ints& order);
// One operation of one operand on every element: "Relu", "Sigmoid", "Tanh", "Erf", "Exp", "HardSwish".
Operator Unary(std::string_view op, const Ints& shape);
// "Add" or "Mul" of a constant of shape `other`, which is broadcast.
Operator Binary(std::string_view op, const Ints& shape, const Ints& other);

}  // namespace hone::models

#endif  // HONE_TESTS_BENCH_OPERATORS_OPERATOR_H_
