// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/operators/operator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/models/model_builder.h"

namespace hone::models {
namespace {

double ProductOf(const Ints& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 1.0,
                         [](double product, int64_t size) { return product * static_cast<double>(size); });
}

Ints Join(Ints first, const Ints& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Returns "3", or "3x1" if the numbers differ.
std::string Text(const Ints& sizes) {
  const bool equal = std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end();
  return equal && !sizes.empty() ? fmt::format("{}", sizes[0]) : fmt::format("{}", fmt::join(sizes, "x"));
}

bool AllAre(const Ints& sizes, int64_t value) {
  return std::all_of(sizes.begin(), sizes.end(), [&](int64_t size) { return size == value; });
}

// Returns a name such as "conv_64x56x56_to_256_k3s2", with suffixes for unusual attributes.
std::string NameOf(std::string_view op, int64_t in, int64_t out, const Ints& space, const Window& w, int64_t groups) {
  std::string name = fmt::format("{}_{}x{}", op, in, fmt::join(space, "x"));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (out != in) name += fmt::format("_to_{}", out);
  name += fmt::format("_k{}s{}", Text(w.kernel), Text(w.stride));
  if (!AllAre(w.dilation, 1)) name += "_d" + Text(w.dilation);
  if (!AllAre(w.before, 0) || !AllAre(w.after, 0)) name += "_p" + Text(Join(w.before, w.after));
  if (groups > 1) name += fmt::format("_g{}", groups);
  return name;
}

std::string NameOf(std::string_view op, const Ints& shape) {
  std::string name = fmt::format("{}_{}", op, fmt::join(shape, "x"));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

Ints OutputSpace(const Ints& space, const Window& w) {
  Ints out;
  for (size_t d = 0; d < space.size(); ++d) {
    const int64_t span = (w.kernel[d] - 1) * w.dilation[d] + 1;
    out.push_back((space[d] + w.before[d] + w.after[d] - span) / w.stride[d] + 1);
  }
  return out;
}

Attributes AttributesOf(const Window& w) {
  return {{"kernel_shape", w.kernel}, {"strides", w.stride}, {"pads", Join(w.before, w.after)}};
}

// A model that applies one node to the input and to `others`, which the callback adds to the builder.
template <typename Others>
Operator Simple(const std::string& name, int64_t opset, std::string_view op, const Ints& shape, double flops,
                const Attributes& attributes, const Others& others) {
  ModelBuilder b(name, opset);
  std::vector<std::string> inputs = {b.Input("x", shape)};
  others(b, &inputs);
  b.Output(b.Node(op, inputs, attributes));
  return {name, shape, false, flops, b.model()};
}

Operator Simple(const std::string& name, int64_t opset, std::string_view op, const Ints& shape, double flops,
                const Attributes& attributes = {}) {
  return Simple(name, opset, op, shape, flops, attributes, [](ModelBuilder&, std::vector<std::string>*) {});
}

}  // namespace

Window Window::Of(size_t rank, int64_t kernel, int64_t stride, int64_t pad) {
  return {Ints(rank, kernel), Ints(rank, stride), Ints(rank, 1), Ints(rank, pad), Ints(rank, pad)};
}

Operator Convolution(std::string_view op, int64_t in, int64_t out, const Ints& space, const Window& w, int64_t groups) {
  const bool transposed = op == "ConvTranspose";
  const Ints weights = Join({transposed ? in : out, (transposed ? out : in) / groups}, w.kernel);
  const double pixels = ProductOf(transposed ? space : OutputSpace(space, w));
  const double flops = 2 * pixels * ProductOf(w.kernel) * static_cast<double>(in * out) / static_cast<double>(groups);
  Attributes attributes = AttributesOf(w);
  attributes.emplace_back("dilations", w.dilation);
  attributes.emplace_back("group", groups);
  return Simple(NameOf(op, in, out, space, w, groups), 13, op, Join({1, in}, space), flops, attributes,
                [&](ModelBuilder& b, std::vector<std::string>* inputs) {
                  inputs->push_back(b.Weight(weights, weights[1]));
                  inputs->push_back(b.Uniform({out}, -0.1, 0.1));
                });
}

Operator Pool(std::string_view op, int64_t channels, const Ints& space, const Window& w) {
  const double flops = static_cast<double>(channels) * ProductOf(OutputSpace(space, w)) * ProductOf(w.kernel);
  return Simple(NameOf(op, channels, channels, space, w, 1), 13, op, Join({1, channels}, space), flops,
                AttributesOf(w));
}

Operator GlobalAveragePool(int64_t channels, const Ints& space) {
  const Ints shape = Join({1, channels}, space);
  return Simple(NameOf("GlobalAveragePool", Join({channels}, space)), 13, "GlobalAveragePool", shape, ProductOf(shape));
}

Operator QuantizedConvolution(int64_t in, int64_t out, const Ints& space, const Window& w) {
  constexpr auto kU8 = onnx::TensorProto::UINT8, kI8 = onnx::TensorProto::INT8;
  const std::string name = NameOf("QLinearConv", in, out, space, w, 1);
  const Ints shape = Join({1, in}, space);
  ModelBuilder b(name, 13);
  const std::string x = b.Input("x", shape, kU8), x_zero = b.Bytes({}, kU8, 113, 113);
  const std::string weights = b.Bytes(Join({out, in}, w.kernel), kI8, -127, 127), none = b.Bytes({}, kI8, 0, 0);
  const std::string scales = b.Uniform({out}, 0.001, 0.002);
  b.Output(b.Node("QLinearConv",
                  {x, b.Scalar(0.05F), x_zero, weights, scales, none, b.Scalar(0.1F), b.Bytes({}, kU8, 120, 120)},
                  AttributesOf(w)),
           kU8);
  const double flops = 2 * ProductOf(OutputSpace(space, w)) * ProductOf(w.kernel) * static_cast<double>(in * out);
  return {name, shape, true, flops, b.model()};
}

Operator QuantizedMatrix(int64_t rows, int64_t in, int64_t out) {
  constexpr auto kU8 = onnx::TensorProto::UINT8, kI8 = onnx::TensorProto::INT8;
  const std::string name = NameOf("MatMulInteger", {rows, in, out});
  ModelBuilder b(name, 13);
  const std::string x = b.Input("x", {rows, in}, kU8), x_zero = b.Bytes({}, kU8, 113, 113);
  b.Output(b.Node("MatMulInteger", {x, b.Bytes({in, out}, kI8, -127, 127), x_zero}), onnx::TensorProto::INT32);
  return {name, {rows, in}, true, 2 * ProductOf({rows, in, out}), b.model()};
}

Operator MatrixProduct(const Ints& batch, int64_t rows, int64_t in, int64_t out) {
  const Ints shape = Join(batch, {rows, in});
  return Simple(fmt::format("{}_to_{}", NameOf("MatMul", shape), out), 13, "MatMul", shape,
                2 * ProductOf(shape) * static_cast<double>(out), {},
                [&](ModelBuilder& b, std::vector<std::string>* inputs) { inputs->push_back(b.Weight({in, out}, in)); });
}

Operator SelfProduct(const Ints& batch, int64_t rows, int64_t n) {
  const Ints shape = Join(batch, {rows, n});
  const std::string name = NameOf("SelfProduct", shape);
  ModelBuilder b(name, 13);
  const std::string x = b.Input("x", shape);
  Ints order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  b.Output(b.Node("MatMul", {x, b.Node("Transpose", {x}, {{"perm", order}})}));
  return {name, shape, false, 2 * ProductOf(shape) * static_cast<double>(rows), b.model()};
}

Operator Rows(std::string_view op, const Ints& shape) {
  const double flops = 4 * ProductOf(shape);  // maximum or mean, difference, its use, quotient
  if (op != "LayerNormalization") return Simple(NameOf(op, shape), 13, op, shape, flops, {{"axis", int64_t{-1}}});
  return Simple(NameOf(op, shape), 17, op, shape, flops, {{"axis", int64_t{-1}}},
                [&](ModelBuilder& b, std::vector<std::string>* inputs) {
                  inputs->push_back(b.Uniform({shape.back()}, 0.5, 1.5));
                  inputs->push_back(b.Uniform({shape.back()}, -0.1, 0.1));
                });
}

Operator Reduce(std::string_view op, const Ints& shape, const Ints& axes) {
  return Simple(fmt::format("{}_a{}", NameOf(op, shape), fmt::join(axes, "x")), 11, op, shape, ProductOf(shape),
                {{"axes", axes}, {"keepdims", int64_t{1}}});
}

Operator Transpose(const Ints& shape, const Ints& order) {
  return Simple(fmt::format("{}_p{}", NameOf("Transpose", shape), fmt::join(order, "x")), 13, "Transpose", shape,
                ProductOf(shape), {{"perm", order}});
}

Operator Unary(std::string_view op, const Ints& shape) {
  return Simple(NameOf(op, shape), 14, op, shape, ProductOf(shape));
}

Operator Binary(std::string_view op, const Ints& shape, const Ints& other) {
  return Simple(
      fmt::format("{}_by_{}", NameOf(op, shape), fmt::join(other, "x")), 14, op, shape, ProductOf(shape), {},
      [&](ModelBuilder& b, std::vector<std::string>* inputs) { inputs->push_back(b.Uniform(other, 0.5, 1)); });
}

Operator TopK(const Ints& shape, int64_t axis, int64_t count) {
  const std::string name = fmt::format("{}_a{}_k{}", NameOf("TopK", shape), axis, count);
  ModelBuilder b(name, 13);
  const std::string x = b.Input("x", shape), values = b.Node("TopK", {x, b.Int64s({count})}, {{"axis", axis}});
  b.last_node().add_output("places");
  b.Output(values);
  b.Output("places", onnx::TensorProto::INT64);
  return {name, shape, false, ProductOf(shape), b.model()};
}

Operator CumSum(const Ints& shape, int64_t axis) {
  return Simple(fmt::format("{}_a{}", NameOf("CumSum", shape), axis), 14, "CumSum", shape, ProductOf(shape), {},
                [&](ModelBuilder& b, std::vector<std::string>* inputs) { inputs->push_back(b.Int64s({axis})); });
}

Operator MixedPower(const Ints& shape, onnx::TensorProto::DataType exponents) {
  std::string type = onnx::TensorProto::DataType_Name(exponents);
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string name = fmt::format("{}_{}", NameOf("Pow", shape), type);
  ModelBuilder b(name, 15);
  const std::string x = b.Input("x", shape), tripled = b.Node("Mul", {x, b.Scalar(3)});
  const std::string rounded = b.Node("Cast", {b.Node("Round", {tripled})}, {{"to", int64_t{exponents}}});
  b.Output(b.Node("Pow", {b.Node("Exp", {x}), rounded}));
  return {name, shape, false, ProductOf(shape), b.model()};
}

}  // namespace hone::models
