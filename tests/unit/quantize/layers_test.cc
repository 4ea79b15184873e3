// SPDX-License-Identifier: Apache-2.0
#include "deploy/quantize/layers.h"

#include <set>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "deploy/package/atomic_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/model_builder.h"

namespace hone::quantize {
namespace {

using models::ModelBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The names of nodes are those of their operators with a number, in the order of the file.
absl::StatusOr<Layers> Find(const ModelBuilder& builder) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder / "m.onnx";
  EXPECT_EQ(package::WriteTextFile(builder.model().SerializeAsString(), path), absl::OkStatus());
  const ModelFile model = ModelFile::Read(path, false).value();
  std::set<std::string> floats;
  for (const onnx::ValueInfoProto& input : model.graph().input()) floats.insert(input.name());
  for (const onnx::NodeProto& node : model.graph().node()) floats.insert(node.output().begin(), node.output().end());
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    if (tensor.data_type() == onnx::TensorProto::FLOAT) floats.insert(tensor.name());
  }
  return FindLayers(model, floats, true);
}

std::vector<std::string> Operators(const Layers& layers) {
  std::vector<std::string> names;
  for (const Layer& layer : layers.layers) names.push_back(layer.op);
  return names;
}

TEST(FindLayers, AProductWithItsBoundIsOneLayer) {
  ModelBuilder b("m", 17);
  const std::string x = b.Input("x", {1, 8, 4, 4});
  const std::string r = b.Node("Relu", {b.Node("Conv", {x, b.Weight({8, 8, 1, 1}, 8), b.Uniform({8}, -1, 1)})});
  b.Output(b.Node("Softmax", {b.Node("Conv", {r, b.Weight({8, 8, 1, 1}, 8)})}));
  const Layers layers = Find(b).value();
  EXPECT_THAT(Operators(layers), ElementsAre("Conv", "Conv"));
  ASSERT_EQ(layers.values.size(), 2U) << "the input and what Relu gives; the last result stays in f32";
  EXPECT_EQ(layers.values[0].name, "x");
  EXPECT_EQ(layers.values[1].name, r);
  EXPECT_EQ(layers.layers[0].weights.axis, 0);
  EXPECT_FALSE(layers.layers[0].bias.empty());
}

TEST(FindLayers, FollowersCountBetweenProducts) {
  ModelBuilder b("m", 17);
  const std::string x = b.Input("x", {1, 8, 4, 4});
  const std::string c = b.Node("Conv", {x, b.Weight({8, 8, 1, 1}, 8)});
  const std::string p = b.Node("MaxPool", {b.Node("Add", {c, x})}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  const std::string g = b.Node("GlobalAveragePool", {b.Node("Conv", {p, b.Weight({8, 8, 1, 1}, 8)})});
  b.Output(g);
  const Layers layers = Find(b).value();
  EXPECT_THAT(Operators(layers), ElementsAre("Conv", "Add", "MaxPool", "Conv")) << "nothing reads the last pool";
  // The maximum of quantized values is one of them, so both sides of the pool share a range.
  const LayerValue &sum = layers.values[static_cast<size_t>(layers.layers[2].reads[0])],
                   &pooled = layers.values[static_cast<size_t>(layers.layers[3].reads[0])];
  EXPECT_EQ(sum.range, pooled.range);
  EXPECT_TRUE(pooled.derived);
  EXPECT_FALSE(sum.derived);
}

TEST(FindLayers, WhatOtherOperatorsMakeIsNoFollower) {
  ModelBuilder b("m", 17);
  const std::string x = b.Input("x", {4, 8});
  const std::string m = b.Node("MatMul", {x, b.Weight({8, 8}, 8)});
  const std::string e = b.Node("Mul", {b.Node("Erf", {m}), m});
  b.Output(b.Node("MatMul", {e, b.Weight({8, 8}, 8)}));
  const Layers layers = Find(b).value();
  EXPECT_THAT(Operators(layers), ElementsAre("MatMul", "MatMul"));
  EXPECT_EQ(layers.layers[1].weights.axis, 1);
}

TEST(FindLayers, BothOperandsOfAProductCanBeValues) {
  ModelBuilder b("m", 17);
  b.Output(b.Node("MatMul", {b.Input("x", {4, 8}), b.Input("y", {8, 4})}));
  const Layers layers = Find(b).value();
  EXPECT_EQ(layers.layers[0].reads.size(), 2U);
  EXPECT_TRUE(layers.layers[0].weights.name.empty());
}

TEST(FindLayers, SharedConstantsBehindIdentities) {
  ModelBuilder b("m", 17);
  const std::string x = b.Input("x", {4, 8}), w = b.Weight({8, 8}, 8), copy = b.Node("Identity", {w});
  b.Output(b.Node("MatMul", {b.Node("MatMul", {x, w}), copy}));
  const Layers layers = Find(b).value();
  ASSERT_EQ(layers.layers.size(), 2U);
  EXPECT_EQ(layers.layers[0].weights.name, layers.layers[1].weights.name);
}

TEST(FindLayers, RefusesWhatIsQuantizedOrHasNothingToQuantize) {
  ModelBuilder none("m", 17);
  none.Output(none.Node("Relu", {none.Input("x", {4})}));
  EXPECT_THAT(Find(none).status().message(), HasSubstr("nothing to quantize"));
  ModelBuilder done("m", 17);
  const std::string q = done.Node("DequantizeLinear", {done.Input("x", {4}, onnx::TensorProto::UINT8), done.Scalar(1)});
  done.Output(q);
  EXPECT_THAT(Find(done).status().message(), HasSubstr("quantized already: it has a DequantizeLinear node"));
}

}  // namespace
}  // namespace hone::quantize
