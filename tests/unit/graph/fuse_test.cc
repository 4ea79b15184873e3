// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/fuse.h"

#include "compiler/graph/plan.h"
#include "compiler/graph/text.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;

// Returns the labels of the imported model's kernels. PlanOf also checks that they compute the same as single nodes.
std::vector<std::string> Kernels(const GraphBuilder& b) { return CallLabels(PlanOf(Import(b.Model()))); }

const std::vector<int64_t> kLast = {-1};

TEST(Fuse, ElementwiseChainIsOneKernel) {
  GraphBuilder b;
  b.Input("x", {4, 5})
      .Input("z", {5})
      .Node("Exp", {"x"}, {"a"})
      .Node("Add", {"a", "z"}, {"c"})
      .Node("Tanh", {"c"}, {"y"})
      .Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("elementwise"));
}

TEST(Fuse, BranchesThatMeetAreOneKernel) {
  GraphBuilder b;
  b.Input("x", {4}).Node("Exp", {"x"}, {"a"}).Node("Tanh", {"a"}, {"t"}).Node("Sin", {"a"}, {"s"});
  b.Node("Mul", {"t", "s"}, {"y"}).Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("elementwise"));
}

TEST(Fuse, ValueThatIsAnOutputEndsAKernel) {
  GraphBuilder b;
  b.Input("x", {4}).Node("Exp", {"x"}, {"a"}).Node("Tanh", {"a"}, {"y"}).Output("y").Output("a");
  EXPECT_THAT(Kernels(b), ElementsAre("elementwise", "elementwise"));
}

TEST(Fuse, ValueThatWouldBeComputedAgainEndsAKernel) {
  GraphBuilder b;
  b.Input("x", {4, 1}).Input("z", {4, 50}).Node("Exp", {"x"}, {"a"}).Node("Add", {"a", "z"}, {"y"}).Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("elementwise", "elementwise"));
}

TEST(Fuse, ConvolutionTakesItsEpilogue) {
  GraphBuilder b;
  b.Input("x", {1, 2, 6, 6})
      .Input("residual", {1, 3, 4, 4})
      .Floats("w", {3, 2, 3, 3}, RandomFloats(54, 1))
      .Floats("b", {3}, {1, 2, 3});
  b.Node("Conv", {"x", "w", "b"}, {"c"}).Node("Add", {"c", "residual"}, {"a"}).Node("Sigmoid", {"a"}, {"s"});
  b.Node("Mul", {"a", "s"}, {"y"}).Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("conv2d"));
}

TEST(Fuse, TwoConvolutionsStayTwo) {
  GraphBuilder b;
  b.Input("x", {1, 2, 6, 6})
      .Floats("w", {2, 2, 3, 3}, RandomFloats(36, 1))
      .Floats("v", {2, 2, 3, 3}, RandomFloats(36, 2));
  b.Node("Conv", {"x", "w"}, {"c"}).Node("Conv", {"x", "v"}, {"d"}).Node("Add", {"c", "d"}, {"y"}).Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("conv2d", "conv2d"));
}

TEST(Fuse, DepthwiseAndGroupedConvolutionsHaveTheirNames) {
  GraphBuilder b;
  b.Input("x", {1, 4, 6, 6})
      .Floats("w", {4, 1, 3, 3}, RandomFloats(36, 1))
      .Floats("v", {4, 2, 1, 1}, RandomFloats(8, 2));
  b.Node("Conv", {"x", "w"}, {"c"}, {Attr("group", 4)}).Node("Conv", {"c", "v"}, {"y"}, {Attr("group", 2)}).Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("depthwise_conv2d", "grouped_conv2d"));
}

TEST(Fuse, RowsAreOneKernel) {
  GraphBuilder b;
  b.Input("x", {2, 3, 8}).Input("mask", {2, 1, 8}).Floats("scale", {}, {0.3f});
  b.Node("Mul", {"x", "scale"}, {"a"})
      .Node("Add", {"a", "mask"}, {"m"})
      .Node("Softmax", {"m"}, {"s"}, {Attr("axis", -1)});
  b.Node("Exp", {"s"}, {"y"}).Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("softmax"));
}

// Attention with 2 heads: 5 queries, 7 keys (already transposed) and values.
GraphBuilder Attention() {
  GraphBuilder b;
  b.Input("q", {1, 2, 5, 4}).Input("k", {1, 2, 4, 7}).Input("v", {1, 2, 7, 3}).Input("mask", {1, 1, 1, 7});
  b.Floats("scale", {}, {0.5f});
  b.Node("MatMul", {"q", "k"}, {"scores"})
      .Node("Mul", {"scores", "scale"}, {"scaled"})
      .Node("Add", {"scaled", "mask"}, {"masked"})
      .Node("Softmax", {"masked"}, {"p"}, {Attr("axis", -1)})
      .Node("MatMul", {"p", "v"}, {"y"});
  return b;
}

TEST(Fuse, AttentionIsOneKernel) {
  GraphBuilder b = Attention();
  EXPECT_THAT(Kernels(b.Output("y")), ElementsAre("attention"));
}

TEST(Fuse, AttentionTakesItsEpilogue) {
  GraphBuilder b = Attention();
  b.Node("Relu", {"y"}, {"z"}).Output("z");
  EXPECT_THAT(Kernels(b), ElementsAre("attention"));
}

TEST(Fuse, ScoresThatAreWantedElsewhereKeepTheProductsApart) {
  for (const char* wanted : {"scores", "masked", "p"}) {
    GraphBuilder b = Attention();
    b.Output("y").Output(wanted);
    EXPECT_GE(Kernels(b).size(), 2u) << wanted;
  }
}

TEST(Fuse, NoMoreThanTwoProductsAreJoined) {
  GraphBuilder b;
  b.Input("x", {6, 4}).Input("k", {4, 6}).Input("w", {4, 5}).Input("u", {5, 3});
  b.Node("MatMul", {"x", "k"}, {"scores"})
      .Node("Softmax", {"scores"}, {"p"}, {Attr("axis", -1)})
      .Node("MatMul", {"x", "w"}, {"v"})
      .Node("MatMul", {"p", "v"}, {"a"})
      .Node("MatMul", {"a", "u"}, {"t"})
      .Node("Softmax", {"t"}, {"s"}, {Attr("axis", -1)});
  b.Input("z", {3, 2}).Node("MatMul", {"s", "z"}, {"y"}).Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("matmul", "attention", "attention"));
}

TEST(Fuse, RowsThatTheSecondProductReadsOtherwiseKeepTheProductsApart) {
  GraphBuilder b;
  b.Input("q", {6, 4}).Input("k", {4, 6}).Input("v", {3, 6});
  b.Node("MatMul", {"q", "k"}, {"scores"})
      .Node("Softmax", {"scores"}, {"p"}, {Attr("axis", -1)})
      .Node("MatMul", {"v", "p"}, {"y"})
      .Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("matmul", "softmax", "matmul"));
}

TEST(Fuse, SpelledOutNormalizationIsOneKernel) {
  GraphBuilder b;
  b.Input("x", {2, 3, 8}).Floats("two", {}, {2}).Floats("eps", {}, {1e-5f});
  b.Node("ReduceMean", {"x"}, {"mean"}, {Attr("axes", kLast)})
      .Node("Sub", {"x", "mean"}, {"d"})
      .Node("Pow", {"d", "two"}, {"sq"});
  b.Node("ReduceMean", {"sq"}, {"var"}, {Attr("axes", kLast)})
      .Node("Add", {"var", "eps"}, {"ve"})
      .Node("Sqrt", {"ve"}, {"r"});
  b.Node("Div", {"d", "r"}, {"y"}).Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("reduce"));
}

TEST(Fuse, SoftmaxOverAnotherAxisIsNoRow) {
  GraphBuilder b;
  b.Input("x", {4, 8})
      .Node("Softmax", {"x"}, {"s"}, {Attr("axis", 0)})
      .Node("Softmax", {"s"}, {"y"}, {Attr("axis", 1)})
      .Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("softmax", "softmax"));
}

TEST(Fuse, ReductionReadsItsProducerOnTheFly) {
  GraphBuilder b;
  b.Input("x", {4, 8, 5}).Node("Exp", {"x"}, {"a"}).Node("ReduceSum", {"a"}, {"y"}, {Attr("keepdims", 0)}).Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("reduce"));
}

TEST(Fuse, ReductionThatReadsOnceIsFoundByWhatItReads) {
  GraphBuilder b;
  b.Input("x", {1, 8, 5, 3}).Node("Exp", {"x"}, {"a"}).Node("GlobalLpPool", {"a"}, {"g"});
  b.Input("z", {4, 8}).Node("Exp", {"z"}, {"c"});
  b.Node("ReduceSum", {"c"}, {"s"}, {Attr("axes", std::vector<int64_t>{0})}).Output("g").Output("s");
  EXPECT_THAT(Kernels(b), ElementsAre("global_pool", "reduce"));
}

TEST(Fuse, ProducerOfAReductionThatReadsTwiceIsNotComputedAgain) {
  GraphBuilder b;
  b.Input("x", {4, 8}).Node("Exp", {"x"}, {"a"});
  b.Node("ReduceLogSumExp", {"a"}, {"y"}, {Attr("axes", std::vector<int64_t>{0})}).Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("elementwise", "reduce"));
}

TEST(Fuse, ProducerOfAConvolutionIsNotComputedAgain) {
  GraphBuilder b;
  b.Input("x", {1, 2, 6, 6})
      .Floats("w", {3, 2, 3, 3}, RandomFloats(54, 1))
      .Node("Exp", {"x"}, {"a"})
      .Node("Conv", {"a", "w"}, {"y"})
      .Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("elementwise", "conv2d"));
}

// A matrix that is multiplied by a vector is read once, so its memory layout does not matter.
TEST(Fuse, TheOrderOfAMatrixThatMeetsAVectorIsNoKernel) {
  const auto kernels = [](int rows) {
    GraphBuilder b;
    b.Input("x", {2, rows, 8})
        .Input("w", {2, 5, 8})
        .Node("Transpose", {"w"}, {"t"}, {Attr("perm", std::vector<int64_t>{0, 2, 1})})
        .Node("MatMul", {"x", "t"}, {"p"})
        .Node("Relu", {"p"}, {"y"})
        .Output("y");
    return Kernels(b);
  };
  EXPECT_THAT(kernels(1), ElementsAre("batch_matmul"));
  EXPECT_THAT(kernels(2), ElementsAre("transpose", "batch_matmul")) << "tiles use it twice";
}

TEST(Fuse, AMatrixThatIsComputedIsNotComputedWhereItMeetsAVector) {
  GraphBuilder b;
  b.Input("x", {1, 8}).Input("w", {8, 5}).Node("Exp", {"w"}, {"e"}).Node("MatMul", {"x", "e"}, {"y"}).Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("elementwise", "matmul"));
}

TEST(Fuse, MovementTakesPartInChains) {
  GraphBuilder b;
  b.Input("x", {4, 5})
      .Input("z", {4, 5})
      .Node("Exp", {"x"}, {"a"})
      .Node("Concat", {"a", "z"}, {"c"}, {Attr("axis", 1)});
  b.Node("Transpose", {"c"}, {"t"}).Node("Tanh", {"t"}, {"y"}).Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("concat"));
}

TEST(Fuse, ViewsAreNoKernels) {
  GraphBuilder b;
  b.Input("x", {4, 6})
      .Ints("s", {2, 12})
      .Node("Exp", {"x"}, {"a"})
      .Node("Reshape", {"a", "s"}, {"r"})
      .Node("Dropout", {"r"}, {"d"})
      .Node("Tanh", {"d"}, {"y"})
      .Output("y");
  EXPECT_THAT(Kernels(b), ElementsAre("elementwise", "elementwise"));
}

// A model with channels last: a depthwise convolution, operators on its result, and the product of a 1x1 convolution.
std::string Separable(const std::string& more) {
  return "graph\ninput x: f32[1,6,5,4]\nconst w: f32[4,1,3,3] = splat 0.5f32\nconst v: f32[4,7] = splat 0.25f32\n"
         "c: f32[1,4,3,4] = Conv(x, w) {`group` = 4, kernel_shape = ints [3, 3], layout = \"NHWC\"}\n"
         "r: f32[1,4,3,4] = Relu(c)\nm: f32[1,4,3,7] = MatMul(r, v)\ny: f32[1,4,3,7] = Exp(m)\noutput y as \"y\"\n" +
         more;
}

std::vector<std::string> KernelsOfText(const std::string& text, const std::string& target) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  if (!graph.ok()) return {std::string(graph.status().message())};
  graph->target = *target::ParseTarget(target);
  return CallLabels(*BuildPlan(*graph));
}

TEST(Fuse, ADepthwiseConvolutionAndThePointwiseOneAfterItAreOneKernel) {
  EXPECT_THAT(KernelsOfText(Separable(""), "x86_64"), ElementsAre("separable_conv"));
  EXPECT_THAT(KernelsOfText(Separable("output r as \"r\"\n"), "x86_64"), ElementsAre("depthwise_conv2d", "matmul"));
  EXPECT_THAT(KernelsOfText(Separable("z: f32[1,4,3,4] = Exp(r)\noutput z as \"z\"\n"), "x86_64"),
              ElementsAre("depthwise_conv2d", "matmul", "elementwise"));
  EXPECT_THAT(KernelsOfText(Separable(""), "cuda:sm_90"), ElementsAre("depthwise_conv2d", "matmul"))
      << "lanes have no tiles of both";
}

}  // namespace
}  // namespace hone::graph
