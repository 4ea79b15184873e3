// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/operators/operator_lists.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace hone::models {
namespace {

void Append(std::vector<Operator>& to, std::vector<Operator> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

Operator Pointwise(int64_t in, int64_t out, int64_t size, int64_t stride = 1) {
  return Convolution("Conv", in, out, {size, size}, Window::Of(2, 1, stride));
}
Operator ThreeByThree(int64_t channels, const Ints& space, int64_t stride = 1) {
  return Convolution("Conv", channels, channels, space, Window::Of(2, 3, stride, 1));
}
Operator Depthwise(int64_t channels, const Ints& space, int64_t stride = 1) {
  return Convolution("Conv", channels, channels, space, Window::Of(2, 3, stride, 1), channels);
}

// Windows that are not two-dimensional, transposed convolutions, and pools.
std::vector<Operator> OtherWindows() {
  return {
      Convolution("Conv", 64, 64, {1000}, Window::Of(1, 3, 1, 1)),
      Convolution("Conv", 64, 64, {16000}, Window::Of(1, 3, 1, 1)),
      Convolution("Conv", 64, 64, {1000}, Window::Of(1, 9, 1, 4)),
      Convolution("Conv", 64, 64, {16000}, Window::Of(1, 9, 1, 4)),
      Convolution("Conv", 256, 256, {100}, Window::Of(1, 3, 1, 1)),
      Convolution("Conv", 128, 128, {1000}, Window::Of(1, 7, 1, 3), 128),
      Convolution("Conv", 16, 32, {16, 56, 56}, Window::Of(3, 3, 1, 1)),
      Convolution("Conv", 64, 64, {8, 28, 28}, Window::Of(3, 3, 1, 1)),
      Convolution("Conv", 128, 128, {4, 14, 14}, Window::Of(3, 3, 1, 1)),
      Convolution("Conv", 128, 256, {4, 14, 14}, Window::Of(3, 1)),
      Convolution("ConvTranspose", 128, 64, {28, 28}, Window::Of(2, 4, 2, 1)),
      Convolution("ConvTranspose", 512, 256, {8, 8}, Window::Of(2, 4, 2, 1)),
      Convolution("ConvTranspose", 128, 64, {56, 56}, Window::Of(2, 2, 2)),
      Convolution("ConvTranspose", 128, 64, {500}, Window::Of(1, 16, 8, 4)),
      Convolution("ConvTranspose", 64, 32, {8, 14, 14}, Window::Of(3, 2, 2)),
      Pool("MaxPool", 64, {112, 112}, Window::Of(2, 3, 2, 1)),
      Pool("MaxPool", 64, {112, 112}, Window::Of(2, 2, 2)),
      Pool("MaxPool", 64, {257, 513}, Window::Of(2, 3, 2, 1)),
      Pool("MaxPool", 192, {28, 28}, Window::Of(2, 3, 1, 1)),
      Pool("AveragePool", 64, {56, 56}, Window::Of(2, 3, 1, 1)),
      Pool("AveragePool", 64, {56, 56}, Window::Of(2, 2, 2)),
      GlobalAveragePool(512, {7, 7}),
      GlobalAveragePool(64, {56, 56}),
  };
}

std::vector<Operator> ResNet50() {
  return {
      Convolution("Conv", 3, 64, {224, 224}, Window::Of(2, 7, 2, 3)),
      Pointwise(64, 64, 56),
      ThreeByThree(64, {56, 56}),
      Pointwise(64, 256, 56),
      Pointwise(256, 64, 56),
      Pointwise(256, 128, 56),
      ThreeByThree(128, {56, 56}, 2),
      Pointwise(128, 512, 28),
      Pointwise(256, 512, 56, 2),
      Pointwise(512, 128, 28),
      ThreeByThree(128, {28, 28}),
      Pointwise(512, 256, 28),
      ThreeByThree(256, {28, 28}, 2),
      Pointwise(256, 1024, 14),
      Pointwise(512, 1024, 28, 2),
      Pointwise(1024, 256, 14),
      ThreeByThree(256, {14, 14}),
      Pointwise(1024, 512, 14),
      ThreeByThree(512, {14, 14}, 2),
      Pointwise(512, 2048, 7),
      Pointwise(1024, 2048, 14, 2),
      Pointwise(2048, 512, 7),
      ThreeByThree(512, {7, 7}),
      GlobalAveragePool(2048, {7, 7}),
      MatrixProduct({}, 1, 2048, 1000),
  };
}

std::vector<Operator> MobileNetV2() {
  std::vector<Operator> layers = {
      Convolution("Conv", 3, 32, {224, 224}, Window::Of(2, 3, 2, 1)),
      Depthwise(32, {112, 112}),
      Pointwise(32, 16, 112),
      GlobalAveragePool(1280, {7, 7}),
      MatrixProduct({}, 1, 1280, 1000),
  };
  // A block expands to six times the channels, runs a depthwise layer, and projects back.
  struct Block {
    int64_t in, out, size, stride;
  };
  const Block blocks[] = {{16, 24, 112, 2}, {24, 24, 56, 1}, {24, 32, 56, 2},  {32, 32, 28, 1},  {32, 64, 28, 2},
                          {64, 64, 14, 1},  {64, 96, 14, 1}, {96, 160, 14, 2}, {160, 160, 7, 1}, {160, 320, 7, 1}};
  for (const auto& [in, out, size, stride] : blocks) {
    layers.push_back(Pointwise(in, 6 * in, size));
    layers.push_back(Depthwise(6 * in, {size, size}, stride));
    layers.push_back(Pointwise(6 * in, out, size / stride));
  }
  layers.push_back(Pointwise(320, 1280, 7));
  return layers;
}

std::vector<Operator> MatrixProducts() {
  std::vector<Operator> products;
  for (const int64_t n : {128, 256, 512, 1024, 2048}) products.push_back(MatrixProduct({}, n, n, n));
  Append(products, {MatrixProduct({1}, 128, 768, 768), MatrixProduct({1}, 128, 768, 3072),
                    MatrixProduct({1}, 128, 3072, 768), SelfProduct({12}, 128, 64)});
  return products;
}

std::vector<Operator> WithoutRepetitions(std::vector<Operator> operators) {
  std::set<std::string> names;
  std::erase_if(operators, [&](const Operator& o) { return !names.insert(o.name).second; });
  return operators;
}

// Appends an operator and the one with the round shape.
void AppendPair(std::vector<Operator>& to, Operator odd, Operator round) {
  odd.round = round.name;
  to.push_back(std::move(odd));
  to.push_back(std::move(round));
}

}  // namespace

std::vector<Operator> UsualOperators() {
  std::vector<Operator> operators = {
      Convolution("Conv", 64, 256, {56, 56}, Window::Of(2, 1)),
      Convolution("Conv", 256, 64, {56, 56}, Window::Of(2, 1)),
      Convolution("Conv", 64, 128, {57, 57}, Window::Of(2, 1)),
      Convolution("Conv", 64, 64, {56, 56}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 128, 128, {28, 28}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 256, 256, {14, 14}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 512, 512, {7, 7}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 64, 128, {56, 56}, Window::Of(2, 3, 2, 1)),
      Convolution("Conv", 16, 16, {257, 513}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 32, 32, {257, 513}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 64, 64, {257, 513}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 16, 16, {256, 512}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 64, 64, {256, 512}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 3, 64, {224, 224}, Window::Of(2, 7, 2, 3)),
      Convolution("Conv", 3, 32, {224, 224}, Window::Of(2, 3, 2, 1)),
      Convolution("Conv", 3, 64, {257, 513}, Window::Of(2, 7, 2, 3)),
      Convolution("Conv", 144, 144, {56, 56}, Window::Of(2, 3, 1, 1), 144),
      Convolution("Conv", 144, 144, {56, 56}, Window::Of(2, 3, 2, 1), 144),
      Convolution("Conv", 512, 512, {14, 14}, Window::Of(2, 3, 1, 1), 512),
  };
  Append(operators, OtherWindows());
  Append(operators, {
                        QuantizedMatrix(512, 512, 512),
                        QuantizedMatrix(19, 37, 45),
                        QuantizedMatrix(128, 768, 3072),
                        QuantizedConvolution(64, 256, {56, 56}, Window::Of(2, 1)),
                        QuantizedConvolution(9, 21, {11, 13}, Window::Of(2, 3, 1, 1)),
                        QuantizedConvolution(64, 64, {56, 56}, Window::Of(2, 3, 1, 1)),
                        QuantizedConvolution(256, 256, {14, 14}, Window::Of(2, 3, 1, 1)),
                        QuantizedConvolution(3, 64, {224, 224}, Window::Of(2, 7, 2, 3)),
                    });
  return operators;
}

std::vector<Operator> LibraryOperators() {
  std::vector<Operator> operators = ResNet50();
  Append(operators, MobileNetV2());
  Append(operators, MatrixProducts());
  Append(operators, OtherWindows());
  Append(operators, {
                        Rows("Softmax", {1, 1000}),
                        Rows("Softmax", {12, 128, 128}),
                        Rows("Softmax", {512, 1024}),
                        Rows("LogSoftmax", {128, 4096}),
                        Rows("LayerNormalization", {128, 768}),
                        Rows("LayerNormalization", {512, 1024}),
                        Reduce("ReduceMean", {1, 256, 56, 56}, {2, 3}),
                        Transpose({1, 64, 56, 56}, {0, 2, 3, 1}),
                        Transpose({1, 56, 56, 64}, {0, 3, 1, 2}),
                        Transpose({128, 12, 64}, {1, 0, 2}),
                        Transpose({12, 128, 64}, {0, 2, 1}),
                        Transpose({1024, 1024}, {1, 0}),
                    });
  return WithoutRepetitions(std::move(operators));
}

std::vector<Operator> OddOperators() {
  std::vector<Operator> operators;
  const Ints odd = {257, 513}, round = {256, 512};
  for (const int64_t channels : {16, 32, 64}) {
    AppendPair(operators, ThreeByThree(channels, odd), ThreeByThree(channels, round));
  }
  const auto image = [&](const auto& make) { AppendPair(operators, make(odd), make(round)); };
  image([](const Ints& space) { return Convolution("Conv", 3, 64, space, Window::Of(2, 7, 2, 3)); });
  image([](const Ints& space) { return Convolution("Conv", 64, 64, space, Window::Of(2, 1)); });
  image([](const Ints& space) { return Depthwise(32, space); });
  image([](const Ints& space) { return Pool("MaxPool", 64, space, Window::Of(2, 3, 2, 1)); });
  const auto channels = [&](int64_t odd_channels, int64_t round_channels) {
    AppendPair(operators, ThreeByThree(odd_channels, {56, 56}), ThreeByThree(round_channels, {56, 56}));
    AppendPair(operators, Pointwise(odd_channels, odd_channels, 56), Pointwise(round_channels, round_channels, 56));
  };
  for (const int64_t n : {13, 14, 15, 17}) channels(n, 16);
  for (const int64_t n : {61, 62, 63, 65, 66, 67}) channels(n, 64);
  for (const auto& [prime, n] : {std::pair<int64_t, int64_t>{127, 128}, {509, 512}, {1021, 1024}}) {
    AppendPair(operators, MatrixProduct({}, prime, prime, prime), MatrixProduct({}, n, n, n));
  }
  return WithoutRepetitions(std::move(operators));
}

std::vector<Operator> RoofOperators() {
  std::vector<Operator> operators;
  for (const int64_t n : {512, 768, 1024, 2048}) operators.push_back(MatrixProduct({}, n, n, n));
  for (const auto& [channels, size] : {std::pair<int64_t, int64_t>{64, 56}, {128, 28}, {256, 14}, {512, 7}}) {
    operators.push_back(ThreeByThree(channels, {size, size}));
  }
  // Working sets of 1, 6 and 100 MB, for caches and for memory.
  for (const Ints& shape : {Ints{1, 64, 48, 48}, Ints{1, 256, 56, 56}, Ints{1, 256, 224, 224}}) {
    Append(operators, {Unary("Relu", shape), Unary("Sigmoid", shape), Binary("Add", shape, {1, shape[1], 1, 1}),
                       Depthwise(shape[1], {shape[2], shape[3]}),
                       Pool("MaxPool", shape[1], {shape[2], shape[3]}, Window::Of(2, 3, 2, 1)),
                       Pool("AveragePool", shape[1], {shape[2], shape[3]}, Window::Of(2, 2, 2))});
  }
  return operators;
}

std::vector<Operator> LineOperators() {
  std::vector<Operator> operators;
  for (const auto& [shape, axis, count] : {std::tuple<Ints, int64_t, int64_t>{{100000}, 0, 100000},
                                           {{100000}, 0, 1000},
                                           {{50257}, 0, 50},
                                           {{8, 8400}, 1, 8400},
                                           {{8400}, 0, 300},
                                           {{8400, 8}, 0, 8400},
                                           {{200, 300}, 1, 300},
                                           {{1000, 100}, 1, 100}}) {
    operators.push_back(TopK(shape, axis, count));
  }
  for (const auto& [shape, axis] : {std::pair<Ints, int64_t>{{512, 1024}, 0},
                                    {{512, 1024}, 1},
                                    {{4096, 64}, 0},
                                    {{64, 512, 32}, 1},
                                    {{1000000}, 0}}) {
    operators.push_back(CumSum(shape, axis));
  }
  for (const auto type : {onnx::TensorProto::INT32, onnx::TensorProto::INT64, onnx::TensorProto::DOUBLE}) {
    operators.push_back(MixedPower({1000000}, type));
  }
  return operators;
}

}  // namespace hone::models
