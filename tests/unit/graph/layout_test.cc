// SPDX-License-Identifier: Apache-2.0
#include <tuple>

#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

// Adds a convolution, 3x3 by default. The tests make them large enough that changing the layout of their region pays
// for its borders.
GraphBuilder& Conv(GraphBuilder& b, const std::string& input, const std::string& output, int64_t in, int64_t out,
                   int64_t kernel = 3) {
  b.Floats("w_" + output, {out, in, kernel, kernel}, RandomFloats(out * in * kernel * kernel, out));
  return b.Node("Conv", {input, "w_" + output}, {output},
                {Attr("pads", std::vector<int64_t>{kernel / 2, kernel / 2, kernel / 2, kernel / 2})});
}

int NhwcNodes(const Graph& graph) {
  int count = 0;
  for (const Node& node : graph.nodes) count += StringAttribute(node, "layout", "NCHW") == "NHWC";
  return count;
}

TEST(Layout, OneTransposeInAndOneOut) {
  GraphBuilder b;
  b.Input("x", {1, 8, 6, 5});
  Conv(b, "x", "a", 8, 16);
  b.Node("Relu", {"a"}, {"r"});
  Conv(b, "r", "y", 16, 8).Output("y");
  const Graph graph = ExpectPassesKeepMeaning(b.Model());
  EXPECT_EQ(NhwcNodes(graph), 2);
  EXPECT_EQ(CountOps(graph, "Transpose"), 2);
}

TEST(Layout, EverythingBetweenConvolutionsMovesAlong) {
  GraphBuilder b;
  b.Input("x", {1, 8, 8, 8})
      .Floats("per_channel", {16, 1, 1}, RandomFloats(16, 5))
      .Floats("full", {1, 16, 8, 8}, RandomFloats(1024, 6));
  Conv(b, "x", "a", 8, 16);
  b.Node("Add", {"a", "full"}, {"a1"}).Node("Relu", {"a1"}, {"r"}).Node("Mul", {"r", "per_channel"}, {"s"});
  b.Node("MaxPool", {"s"}, {"p"},
         {Attr("kernel_shape", std::vector<int64_t>{2, 2}), Attr("strides", std::vector<int64_t>{2, 2})});
  b.Node("Split", {"p"}, {"p1", "p2"}, {Attr("axis", 1)})
      .Node("Concat", {"p2", "p1", "p"}, {"cat"}, {Attr("axis", -3)});
  b.Ints("pads", {0, 1, 0, 2, 0, 0, 1, 0}).Node("Pad", {"cat", "pads"}, {"padded"});
  b.Ints("starts", {1, 1})
      .Ints("ends", {33, 5})
      .Ints("axes", {1, 3})
      .Node("Slice", {"padded", "starts", "ends", "axes"}, {"sl"});
  b.Node("Softmax", {"sl"}, {"sm"}, {Attr("axis", 1)});
  b.Node("ReduceMean", {"sm"}, {"mean"}, {Attr("axes", std::vector<int64_t>{2, 3})}).Node("Sub", {"sm", "mean"}, {"d"});
  b.Floats("scales", {4}, {1, 1, 2, 2}).Node("Resize", {"d", "", "scales"}, {"up"});
  Conv(b, "up", "y", 32, 8).Output("y");
  const Graph graph = ExpectPassesKeepMeaning(b.Model());
  EXPECT_EQ(NhwcNodes(graph), 3);
  EXPECT_EQ(CountOps(graph, "Transpose"), 2);
}

// Adds one number per channel. They are positive, so they may be a variance.
GraphBuilder& PerChannel(GraphBuilder& b, const std::string& name, int64_t channels) {
  std::vector<float> numbers = RandomFloats(channels, 3);
  for (float& number : numbers) number = number * number + 0.1f;
  return b.Floats(name, {channels}, numbers);
}

TEST(Layout, NormalizationsMoveAlong) {
  struct Norm {
    std::string op;
    std::vector<std::string> inputs, attributes;
  };
  const Norm norms[] = {{"InstanceNormalization", {"a", "n", "n"}, {}},
                        {"LRN", {"a"}, {Attr("size", 3)}},
                        // In training mode the operator uses the batch's own statistics, so no constant scale can be
                        // folded into the convolution.
                        {"BatchNormalization", {"a", "n", "n", "n", "n"}, {Attr("training_mode", 1)}}};
  for (const Norm& norm : norms) {
    GraphBuilder b;
    b.Input("x", {2, 8, 6, 5});
    Conv(b, "x", "a", 8, 16);
    PerChannel(b, "n", 16).Node(norm.op, norm.inputs, {"m"}, norm.attributes).Node("Relu", {"m"}, {"r"});
    Conv(b, "r", "y", 16, 8).Output("y");
    const Graph graph = ExpectPassesKeepMeaning(b.Model());
    EXPECT_EQ(NhwcNodes(graph), 3) << norm.op;
    EXPECT_EQ(CountOps(graph, "Transpose"), 2) << norm.op;
  }
}

TEST(Layout, ModelsInHalvesMoveAsAWhole) {
  GraphBuilder b;
  b.Input("x", {1, 8, 6, 5}, kHalf);
  for (const auto& [name, shape, count] : {std::tuple("v", std::vector<int64_t>{16, 8, 3, 3}, 16 * 8 * 9),
                                           std::tuple("w", std::vector<int64_t>{8, 16, 3, 3}, 8 * 16 * 9)}) {
    b.Floats(std::string("wide_") + name, shape, RandomFloats(count, 1));
    b.Node("Cast", {std::string("wide_") + name}, {name}, {Attr("to", kHalf)});
  }
  PerChannel(b, "wide_n", 16).Node("Cast", {"wide_n"}, {"n"}, {Attr("to", kHalf)});
  const std::string pads = Attr("pads", std::vector<int64_t>{1, 1, 1, 1});
  b.Node("Conv", {"x", "v"}, {"a"}, {pads}).Node("BatchNormalization", {"a", "n", "n", "n", "n"}, {"m"});
  b.Node("Relu", {"m"}, {"r"}).Node("Conv", {"r", "w"}, {"y"}, {pads}).Output("y");
  const Graph graph = Optimize(b.Model());
  EXPECT_EQ(NhwcNodes(graph), 2);
  EXPECT_THAT(Ops(graph), testing::ElementsAre("Transpose", "Conv", "Relu", "Conv", "Transpose"));
}

TEST(Layout, QuantizationMovesAlong) {
  for (const bool per_channel : {false, true}) {
    GraphBuilder b;
    b.Input("x", {1, 8, 6, 5});
    Conv(b, "x", "a", 8, 16);
    PerChannel(b, "s", per_channel ? 16 : 1);
    b.Initializer(Tensor<uint8_t>("z", kUInt8, {per_channel ? 16 : 1}, std::vector<uint8_t>(per_channel ? 16 : 1, 9)));
    b.Node("QuantizeLinear", {"a", "s", "z"}, {"q"})
        .Node("DequantizeLinear", {"q", "s", "z"}, {"d"}, {Attr("axis", -3)});
    Conv(b, "d", "y", 16, 8).Output("y");
    const Graph graph = ExpectPassesKeepMeaning(b.Model());
    EXPECT_EQ(NhwcNodes(graph), 2);
    EXPECT_EQ(CountOps(graph, "Transpose"), 2);
  }
}

// The mean of a signal is a single number, whose rank differs from that of the image that it scales. The image reads it
// unchanged, and the signal still changes its layout.
TEST(Layout, ReadersOfAnotherRankReadWhatLeaves) {
  GraphBuilder b;
  b.Input("signal", {1, 64, 9}).Floats("ws", {64, 64, 3}, RandomFloats(64 * 64 * 3, 1)).Input("x", {1, 8, 6, 5});
  b.Node("Conv", {"signal", "ws"}, {"c"}).Node("ReduceMean", {"c"}, {"m"});
  Conv(b, "x", "a", 8, 16);
  b.Node("Mul", {"a", "m"}, {"r"});
  Conv(b, "r", "y", 16, 8).Output("y");
  const Graph graph = ExpectPassesKeepMeaning(b.Model());
  EXPECT_EQ(NhwcNodes(graph), 3);
  EXPECT_EQ(CountOps(graph, "Conv"), 3);
}

TEST(Layout, ClassifierNeedsOneTranspose) {
  GraphBuilder b;
  b.Input("x", {1, 3, 12, 12}).Floats("fc", {16, 10}, RandomFloats(160, 4));
  Conv(b, "x", "a", 3, 16);
  b.Node("GlobalAveragePool", {"a"}, {"g"})
      .Node("Flatten", {"g"}, {"f"})
      .Node("MatMul", {"f", "fc"}, {"y"})
      .Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Transpose"), 1);
}

TEST(Layout, SqueezeAndExciteMovesAlong) {
  GraphBuilder b;
  b.Input("x", {1, 8, 6, 6});
  Conv(b, "x", "a", 8, 16);
  b.Node("GlobalAveragePool", {"a"}, {"g"});
  Conv(b, "g", "e", 16, 16, 1);
  b.Node("Sigmoid", {"e"}, {"s"}).Node("Mul", {"a", "s"}, {"m"});
  Conv(b, "m", "y", 16, 8).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Transpose"), 2);
}

TEST(Layout, ChannelShuffleMovesAlong) {
  GraphBuilder b;
  b.Input("x", {1, 8, 4, 4}).Ints("split", {1, 2, 8, 4, 4}).Ints("whole", {1, 16, 4, 4});
  Conv(b, "x", "a", 8, 16);
  b.Node("Reshape", {"a", "split"}, {"s"});
  b.Node("Transpose", {"s"}, {"t"}, {Attr("perm", std::vector<int64_t>{0, 2, 1, 3, 4})});
  b.Node("Reshape", {"t", "whole"}, {"u"});
  Conv(b, "u", "y", 16, 8).Output("y");
  const Graph graph = ExpectPassesKeepMeaning(b.Model());
  EXPECT_EQ(NhwcNodes(graph), 2);
  EXPECT_EQ(CountOps(graph, "Transpose"), 3) << "in, shuffle, out";
  EXPECT_EQ(CountOps(graph, "Gather"), 0);
}

TEST(Layout, TransposedConvolutionMoves) {
  GraphBuilder b;
  b.Input("x", {1, 256, 3, 3}).Floats("w", {256, 16, 5, 5}, RandomFloats(102400, 1));
  b.Node("ConvTranspose", {"x", "w"}, {"y"}, {Attr("strides", std::vector<int64_t>{2, 2})}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "ConvTranspose"), 0)
      << "only NHWC has a form without divisions";
}

TEST(Layout, LargeImagesOfFewChannelsStay) {
  GraphBuilder b;
  b.Input("x", {1, 3, 48, 64});
  Conv(b, "x", "y", 3, 16, 3).Output("y");
  EXPECT_EQ(NhwcNodes(ExpectPassesKeepMeaning(b.Model())), 0);
}

TEST(Layout, SmallWorkOnLargeTensorsStays) {
  GraphBuilder b;
  b.Input("x", {1, 8, 16, 16}).Floats("w", {8, 1, 1, 1}, RandomFloats(8, 1));
  b.Node("Conv", {"x", "w"}, {"y"}, {Attr("group", 8)}).Output("y");
  const Graph graph = ExpectPassesKeepMeaning(b.Model());
  EXPECT_EQ(NhwcNodes(graph), 0);
  EXPECT_EQ(CountOps(graph, "Transpose"), 0);
}

// Rows of 9 pixels fill 56% of vectors of 8, 4 channels of a group fill 50%, and 64 channels fill them completely.
TEST(Layout, VectorsOfChannelsStayWithinAGroup) {
  for (const auto& [groups, nodes] : {std::pair<int, int>(32, 0), {2, 1}}) {
    GraphBuilder b;
    b.Input("x", {1, 128, 9, 9}).Floats("w", {128, 128 / groups, 3, 3}, RandomFloats(128 * 128 / groups * 9, 1));
    b.Node("Conv", {"x", "w"}, {"y"}, {Attr("group", groups), Attr("pads", std::vector<int64_t>{1, 1, 1, 1})})
        .Output("y");
    Graph graph = Import(b.Model());
    graph.target = target::ParseTarget("x86_64 -mcpu=haswell").value();
    ASSERT_TRUE(ChooseLayouts(graph).ok());
    EXPECT_EQ(NhwcNodes(graph), nodes) << groups << " groups";
  }
}

// The more a core computes in the time of a memory access, the less a convolution gains relative to the cost of its
// borders.
TEST(Layout, TheTargetDecides) {
  GraphBuilder b;
  b.Input("x", {1, 256, 4, 4}).Floats("w", {256, 256, 1, 1}, RandomFloats(256 * 256, 1));
  b.Node("Conv", {"x", "w"}, {"y"}).Output("y");
  for (const auto& [target, nodes] : {std::pair("x86_64 -mcpu=haswell", 1), std::pair("x86_64 -mcpu=znver5", 0)}) {
    Graph graph = Import(b.Model());
    graph.target = target::ParseTarget(target).value();
    ASSERT_TRUE(ChooseLayouts(graph).ok());
    EXPECT_EQ(NhwcNodes(graph), nodes) << target;
  }
}

// 65 channels fill 81% of five vectors of 16, and rows of 56 pixels 88% of four. But only channels-last layout permits
// Winograd for a 3x3 convolution, which pays if there are many channels.
TEST(Layout, ManyChannelsMoveForTheSakeOfWinograd) {
  for (const auto& [channels, nodes] : {std::pair<int, int>(65, 1), {17, 0}}) {
    GraphBuilder b;
    b.Input("x", {1, channels, 56, 56});
    Conv(b, "x", "y", channels, channels).Output("y");
    Graph graph = Import(b.Model());
    graph.target = target::ParseTarget("x86_64 -mcpu=znver5").value();
    ASSERT_TRUE(ChooseLayouts(graph).ok());
    EXPECT_EQ(NhwcNodes(graph), nodes) << channels << " channels";
  }
}

TEST(Layout, ShortSignalsMove) {
  GraphBuilder b;
  b.Input("x", {1, 32, 9}).Floats("w", {64, 32, 3}, RandomFloats(64 * 32 * 3, 1));
  b.Floats("v", {32, 64, 3}, RandomFloats(64 * 32 * 3, 2)).Floats("scale", {64, 1}, RandomFloats(64, 3));
  b.Node("Conv", {"x", "w"}, {"a"}).Node("Mul", {"a", "scale"}, {"s"}).Node("Relu", {"s"}, {"r"});
  b.Node("Conv", {"r", "v"}, {"y"}).Output("y");
  const Graph graph = ExpectPassesKeepMeaning(b.Model());
  EXPECT_EQ(NhwcNodes(graph), 2);
  EXPECT_EQ(CountOps(graph, "Transpose"), 2);
}

TEST(Layout, SmallVolumesMove) {
  GraphBuilder b;
  b.Input("x", {1, 8, 4, 6, 5}).Floats("w", {32, 8, 3, 3, 3}, RandomFloats(32 * 8 * 27, 1));
  b.Floats("v", {16, 32, 2, 2, 2}, RandomFloats(32 * 16 * 8, 2));
  b.Node("Conv", {"x", "w"}, {"a"}, {Attr("pads", std::vector<int64_t>(6, 1))});
  b.Node("MaxPool", {"a"}, {"p"}, {Attr("kernel_shape", std::vector<int64_t>(3, 2))});
  b.Node("Conv", {"p", "v"}, {"y"}).Output("y");
  const Graph graph = ExpectPassesKeepMeaning(b.Model());
  EXPECT_EQ(NhwcNodes(graph), 3);
  EXPECT_EQ(CountOps(graph, "Transpose"), 2);
}

TEST(Layout, TransposedConvolutionsOfSignalsMove) {
  GraphBuilder b;
  b.Input("x", {1, 64, 10}).Floats("w", {64, 16, 5}, RandomFloats(64 * 16 * 5, 1));
  b.Node("ConvTranspose", {"x", "w"}, {"y"}, {Attr("strides", std::vector<int64_t>{2})}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "ConvTranspose"), 0);
}

TEST(Layout, LongSignalsOfFewChannelsStay) {
  GraphBuilder b;
  b.Input("x", {1, 2, 2048}).Floats("w", {8, 2, 3}, RandomFloats(48, 1)).Node("Conv", {"x", "w"}, {"y"}).Output("y");
  EXPECT_EQ(NhwcNodes(ExpectPassesKeepMeaning(b.Model())), 0);
}

TEST(Layout, OtherRanksStay) {
  GraphBuilder b;
  b.Input("x", {1, 64, 3, 3, 3, 3}).Floats("w", {64, 64, 1, 1, 1, 1}, RandomFloats(4096, 1));
  b.Node("Conv", {"x", "w"}, {"y"}).Output("y");
  EXPECT_EQ(NhwcNodes(ExpectPassesKeepMeaning(b.Model())), 0);
}

TEST(Layout, PoolIndicesKeepTheirMeaning) {
  GraphBuilder b;
  b.Input("x", {1, 8, 6, 6});
  Conv(b, "x", "a", 8, 16);
  b.Node("MaxPool", {"a"}, {"p", "indices"}, {Attr("kernel_shape", std::vector<int64_t>{2, 2})});
  b.Node("Cast", {"indices"}, {"y"}, {Attr("to", kFloat)}).Output("y");
  ExpectPassesKeepMeaning(b.Model());
}

TEST(Layout, ModelsThatTransposeThemselvesLoseTheTransposes) {
  GraphBuilder b;
  const std::vector<int64_t> in = {0, 3, 1, 2}, out = {0, 2, 3, 1};
  b.Input("x", {1, 6, 6, 8});
  b.Node("Transpose", {"x"}, {"t"}, {Attr("perm", in)});
  Conv(b, "t", "a", 8, 16);
  b.Node("Transpose", {"a"}, {"u"}, {Attr("perm", out)})
      .Node("Relu", {"u"}, {"r"})
      .Node("Transpose", {"r"}, {"v"}, {Attr("perm", in)});
  Conv(b, "v", "c", 16, 16);
  b.Node("Transpose", {"c"}, {"y"}, {Attr("perm", out)}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Transpose"), 0);
}

}  // namespace
}  // namespace hone::graph
