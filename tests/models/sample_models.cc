// SPDX-License-Identifier: Apache-2.0
#include "tests/models/sample_models.h"

#include <cmath>
#include <string>
#include <utility>

#include "tests/models/model_builder.h"

namespace hone::models {
namespace {

using Ints = std::vector<int64_t>;

struct ConvShape {
  int64_t in, out, kernel;
  int64_t stride = 1;
  int64_t groups = 1;
};

// A convolution that keeps the image's size (up to the stride), with bias.
std::string Conv(ModelBuilder& b, const std::string& x, const ConvShape& c) {
  const int64_t fan_in = c.in / c.groups * c.kernel * c.kernel;
  const std::string weight = b.Weight({c.out, c.in / c.groups, c.kernel, c.kernel}, fan_in);
  const std::string bias = b.Uniform({c.out}, -0.1, 0.1);
  const int64_t pad = c.kernel / 2;
  return b.Node("Conv", {x, weight, bias},
                {{"kernel_shape", Ints{c.kernel, c.kernel}},
                 {"pads", Ints{pad, pad, pad, pad}},
                 {"strides", Ints{c.stride, c.stride}},
                 {"group", c.groups}});
}

std::string BatchNorm(ModelBuilder& b, const std::string& x, int64_t channels) {
  const std::string scale = b.Uniform({channels}, 0.8, 1.2);
  const std::string bias = b.Uniform({channels}, -0.2, 0.2);
  const std::string mean = b.Uniform({channels}, -0.2, 0.2);
  const std::string variance = b.Uniform({channels}, 0.7, 1.4);
  return b.Node("BatchNormalization", {x, scale, bias, mean, variance}, {{"epsilon", 1e-5f}});
}

std::string Relu(ModelBuilder& b, const std::string& x) { return b.Node("Relu", {x}); }

// Sub-pixel super-resolution by three, the pixel shuffle as PyTorch exports it.
onnx::ModelProto SuperResolution() {
  ModelBuilder b("super_resolution", 17);
  std::string x = b.Input("input", {1, 1, 224, 224});
  x = Relu(b, Conv(b, x, {.in = 1, .out = 64, .kernel = 5}));
  x = Relu(b, Conv(b, x, {.in = 64, .out = 64, .kernel = 3}));
  x = Relu(b, Conv(b, x, {.in = 64, .out = 32, .kernel = 3}));
  x = Conv(b, x, {.in = 32, .out = 9, .kernel = 3});
  x = b.Node("Reshape", {x, b.Int64s({1, 1, 3, 3, 224, 224})});
  x = b.Node("Transpose", {x}, {{"perm", Ints{0, 1, 4, 2, 5, 3}}});
  x = b.Node("Reshape", {x, b.Int64s({1, 1, 672, 672})});
  b.Output(x);
  return b.model();
}

std::string ResidualBlock(ModelBuilder& b, const std::string& x, int64_t in, int64_t out, int64_t stride) {
  std::string y = Conv(b, x, {.in = in, .out = out, .kernel = 3, .stride = stride});
  y = Relu(b, BatchNorm(b, y, out));
  y = BatchNorm(b, Conv(b, y, {.in = out, .out = out, .kernel = 3}), out);
  std::string shortcut = x;
  if (in != out || stride != 1) {
    shortcut = BatchNorm(b, Conv(b, x, {.in = in, .out = out, .kernel = 1, .stride = stride}), out);
  }
  return Relu(b, b.Node("Add", {y, shortcut}));
}

std::string Classifier(ModelBuilder& b, const std::string& x, int64_t channels, int64_t classes) {
  const std::string pooled = b.Node("GlobalAveragePool", {x});
  const std::string flat = b.Node("Flatten", {pooled}, {{"axis", int64_t{1}}});
  const std::string weight = b.Weight({classes, channels}, channels, 1.0);
  return b.Node("Gemm", {flat, weight, b.Uniform({classes}, -0.1, 0.1)}, {{"transB", int64_t{1}}});
}

// The head of a ResNet: 7x7 convolution, max pooling, two residual blocks, classifier.
onnx::ModelProto ResidualBlocks() {
  ModelBuilder b("residual_blocks", 13);
  std::string x = b.Input("image", {1, 3, 64, 64});
  x = Relu(b, BatchNorm(b, Conv(b, x, {.in = 3, .out = 16, .kernel = 7, .stride = 2}), 16));
  x = b.Node("MaxPool", {x}, {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}});
  x = ResidualBlock(b, x, 16, 16, 1);
  x = ResidualBlock(b, x, 16, 32, 2);
  b.Output(Classifier(b, x, 32, 10));
  return b.model();
}

std::string HardSwish(ModelBuilder& b, const std::string& x) {
  return b.Node("Mul", {x, b.Node("HardSigmoid", {x}, {{"alpha", 1.0f / 6.0f}, {"beta", 0.5f}})});
}

std::string SqueezeExcite(ModelBuilder& b, const std::string& x, int64_t channels) {
  std::string gate = b.Node("GlobalAveragePool", {x});
  gate = Relu(b, Conv(b, gate, {.in = channels, .out = channels / 4, .kernel = 1}));
  gate = b.Node("Sigmoid", {Conv(b, gate, {.in = channels / 4, .out = channels, .kernel = 1})});
  return b.Node("Mul", {x, gate});
}

// Two inverted bottlenecks, as in MobileNet V2 (ReLU6) and V3 (hard swish, squeeze and excite).
onnx::ModelProto InvertedBottlenecks() {
  ModelBuilder b("inverted_bottlenecks", 14);
  std::string x = b.Input("image", {1, 16, 28, 28});
  const std::string zero = b.Scalar(0.0f);
  const std::string six = b.Scalar(6.0f);
  std::string y = BatchNorm(b, Conv(b, x, {.in = 16, .out = 96, .kernel = 1}), 96);
  y = b.Node("Clip", {y, zero, six});
  y = BatchNorm(b, Conv(b, y, {.in = 96, .out = 96, .kernel = 3, .groups = 96}), 96);
  y = b.Node("Clip", {y, zero, six});
  y = BatchNorm(b, Conv(b, y, {.in = 96, .out = 16, .kernel = 1}), 16);
  x = b.Node("Add", {x, y});
  y = HardSwish(b, Conv(b, x, {.in = 16, .out = 64, .kernel = 1}));
  y = HardSwish(b, Conv(b, y, {.in = 64, .out = 64, .kernel = 5, .stride = 2, .groups = 64}));
  y = SqueezeExcite(b, y, 64);
  b.Output(Conv(b, y, {.in = 64, .out = 24, .kernel = 1}));
  return b.model();
}

// Layer norm over the last axis, spelled out as exporters before opset 17 do.
std::string LayerNorm(ModelBuilder& b, const std::string& x, int64_t width) {
  const Attributes last_axis = {{"axes", Ints{-1}}};
  const std::string centred = b.Node("Sub", {x, b.Node("ReduceMean", {x}, last_axis)});
  const std::string squared = b.Node("Pow", {centred, b.Scalar(2.0f)});
  const std::string variance = b.Node("Add", {b.Node("ReduceMean", {squared}, last_axis), b.Scalar(1e-5f)});
  const std::string normal = b.Node("Div", {centred, b.Node("Sqrt", {variance})});
  const std::string scaled = b.Node("Mul", {normal, b.Uniform({width}, 0.8, 1.2)});
  return b.Node("Add", {scaled, b.Uniform({width}, -0.2, 0.2)});
}

std::string Gelu(ModelBuilder& b, const std::string& x) {
  const std::string erf = b.Node("Erf", {b.Node("Div", {x, b.Scalar(static_cast<float>(std::sqrt(2.0)))})});
  const std::string gated = b.Node("Mul", {x, b.Node("Add", {erf, b.Scalar(1.0f)})});
  return b.Node("Mul", {gated, b.Scalar(0.5f)});
}

std::string Linear(ModelBuilder& b, const std::string& x, int64_t in, int64_t out) {
  const std::string product = b.Node("MatMul", {x, b.Weight({in, out}, in, 1.0)});
  return b.Node("Add", {b.Uniform({out}, -0.1, 0.1), product});
}

std::string Attention(ModelBuilder& b, const std::string& x, int64_t length, int64_t width, int64_t heads) {
  const std::string split = b.Int64s({1, length, heads, width / heads});
  const auto head = [&](const Ints& perm) {
    return b.Node("Transpose", {b.Node("Reshape", {Linear(b, x, width, width), split})}, {{"perm", perm}});
  };
  const std::string query = head({0, 2, 1, 3});
  const std::string key = head({0, 2, 3, 1});
  const std::string value = head({0, 2, 1, 3});
  const float scale = std::sqrt(static_cast<float>(width / heads));
  const std::string scores = b.Node("Div", {b.Node("MatMul", {query, key}), b.Scalar(scale)});
  const std::string weights = b.Node("Softmax", {scores}, {{"axis", int64_t{-1}}});
  const std::string mixed = b.Node("Transpose", {b.Node("MatMul", {weights, value})}, {{"perm", Ints{0, 2, 1, 3}}});
  return Linear(b, b.Node("Reshape", {mixed, b.Int64s({1, length, width})}), width, width);
}

// One BERT layer on token ids: embeddings, attention and feed-forward, both with add and norm.
onnx::ModelProto TransformerLayer() {
  constexpr int64_t kLength = 32, kWidth = 64, kHeads = 4, kVocabulary = 100;
  ModelBuilder b("transformer_layer", 13);
  const std::string ids = b.Input("input_ids", {1, kLength}, onnx::TensorProto::INT64);
  const std::string words = b.Node("Gather", {b.Uniform({kVocabulary, kWidth}, -1, 1), ids});
  const std::string positions = b.Uniform({1, kLength, kWidth}, -1, 1);
  std::string x = LayerNorm(b, b.Node("Add", {words, positions}), kWidth);
  x = LayerNorm(b, b.Node("Add", {Attention(b, x, kLength, kWidth, kHeads), x}), kWidth);
  const std::string hidden = Gelu(b, Linear(b, x, kWidth, 4 * kWidth));
  x = LayerNorm(b, b.Node("Add", {Linear(b, hidden, 4 * kWidth, kWidth), x}), kWidth);
  b.Output(x);
  return b.model();
}

std::string ConvTranspose(ModelBuilder& b, const std::string& x, int64_t in, int64_t out, int64_t stride, int64_t pad) {
  const std::string weight = b.Weight({in, out, 4, 4}, in * 16 / (stride * stride));
  return b.Node("ConvTranspose", {x, weight},
                {{"kernel_shape", Ints{4, 4}}, {"strides", Ints{stride, stride}}, {"pads", Ints{pad, pad, pad, pad}}});
}

// The generator of a small DCGAN: a vector to a 16x16 image.
onnx::ModelProto TransposedConvolutions() {
  ModelBuilder b("transposed_convolutions", 11);
  std::string x = b.Input("latent", {1, 32, 1, 1});
  x = Relu(b, BatchNorm(b, ConvTranspose(b, x, 32, 64, 1, 0), 64));
  x = Relu(b, BatchNorm(b, ConvTranspose(b, x, 64, 32, 2, 1), 32));
  x = b.Node("Tanh", {ConvTranspose(b, x, 32, 3, 2, 1)});
  b.Output(x);
  return b.model();
}

// Parallel branches joined along the channels, as in Inception, SqueezeNet and DenseNet.
onnx::ModelProto ConcatenatedBranches() {
  ModelBuilder b("concatenated_branches", 12);
  const std::string x = b.Input("image", {1, 24, 17, 17});
  const std::string narrow = Relu(b, Conv(b, x, {.in = 24, .out = 16, .kernel = 1}));
  std::string wide = Relu(b, Conv(b, x, {.in = 24, .out = 12, .kernel = 1}));
  wide = Relu(b, b.Node("Conv", {wide, b.Weight({12, 12, 1, 7}, 84)},
                        {{"kernel_shape", Ints{1, 7}}, {"pads", Ints{0, 3, 0, 3}}}));
  wide = Relu(b, b.Node("Conv", {wide, b.Weight({20, 12, 7, 1}, 84)},
                        {{"kernel_shape", Ints{7, 1}}, {"pads", Ints{3, 0, 3, 0}}}));
  std::string pooled =
      b.Node("AveragePool", {x}, {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 1}}});
  pooled = Relu(b, Conv(b, pooled, {.in = 24, .out = 8, .kernel = 1}));
  const std::string joined = b.Node("Concat", {narrow, wide, pooled, x}, {{"axis", int64_t{1}}});
  b.Output(b.Node("MaxPool", {joined}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}}));
  b.Output(wide);
  return b.model();
}

// Channels split, shuffled and joined as in ShuffleNet V2.
onnx::ModelProto ChannelShuffle() {
  ModelBuilder b("channel_shuffle", 13);
  const std::string x = b.Input("image", {1, 32, 14, 14});
  const std::string left = b.Node("Split", {x, b.Int64s({16, 16})}, {{"axis", int64_t{1}}});
  const std::string right = left + "_right";
  b.last_node().add_output(right);
  std::string y = Relu(b, Conv(b, right, {.in = 16, .out = 16, .kernel = 1}));
  y = Conv(b, y, {.in = 16, .out = 16, .kernel = 3, .groups = 16});
  y = Relu(b, Conv(b, y, {.in = 16, .out = 16, .kernel = 1}));
  y = b.Node("Concat", {left, y}, {{"axis", int64_t{1}}});
  y = b.Node("Reshape", {y, b.Int64s({1, 2, 16, 14, 14})});
  y = b.Node("Transpose", {y}, {{"perm", Ints{0, 2, 1, 3, 4}}});
  b.Output(b.Node("Reshape", {y, b.Int64s({1, -1, 14, 14})}));
  return b.model();
}

// Extents that no tile divides, in a matrix product and a convolution.
onnx::ModelProto OddExtents() {
  ModelBuilder b("odd_extents", 13);
  const std::string rows = b.Input("rows", {37, 257});
  b.Output(Relu(b, Linear(b, rows, 257, 131)));
  const std::string image = b.Input("image", {1, 7, 23, 29});
  b.Output(Relu(b, Conv(b, image, {.in = 7, .out = 19, .kernel = 3, .stride = 2})));
  return b.model();
}

// An input whose first dimension has a name instead of a number: needs --shape.
onnx::ModelProto SymbolicBatch() {
  ModelBuilder b("symbolic_batch", 17);
  const std::string x = b.Input("image", {-1, 3, 16, 16});
  b.Output(Classifier(b, Relu(b, Conv(b, x, {.in = 3, .out = 8, .kernel = 3})), 8, 5));
  return b.model();
}

}  // namespace

std::vector<SampleModel> SampleModels() {
  std::vector<SampleModel> models;
  const auto add = [&](onnx::ModelProto model) {
    std::string name = model.graph().name();
    models.push_back({std::move(name), std::move(model)});
  };
  add(SuperResolution());
  add(ResidualBlocks());
  add(InvertedBottlenecks());
  add(TransformerLayer());
  add(TransposedConvolutions());
  add(ConcatenatedBranches());
  add(ChannelShuffle());
  add(OddExtents());
  add(SymbolicBatch());
  return models;
}

}  // namespace hone::models
