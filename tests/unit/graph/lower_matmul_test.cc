// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/passes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;

TEST(LowerMatMul, GemmInAllForms) {
  for (int trans_a : {0, 1}) {
    for (int trans_b : {0, 1}) {
      GraphBuilder b;
      if (trans_a != 0) {
        b.Input("x", {4, 3});
      } else {
        b.Input("x", {3, 4});
      }
      b.Floats("w", trans_b ? std::vector<int64_t>{5, 4} : std::vector<int64_t>{4, 5}, RandomFloats(20, 1));
      b.Floats("c", {5}, RandomFloats(5, 2));
      b.Node("Gemm", {"x", "w", "c"}, {"y"},
             {Attr("transA", trans_a), Attr("transB", trans_b), Attr("alpha", 0.5f), Attr("beta", 2.0f)});
      b.Output("y");
      const Graph graph = ExpectPassesKeepMeaning(b.Model());
      EXPECT_EQ(CountOps(graph, "Gemm"), 0);
      EXPECT_EQ(CountOps(graph, "MatMul"), 1);
    }
  }
}

TEST(LowerMatMul, GemmOfTwoInputsStays) {
  GraphBuilder b;
  b.Input("x", {3, 4}).Input("z", {4, 5}).Node("Gemm", {"x", "z"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Gemm"));
}

TEST(LowerMatMul, PointwiseConvolutionsBecomeMatricesWithTheirEpilogue) {
  GraphBuilder b;
  b.Input("x", {2, 128, 3, 3});
  b.Floats("w1", {256, 128, 1, 1}, RandomFloats(32768, 1)).Floats("b1", {256}, RandomFloats(256, 2));
  b.Floats("w2", {128, 256, 1, 1}, RandomFloats(32768, 3)).Floats("b2", {128}, RandomFloats(128, 4));
  b.Node("Conv", {"x", "w1", "b1"}, {"a"}).Node("Relu", {"a"}, {"r"}).Node("Conv", {"r", "w2", "b2"}, {"c"});
  b.Node("Add", {"c", "x"}, {"s"}).Node("Relu", {"s"}, {"y"}).Output("y");
  const Graph graph = ExpectPassesKeepMeaning(b.Model());
  EXPECT_EQ(CountOps(graph, "Conv"), 0);
  const Plan plan = PlanOf(graph);
  EXPECT_THAT(CallLabels(plan), ElementsAre("transpose", "matmul", "matmul", "transpose"));
}

// A product and its bias are rounded once, like the convolution or the Gemm that they were.
TEST(LowerMatMul, ShortFloatsAreRoundedOnce) {
  for (const bool channels_last : {false, true}) {
    const int64_t channels = channels_last ? 128 : 12, pixels = channels_last ? 3 : 20;
    GraphBuilder b;
    b.Input("x", {1, static_cast<int>(channels), static_cast<int>(pixels), static_cast<int>(pixels)});
    b.Floats("w", {channels, channels, 1, 1}, RandomFloats(channels * channels, 1));
    b.Floats("b", {channels}, RandomFloats(channels, 2));
    for (const char* name : {"x", "w", "b"}) b.Node("Cast", {name}, {std::string(name) + "h"}, {Attr("to", kHalf)});
    b.Node("Conv", {"xh", "wh", "bh"}, {"y"}).Node("Cast", {"y"}, {"z"}, {Attr("to", kFloat)}).Output("z");
    EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Conv"), 0);
  }
  GraphBuilder b;
  b.Input("x", {30, 40}).Floats("w", {50, 40}, RandomFloats(2000, 1)).Floats("b", {50}, RandomFloats(50, 2));
  for (const char* name : {"x", "w", "b"}) b.Node("Cast", {name}, {std::string(name) + "h"}, {Attr("to", kHalf)});
  b.Node("Gemm", {"xh", "wh", "bh"}, {"y"}, {Attr("transB", 1)}).Node("Cast", {"y"}, {"z"}, {Attr("to", kFloat)});
  ExpectPassesKeepMeaning(b.Output("z").Model());
}

// The block of MobileNet v2. read_twice: the result of the depthwise convolution is also an output.
GraphBuilder InvertedResidual(bool read_twice) {
  GraphBuilder b;
  b.Input("x", {1, 32, 14, 14}).Floats("w1", {96, 32, 1, 1}, RandomFloats(3072, 1));
  b.Floats("w2", {96, 1, 3, 3}, RandomFloats(864, 2)).Floats("w3", {32, 96, 1, 1}, RandomFloats(3072, 3));
  b.Floats("b3", {32}, RandomFloats(32, 4));
  b.Node("Conv", {"x", "w1"}, {"a"}).Node("Relu", {"a"}, {"ar"});
  b.Node("Conv", {"ar", "w2"}, {"d"}, {Attr("group", 96), Attr("pads", std::vector<int64_t>{1, 1, 1, 1})});
  // x * sigmoid(x), whose two branches meet in the multiplication.
  b.Node("Sigmoid", {"d"}, {"s"}).Node("Mul", {"d", "s"}, {"dr"});
  b.Node("Conv", {"dr", "w3", "b3"}, {"c"}).Node("Add", {"c", "x"}, {"y"}).Output("y");
  if (read_twice) b.Output("dr");
  return b;
}

TEST(LowerMatMul, APointwiseConvolutionAfterADepthwiseOneReadsItsPixels) {
  const Graph graph = ExpectPassesKeepMeaning(InvertedResidual(false).Model());
  EXPECT_THAT(CallLabels(PlanOf(graph)), ElementsAre("transpose", "matmul", "separable_conv", "transpose"));
  const Graph apart = ExpectPassesKeepMeaning(InvertedResidual(true).Model());
  EXPECT_THAT(CallLabels(PlanOf(apart)), testing::Not(testing::Contains("separable_conv")));
}

TEST(LowerMatMul, PointwiseConvolutionsThatStayChannelsFirst) {
  for (const auto& [batch, label] : {std::pair(1, "matmul"), std::pair(2, "batch_matmul")}) {
    GraphBuilder b;
    b.Input("x", {batch, 4, 16, 32}).Floats("b", {3}, RandomFloats(3, 2));
    b.Floats("w", {3, 4, 1, 1}, RandomFloats(12, 1));
    b.Node("Conv", {"x", "w", "b"}, {"a"}).Node("Relu", {"a"}, {"y"}).Output("y");
    const Graph graph = ExpectPassesKeepMeaning(b.Model());
    EXPECT_EQ(CountOps(graph, "Conv"), 0);
    EXPECT_THAT(CallLabels(PlanOf(graph)), ElementsAre(label));
  }
}

TEST(LowerMatMul, PointwiseConvolutionsOfOtherRanks) {
  GraphBuilder b;
  b.Input("x", {2, 4, 19}).Input("z", {1, 4, 2, 3, 5}).Floats("w", {3, 4, 1}, RandomFloats(12, 1));
  b.Floats("v", {3, 4, 1, 1, 1}, RandomFloats(12, 2));
  b.Node("Conv", {"x", "w"}, {"y"}).Output("y").Node("Conv", {"z", "v"}, {"u"}).Output("u");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Conv"), 0);
}

TEST(LowerMatMul, MatrixAndConvolutionThatMeet) {
  GraphBuilder b;
  b.Input("x", {1, 128, 4, 4});
  b.Floats("w1", {64, 128, 1, 1}, RandomFloats(8192, 1)).Floats("w2", {64, 128, 3, 3}, RandomFloats(73728, 2));
  b.Node("Conv", {"x", "w1"}, {"a"});
  b.Node("Conv", {"x", "w2"}, {"c"}, {Attr("pads", std::vector<int64_t>{1, 1, 1, 1})});
  b.Node("Add", {"a", "c"}, {"s"}).Node("Relu", {"s"}, {"y"}).Output("y");
  EXPECT_THAT(CallLabels(PlanOf(ExpectPassesKeepMeaning(b.Model()))),
              ElementsAre("transpose", "conv2d", "matmul", "transpose"));
}

TEST(LowerMatMul, StridedPointwiseConvolutionStays) {
  GraphBuilder b;
  b.Input("x", {1, 64, 8, 8}).Floats("w", {128, 64, 1, 1}, RandomFloats(8192, 1));
  b.Node("Conv", {"x", "w"}, {"y"}, {Attr("strides", std::vector<int64_t>{2, 2})}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Conv"), 1);
}

TEST(LowerMatMul, BatchOfRowsIsOneMatrix) {
  GraphBuilder b;
  b.Input("x", {2, 3, 8})
      .Input("residual", {2, 3, 4})
      .Floats("w", {8, 4}, RandomFloats(32, 1))
      .Floats("c", {4}, RandomFloats(4, 2));
  b.Node("MatMul", {"x", "w"}, {"m"}).Node("Add", {"c", "m"}, {"a"}).Node("Add", {"a", "residual"}, {"r"});
  b.Node("Tanh", {"r"}, {"y"}).Output("y");
  const Graph graph = ExpectPassesKeepMeaning(b.Model());
  const Plan plan = PlanOf(graph);
  ASSERT_THAT(CallLabels(plan), ElementsAre("matmul"));
  EXPECT_THAT(plan.workloads[0].outputs[0]->shape, ElementsAre(6, 4));
  EXPECT_THAT(plan.tensors[plan.outputs[0]].type.shape, ElementsAre(2, 3, 4));
}

// A node that could run early, such as a Transpose of an input, stays where the model has it. Its result occupies
// memory until it is read.
TEST(LowerMatMul, ProductsStayInTheirPlaces) {
  GraphBuilder b;
  b.Input("x", {1, 4, 8});
  std::string last = "x";
  for (const std::string i : {"0", "1", "2"}) {
    b.Input("k" + i, {1, 4, 8})
        .Floats("w" + i, {8, 8}, RandomFloats(64, 1))
        .Floats("v" + i, {4, 8}, RandomFloats(32, 2));
    b.Node("MatMul", {last, "w" + i}, {"m" + i}).Node("Relu", {"m" + i}, {"r" + i});
    b.Node("Transpose", {"k" + i}, {"t" + i}, {Attr("perm", std::vector<int64_t>{0, 2, 1})});
    b.Node("MatMul", {"r" + i, "t" + i}, {"s" + i}).Node("MatMul", {"s" + i, "v" + i}, {"a" + i});
    last = "a" + i;
  }
  Graph graph = Import(b.Output(last).Model());
  ASSERT_TRUE(LowerMatMuls(graph).ok());
  std::vector<std::string> order;
  for (const Node& node : graph.nodes) {
    if (node.op == "Relu" || node.op == "Transpose") order.push_back(graph.values[node.outputs[0]].name);
  }
  EXPECT_THAT(order, ElementsAre("r0", "t0", "r1", "t1", "r2", "t2"));
}

// Weights are large, so those of a lowered product must be freed before the next product is lowered.
TEST(LowerMatMul, WeightsGoWithTheirLastReader) {
  GraphBuilder b;
  b.Input("x", {2, 4}).Floats("w", {4, 4}, RandomFloats(16, 1)).Floats("v", {4, 4}, RandomFloats(16, 2));
  b.Node("MatMul", {"x", "w"}, {"a"}).Node("MatMul", {"a", "v"}, {"c"}).Node("MatMul", {"c", "w"}, {"y"}).Output("y");
  Graph graph = Import(b.Model());
  const ValueId w = graph.nodes[0].inputs[1], v = graph.nodes[1].inputs[1];
  std::vector<std::pair<bool, bool>> there;
  const auto lower = [&](Graph& g, const Node& node) -> absl::StatusOr<ValueId> {
    there.emplace_back(g.values[w].data != nullptr, g.values[v].data != nullptr);
    const ValueId weights = AddValue(g, "copy", g.values[w].type, g.values[node.inputs[1]].data);
    return AddOp(g, "MatMul", {node.inputs[0], weights});
  };
  ASSERT_TRUE(LowerNodes(graph, lower).ok());
  EXPECT_THAT(there, ElementsAre(std::pair(true, true), std::pair(true, true), std::pair(true, false)));
}

}  // namespace
}  // namespace hone::graph
