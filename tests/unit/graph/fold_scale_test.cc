// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/passes/passes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

void AddBatchNorm(GraphBuilder& b, const std::string& input, const std::string& output, int64_t channels) {
  std::vector<float> variance = RandomFloats(channels, 14);
  for (float& v : variance) v = v * v + 0.1f;
  b.Floats("bn_scale", {channels}, RandomFloats(channels, 11))
      .Floats("bn_bias", {channels}, RandomFloats(channels, 12));
  b.Floats("bn_mean", {channels}, RandomFloats(channels, 13)).Floats("bn_var", {channels}, variance);
  b.Node("BatchNormalization", {input, "bn_scale", "bn_bias", "bn_mean", "bn_var"}, {output}, {Attr("epsilon", 0.01f)});
}

int Arithmetic(const Graph& graph) {
  return CountOps(graph, "Mul") + CountOps(graph, "Add") + CountOps(graph, "BatchNormalization");
}

TEST(FoldScale, BatchNormGoesIntoConvolution) {
  GraphBuilder b;
  b.Input("x", {1, 4, 6, 6}).Floats("w", {6, 2, 3, 3}, RandomFloats(108, 1));
  b.Node("Conv", {"x", "w"}, {"c"}, {Attr("group", 2)});
  AddBatchNorm(b, "c", "n", 6);
  b.Node("Relu", {"n"}, {"y"}).Output("y");
  EXPECT_EQ(Arithmetic(ExpectPassesKeepMeaning(b.Model())), 0);
}

TEST(FoldScale, BatchNormGoesIntoTransposedConvolution) {
  GraphBuilder b;
  b.Input("x", {1, 4, 5, 5}).Floats("w", {4, 3, 2, 2}, RandomFloats(48, 1)).Floats("bias", {6}, RandomFloats(6, 2));
  b.Node("ConvTranspose", {"x", "w", "bias"}, {"c"}, {Attr("group", 2), Attr("strides", std::vector<int64_t>{2, 2})});
  AddBatchNorm(b, "c", "y", 6);
  b.Output("y");
  EXPECT_EQ(Arithmetic(ExpectPassesKeepMeaning(b.Model())), 0);
}

TEST(FoldScale, BatchNormGoesIntoGemm) {
  for (int transposed : {0, 1}) {
    GraphBuilder b;
    b.Input("x", {3, 4})
        .Floats("w", transposed ? std::vector<int64_t>{5, 4} : std::vector<int64_t>{4, 5}, RandomFloats(20, 1));
    b.Floats("c", {5}, RandomFloats(5, 2));
    b.Node("Gemm", {"x", "w", "c"}, {"g"}, {Attr("transB", transposed)});
    AddBatchNorm(b, "g", "y", 5);
    b.Output("y");
    EXPECT_EQ(Arithmetic(ExpectPassesKeepMeaning(b.Model())), 1) << "the bias remains";
  }
}

TEST(FoldScale, GemmThatAddsAColumnKeepsIt) {
  GraphBuilder b;
  b.Input("x", {4, 6}).Floats("w", {6, 4}, RandomFloats(24, 1));
  b.Floats("c", {4, 1}, RandomFloats(4, 2)).Floats("s", {4}, RandomFloats(4, 3));
  b.Node("Gemm", {"x", "w", "c"}, {"g"}).Node("Mul", {"g", "s"}, {"y"}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Mul"), 1);
}

TEST(FoldScale, ScaleGoesIntoGemmThatAddsARow) {
  GraphBuilder b;
  b.Input("x", {4, 6}).Floats("w", {6, 4}, RandomFloats(24, 1));
  b.Floats("c", {1, 4}, RandomFloats(4, 2)).Floats("s", {4}, RandomFloats(4, 3));
  b.Node("Gemm", {"x", "w", "c"}, {"g"}).Node("Mul", {"g", "s"}, {"y"}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Mul"), 0);
}

TEST(FoldScale, ScaleAndShiftPerChannelGoIn) {
  GraphBuilder b;
  b.Input("x", {1, 2, 6, 6}).Floats("w", {3, 2, 3, 3}, RandomFloats(54, 1));
  b.Floats("s", {3, 1, 1}, RandomFloats(3, 2)).Floats("t", {1, 3, 1, 1}, RandomFloats(3, 3));
  b.Node("Conv", {"x", "w"}, {"c"}).Node("Mul", {"s", "c"}, {"m"}).Node("Sub", {"m", "t"}, {"y"}).Output("y");
  const Graph graph = ExpectPassesKeepMeaning(b.Model());
  EXPECT_EQ(Arithmetic(graph) + CountOps(graph, "Sub"), 0);
}

// Weights are large: a shift must not copy them, and scaled weights must replace the originals.
TEST(FoldScale, WeightsAreThereOnce) {
  for (const bool scaled : {false, true}) {
    GraphBuilder b;
    b.Input("x", {1, 2, 6, 6})
        .Floats("w", {3, 2, 3, 3}, RandomFloats(54, 1))
        .Floats("t", {3, 1, 1}, RandomFloats(3, 2));
    b.Node("Conv", {"x", "w"}, {"c"}).Node(scaled ? "Mul" : "Add", {"c", "t"}, {"y"}).Output("y");
    Graph graph = Import(b.Model());
    const ValueId before = graph.nodes[0].inputs[1];
    const TensorData weights = graph.values[before].data;
    ASSERT_TRUE(FoldScale(graph).ok());
    ASSERT_THAT(Ops(graph), testing::ElementsAre("Conv"));
    EXPECT_EQ(graph.values[graph.nodes[0].inputs[1]].data == weights, !scaled);
    EXPECT_EQ(graph.values[before].data == nullptr, scaled);
  }
}

TEST(FoldScale, ScalePerPixelStays) {
  GraphBuilder b;
  b.Input("x", {1, 2, 5, 5}).Floats("w", {3, 2, 3, 3}, RandomFloats(54, 1)).Floats("s", {3}, RandomFloats(3, 2));
  b.Node("Conv", {"x", "w"}, {"c"}).Node("Mul", {"c", "s"}, {"y"}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Mul"), 1);
}

TEST(FoldScale, ConvolutionThatOthersReadKeepsItsWeights) {
  GraphBuilder b;
  b.Input("x", {1, 2, 5, 5}).Floats("w", {3, 2, 3, 3}, RandomFloats(54, 1));
  b.Node("Conv", {"x", "w"}, {"c"});
  AddBatchNorm(b, "c", "y", 3);
  b.Output("y").Output("c");
  EXPECT_EQ(Arithmetic(ExpectPassesKeepMeaning(b.Model())), 2);
}

TEST(FoldScale, BatchNormAloneBecomesScaleAndShift) {
  GraphBuilder b;
  b.Input("x", {2, 3, 4});
  AddBatchNorm(b, "x", "y", 3);
  b.Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), testing::ElementsAre("Mul", "Add"));
}

// A model with a convolution with weights up to `size` and a BatchNormalization, in f16 between Casts.
std::string ConvolutionInHalves(float size) {
  std::vector<float> weights = RandomFloats(108, 1), variance = RandomFloats(6, 5);
  for (float& weight : weights) weight *= size;
  for (float& v : variance) v = v * v + 0.1f;
  GraphBuilder b;
  b.Input("f", {1, 4, 6, 6}).Node("Cast", {"f"}, {"x"}, {Attr("to", kHalf)});
  const auto halves = [&](const std::string& name, const std::vector<int64_t>& shape,
                          const std::vector<float>& values) {
    b.Floats("wide_" + name, shape, values).Node("Cast", {"wide_" + name}, {name}, {Attr("to", kHalf)});
  };
  halves("w", {6, 2, 3, 3}, weights);
  halves("scale", {6}, {3, 3, 3, 3, 3, 3});
  halves("bias", {6}, RandomFloats(6, 3));
  halves("mean", {6}, RandomFloats(6, 4));
  halves("variance", {6}, variance);
  b.Node("Conv", {"x", "w"}, {"c"}, {Attr("group", 2)});
  b.Node("BatchNormalization", {"c", "scale", "bias", "mean", "variance"}, {"m"}).Node("Relu", {"m"}, {"r"});
  b.Node("Cast", {"r"}, {"y"}, {Attr("to", kFloat)}).Output("y");
  return b.Model();
}

TEST(FoldScale, HalvesTakeBatchNorm) {
  const std::string model = ConvolutionInHalves(1);
  const Graph graph = Optimize(model);
  EXPECT_EQ(Arithmetic(graph), 0);
  const std::vector<float> expected = RunOnRandom(Import(model), 1), actual = RunOnRandom(graph, 1);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 0.05) << "at " << i;
}

TEST(FoldScale, HalvesThatWouldBeInfiniteStay) { EXPECT_GT(Arithmetic(Optimize(ConvolutionInHalves(60'000))), 0); }

}  // namespace
}  // namespace hone::graph
