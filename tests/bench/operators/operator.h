// SPDX-License-Identifier: Apache-2.0
// Models of one operator each, which compare_operators.js times: f32 with channels first, or 8-bit integers.
//
// One function per family of operators. make_operators.cc and operator_lists.h have the fixed shapes,
// random_operators.h random ones.
#ifndef HONE_TESTS_BENCH_OPERATORS_OPERATOR_H_
#define HONE_TESTS_BENCH_OPERATORS_OPERATOR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/onnx_proto.h"

namespace hone::models {

using Ints = std::vector<int64_t>;

struct Operator {
  std::string name;  // file name; starts with the operator and contains the shape
  Ints shape;        // shape of the only input
  bool bytes;        // the input is u8 instead of f32
  double flops;      // two operations per multiply-add, or one per element read
  onnx::ModelProto model;
  std::string round = {};  // for an odd shape: the name of the operator with the nearest round shape; else empty
};

// A window over the spatial dimensions, with one number for each of them.
struct Window {
  Ints kernel, stride, dilation;
  Ints before, after;  // padding
  // The same numbers in each of `rank` dimensions.
  static Window Of(size_t rank, int64_t kernel, int64_t stride = 1, int64_t pad = 0);
};

// "Conv" or "ConvTranspose", with weights and a bias.
Operator Convolution(std::string_view op, int64_t in, int64_t out, const Ints& space, const Window& w,
                     int64_t groups = 1);
// "MaxPool" or "AveragePool".
Operator Pool(std::string_view op, int64_t channels, const Ints& space, const Window& w);
Operator GlobalAveragePool(int64_t channels, const Ints& space);
// u8 activations with a zero point and i8 weights without one, as quantization tools produce them.
Operator QuantizedConvolution(int64_t in, int64_t out, const Ints& space, const Window& w);
Operator QuantizedMatrix(int64_t rows, int64_t in, int64_t out);
// x of [batch.., rows, in] times constant weights of [in, out].
Operator MatrixProduct(const Ints& batch, int64_t rows, int64_t in, int64_t out);
// x of [batch.., rows, n] times its own transpose, as in attention.
Operator SelfProduct(const Ints& batch, int64_t rows, int64_t n);
// "Softmax", "LogSoftmax" or "LayerNormalization" along the last axis.
Operator Rows(std::string_view op, const Ints& shape);
// "ReduceMean", "ReduceMax" or "ReduceSum" over the axes.
Operator Reduce(std::string_view op, const Ints& shape, const Ints& axes);
Operator Transpose(const Ints& shape, const Ints& order);
// A unary element-wise operator: "Relu", "Sigmoid", "Tanh", "Erf", "Exp", "HardSwish".
Operator Unary(std::string_view op, const Ints& shape);
// "Add" or "Mul" with a constant of shape `other`, which is broadcast.
Operator Binary(std::string_view op, const Ints& shape, const Ints& other);

// The largest `count` elements along the axis, and where they are.
Operator TopK(const Ints& shape, int64_t axis, int64_t count);
Operator CumSum(const Ints& shape, int64_t axis);
// "Pow" with exponents of type i64, i32 or f64, which are the input's elements, rounded to integers.
Operator MixedPower(const Ints& shape, onnx::TensorProto::DataType exponents);

}  // namespace hone::models

#endif  // HONE_TESTS_BENCH_OPERATORS_OPERATOR_H_
