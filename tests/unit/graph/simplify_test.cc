// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/graph/passes/view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Simplify, NodesThatDoNothingGo) {
  GraphBuilder b;
  b.Input("x", {2, 3}).Floats("one", {1}, {1}).Floats("zero", {2, 3}, {0, 0, 0, 0, 0, 0});
  b.Node("Identity", {"x"}, {"a"}).Node("Dropout", {"a"}, {"b", "mask"}).Node("Mul", {"one", "b"}, {"c"});
  b.Node("Sub", {"c", "zero"}, {"d"}).Node("Cast", {"d"}, {"e"}, {Attr("to", kFloat)});
  b.Node("Relu", {"e"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Relu"));
}

TEST(Simplify, NodesThatReturnTheirInputGo) {
  GraphBuilder b;
  b.Input("x", {2, 3}).Ints("ones", {1, 1}).Ints("shape", {2, 3}).Ints("none", {0, 0, 0, 0});
  b.Ints("starts", {0, -3}).Ints("ends", {99, 3});
  b.Node("Concat", {"x"}, {"a"}, {Attr("axis", 0)}).Node("Max", {"a"}, {"b"}).Node("Tile", {"b", "ones"}, {"c"});
  b.Node("Expand", {"c", "shape"}, {"d"}).Node("Slice", {"d", "starts", "ends"}, {"e"});
  b.Node("Pad", {"e", "none"}, {"f"}).Node("Split", {"f"}, {"g"}, {Attr("num_outputs", 1)}).Node("Clip", {"g"}, {"h"});
  b.Node("Relu", {"h"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model(18))), ElementsAre("Relu"));
}

TEST(Simplify, NumbersThatWidenStay) {
  GraphBuilder b;
  b.Input("x", {3}).Floats("zero", {2, 3}, {0, 0, 0, 0, 0, 0}).Node("Add", {"x", "zero"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Add"));
}

// Without the Add, half of the following reciprocals would be minus infinity.
TEST(Simplify, ZeroIsAddedToMinusZero) {
  GraphBuilder b;
  b.Input("x", {8}).Floats("zero", {}, {0}).Node("Mul", {"x", "zero"}, {"z"}).Node("Add", {"z", "zero"}, {"a"});
  b.Node("Reciprocal", {"a"}, {"r"}).Node("Sign", {"r"}, {"y"}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Add"), 1);
}

TEST(Simplify, NumbersThatAddNothingGo) {
  GraphBuilder b;
  b.Input("x", {2}).Floats("minus_zero", {2}, {-0.0f, -0.0f}).Node("Add", {"x", "minus_zero"}, {"a"});
  b.Node("Relu", {"a"}, {"y"}).Output("y");
  b.Input("i", {2}, kInt64).Ints("zero", {0}).Node("Add", {"i", "zero"}, {"j"});
  b.Node("Cast", {"j"}, {"z"}, {Attr("to", kFloat)}).Output("z");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Relu", "Cast"));
  GraphBuilder mixed;
  mixed.Input("x", {2}).Floats("zeros", {2}, {-0.0f, 0.0f}).Node("Add", {"x", "zeros"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(mixed.Model())), ElementsAre("Add"));
}

TEST(Simplify, NumbersOfAnyTypeThatDoNothingGo) {
  for (const int dtype : {kHalf, kBFloat, kUInt8, kInt8}) {
    GraphBuilder b;
    b.Input("x", {4}, dtype).Floats("ones", {4}, {1, 1, 1, 1}).Node("Cast", {"ones"}, {"o"}, {Attr("to", dtype)});
    b.Node("Mul", {"x", "o"}, {"m"}).Node("Cast", {"m"}, {"y"}, {Attr("to", kFloat)}).Output("y");
    EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Cast")) << dtype;
  }
}

TEST(Simplify, OutputThatIsAnInputKeepsItsName) {
  GraphBuilder b;
  b.Input("x", {3}).Node("Identity", {"x"}, {"y"}).Output("y");
  const Graph graph = ExpectPassesKeepMeaning(b.Model());
  EXPECT_THAT(graph.nodes, IsEmpty());
  const Plan plan = PlanOf(graph);
  EXPECT_EQ(plan.tensors[plan.inputs[0]].name, "x");
  EXPECT_EQ(plan.tensors[plan.outputs[0]].name, "y");
  EXPECT_EQ(plan.tensors[plan.outputs[0]].alias_of, plan.inputs[0]);
}

TEST(Simplify, TransposesThatCancelGo) {
  GraphBuilder b;
  b.Input("x", {2, 3, 4});
  b.Node("Transpose", {"x"}, {"a"}, {Attr("perm", std::vector<int64_t>{1, 2, 0})});
  b.Node("Transpose", {"a"}, {"b"}, {Attr("perm", std::vector<int64_t>{2, 0, 1})});
  b.Node("Relu", {"b"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Relu"));
}

TEST(Simplify, TransposesMerge) {
  GraphBuilder b;
  b.Input("x", {2, 3, 4});
  b.Node("Transpose", {"x"}, {"a"}, {Attr("perm", std::vector<int64_t>{1, 2, 0})});
  b.Node("Transpose", {"a"}, {"y"}, {Attr("perm", std::vector<int64_t>{1, 2, 0})}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Transpose"));
}

TEST(Simplify, TransposeOfUnitDimensionsIsAReshape) {
  GraphBuilder b;
  b.Input("x", {1, 5, 1, 4})
      .Node("Transpose", {"x"}, {"y"}, {Attr("perm", std::vector<int64_t>{2, 1, 3, 0})})
      .Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Reshape"));
}

TEST(Simplify, ReshapeChainsMergeAndVanish) {
  GraphBuilder b;
  b.Input("x", {2, 3, 4}).Ints("s", {6, 4}).Ints("back", {2, 3, 4}).Ints("ax", {0});
  b.Node("Flatten", {"x"}, {"a"}).Node("Reshape", {"a", "s"}, {"b"}).Node("Unsqueeze", {"b", "ax"}, {"c"});
  b.Node("Squeeze", {"c", "ax"}, {"d"}).Node("Reshape", {"d", "back"}, {"e"}).Node("Relu", {"e"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Relu"));
}

TEST(Simplify, PadGoesIntoTheConvolution) {
  GraphBuilder b;
  b.Input("x", {1, 2, 5, 5}).Floats("w", {3, 2, 3, 3}, RandomFloats(54, 1)).Ints("pads", {0, 0, 1, 2, 0, 0, 1, 0});
  b.Node("Pad", {"x", "pads"}, {"p"}).Node("Conv", {"p", "w"}, {"y"}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Pad"), 0);
}

// TensorFlow exports it like this: the data has its channels last, and so has the convolution once its layout is
// chosen.
TEST(Simplify, PadOfChannelsLastKeepsItsAxes) {
  for (const bool pool : {false, true}) {
    GraphBuilder b;
    b.Input("x", {1, 8, 20, 16}).Ints("pads", {0, 0, 1, 0, 0, 0, 1, 0}).Node("Pad", {"x", "pads"}, {"p"});
    b.Node("Transpose", {"p"}, {"t"}, {Attr("perm", std::vector<int64_t>{0, 3, 1, 2})});
    if (pool) b.Node("AveragePool", {"t"}, {"a"}, {Attr("kernel_shape", std::vector<int64_t>{3, 3})});
    b.Floats("w", {32, 16, 3, 3}, RandomFloats(4608, 1)).Node("Conv", {pool ? "a" : "t", "w"}, {"y"}).Output("y");
    EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Pad"), 0);
  }
}

TEST(Simplify, PadGoesIntoTheAveragePoolThatCountsIt) {
  for (int pad_of_its_own : {0, 1}) {
    GraphBuilder b;
    const int64_t p = pad_of_its_own;
    b.Input("x", {1, 2, 5, 5}).Ints("pads", {0, 0, 1, 1, 0, 0, 1, 1});
    b.Node("Pad", {"x", "pads"}, {"p"});
    b.Node("AveragePool", {"p"}, {"y"},
           {Attr("kernel_shape", std::vector<int64_t>{3, 3}), Attr("pads", std::vector<int64_t>{p, p, p, p})});
    b.Output("y");
    EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Pad"), pad_of_its_own);
  }
}

TEST(Simplify, PadWithAnotherValueStays) {
  GraphBuilder b;
  b.Input("x", {1, 2, 5, 5}).Floats("w", {3, 2, 3, 3}, RandomFloats(54, 1)).Ints("pads", {0, 0, 1, 2, 0, 0, 1, 0});
  b.Floats("v", {}, {1}).Node("Pad", {"x", "pads", "v"}, {"p"}).Node("Conv", {"p", "w"}, {"y"}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Pad"), 1);
}

TEST(Simplify, DivisionByAPowerOfTwoMultiplies) {
  GraphBuilder b;
  b.Input("x", {4}).Floats("eight", {}, {8}).Floats("three", {}, {3});
  b.Node("Div", {"x", "eight"}, {"a"}).Node("Div", {"a", "three"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Mul", "Div"));
}

// If reshapes moved one step per round over all nodes, a chain of twice the length would take four times as long.
TEST(SinkReshapes, AChainTakesOneStep) {
  constexpr int kLinks = 40;
  GraphBuilder b;
  b.Input("x", {6, 4}).Floats("w", {4, 4}, RandomFloats(16, 1)).Ints("shape", {2, 3, 4});
  b.Node("MatMul", {"x", "w"}, {"m"}).Node("Reshape", {"m", "shape"}, {"r0"}, {Attr("allowzero", 1)});
  for (int i = 0; i < kLinks; ++i) b.Node("Relu", {"r" + std::to_string(i)}, {"r" + std::to_string(i + 1)});
  Graph graph = Import(b.Output("r" + std::to_string(kLinks)).Model());
  const size_t before = graph.values.size();
  ASSERT_TRUE(SinkReshapes(graph).ok());
  EXPECT_EQ(graph.nodes.back().op, "Reshape");
  EXPECT_EQ(CountOps(graph, "Reshape"), 1);
  EXPECT_EQ(graph.values.size(), before + kLinks + 2) << "each link once, and the reshape";
}

TEST(CommonSubexpressions, EqualNodesAndConstantsAreShared) {
  GraphBuilder b;
  b.Input("x", {4}).Floats("a", {1}, {3}).Floats("b", {1}, {3});
  b.Node("Mul", {"x", "a"}, {"p"}).Node("Mul", {"x", "b"}, {"q"}).Node("Exp", {"p"}, {"r"}).Node("Tanh", {"q"}, {"s"});
  b.Node("Add", {"r", "s"}, {"y"}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Mul"), 1);
}

TEST(CommonSubexpressions, AttributesTellNodesApart) {
  GraphBuilder b;
  b.Input("x", {2, 2})
      .Node("Softmax", {"x"}, {"p"}, {Attr("axis", 0)})
      .Node("Softmax", {"x"}, {"q"}, {Attr("axis", 1)});
  b.Node("Sub", {"p", "q"}, {"y"}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Softmax"), 2);
}

TEST(ConstantFold, ChainsOfConstantsBecomeOne) {
  GraphBuilder b;
  b.Input("x", {64, 32}).Floats("w", {32, 64}, RandomFloats(2048, 3));
  b.Node("Transpose", {"w"}, {"t"}).Node("Exp", {"t"}, {"e"}).Node("Add", {"x", "e"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Add"));
}

// Widening at run time would cost more than weights of a quarter of the size save.
TEST(ConstantFold, NarrowWeightsAreWidenedOnce) {
  const std::vector<int8_t> bytes(1 << 19, 3);
  GraphBuilder b;
  b.Input("x", {1, 512}).Initializer(Tensor<int8_t>("q", kInt8, {512, 1024}, bytes)).Floats("s", {}, {0.5f});
  b.Node("DequantizeLinear", {"q", "s"}, {"w"}).Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  Graph graph = Import(b.Model());
  ASSERT_EQ(CountOps(graph, "DequantizeLinear"), 1);
  ASSERT_TRUE(FoldConstants(graph).ok());
  ASSERT_THAT(Ops(graph), ElementsAre("MatMul"));
  EXPECT_EQ(UniformValue(graph.values[graph.nodes[0].inputs[1]]), 1.5);
}

TEST(ConstantFold, NumbersThatSpreadStay) {
  GraphBuilder b;
  b.Input("x", {1024, 1024}).Floats("one", {}, {1}).Ints("shape", {1024, 1024});
  b.Node("Expand", {"one", "shape"}, {"w"}).Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  Graph graph = Import(b.Model());
  ASSERT_TRUE(FoldConstants(graph).ok());
  EXPECT_THAT(Ops(graph), ElementsAre("Expand", "MatMul"));
}

// Each weight takes 2^17 evaluations, so the import leaves the folding to the pass.
TEST(ConstantFold, ExpensiveChainsAreNotFolded) {
  GraphBuilder b;
  b.Input("x", {512, 256});
  std::string sum = "x";
  for (const std::string i : {"1", "2", "3"}) {
    b.Floats("w" + i, {512, 256}, RandomFloats(512 * 256, 1)).Node("Exp", {"w" + i}, {"e" + i});
    b.Node("Add", {sum, "e" + i}, {"s" + i});
    sum = "s" + i;
  }
  Graph graph = Import(b.Output(sum).Model());
  ASSERT_EQ(CountOps(graph, "Exp"), 3);
  ASSERT_TRUE(FoldConstants(graph, 2 * 512 * 256).ok());
  EXPECT_EQ(CountOps(graph, "Exp"), 1);
  ASSERT_TRUE(FoldConstants(graph).ok());
  EXPECT_EQ(CountOps(graph, "Exp"), 0);
}

TEST(DeadCode, UnreadNodesAreRemoved) {
  GraphBuilder b;
  b.Input("x", {4})
      .Node("Exp", {"x"}, {"unused"})
      .Node("Tanh", {"unused"}, {"too"})
      .Node("Relu", {"x"}, {"y"})
      .Output("y");
  EXPECT_THAT(Ops(Import(b.Model())), ElementsAre("Relu"));
}

}  // namespace
}  // namespace hone::graph
