// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/graph_edit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;

GraphBuilder WithNumbers() {
  GraphBuilder b;
  b.Input("x", {2, 8});
  b.Floats("sqrt2", {}, {1.41421354f}).Floats("one", {}, {1}).Floats("half", {}, {0.5f}).Floats("two", {}, {2});
  b.Floats("three", {}, {3}).Floats("zero", {}, {0}).Floats("six", {}, {6}).Floats("eps", {}, {1e-5f});
  b.Floats("scale", {8}, RandomFloats(8, 7)).Floats("bias", {8}, RandomFloats(8, 8));
  return b;
}

TEST(Recognize, GeluAsPyTorchWritesIt) {
  GraphBuilder b = WithNumbers();
  b.Node("Div", {"x", "sqrt2"}, {"a"}).Node("Erf", {"a"}, {"e"}).Node("Add", {"e", "one"}, {"p"});
  b.Node("Mul", {"x", "p"}, {"m"}).Node("Mul", {"m", "half"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Gelu"));
}

TEST(Recognize, GeluWithTheHalfFirst) {
  GraphBuilder b = WithNumbers();
  b.Node("Mul", {"half", "x"}, {"h"}).Node("Div", {"x", "sqrt2"}, {"a"}).Node("Erf", {"a"}, {"e"});
  b.Node("Add", {"one", "e"}, {"p"}).Node("Mul", {"h", "p"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Gelu"));
}

TEST(Recognize, GeluByTanh) {
  GraphBuilder b = WithNumbers();
  b.Floats("c", {}, {0.044715f}).Floats("root", {}, {0.797884583f});
  b.Node("Pow", {"x", "three"}, {"cube"}).Node("Mul", {"cube", "c"}, {"m"}).Node("Add", {"x", "m"}, {"s"});
  b.Node("Mul", {"s", "root"}, {"a"}).Node("Tanh", {"a"}, {"t"}).Node("Add", {"t", "one"}, {"p"});
  b.Node("Mul", {"x", "half"}, {"h"}).Node("Mul", {"h", "p"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Gelu"));
}

TEST(Recognize, AnotherNumberIsNoGelu) {
  GraphBuilder b = WithNumbers();
  b.Node("Div", {"x", "three"}, {"a"}).Node("Erf", {"a"}, {"e"}).Node("Add", {"e", "one"}, {"p"});
  b.Node("Mul", {"x", "p"}, {"m"}).Node("Mul", {"m", "half"}, {"y"}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Gelu"), 0);
}

TEST(Recognize, Silu) {
  GraphBuilder b = WithNumbers();
  b.Node("Sigmoid", {"x"}, {"s"}).Node("Mul", {"x", "s"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Silu"));
}

TEST(Recognize, SigmoidThatIsAlsoAnOutputStays) {
  GraphBuilder b = WithNumbers();
  b.Node("Sigmoid", {"x"}, {"s"}).Node("Mul", {"x", "s"}, {"y"}).Output("y").Output("s");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Sigmoid"), 1);
}

TEST(Recognize, MishAndHardSwish) {
  GraphBuilder mish = WithNumbers();
  mish.Node("Softplus", {"x"}, {"p"}).Node("Tanh", {"p"}, {"t"}).Node("Mul", {"x", "t"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(mish.Model())), ElementsAre("Mish"));
  GraphBuilder clipped = WithNumbers();
  clipped.Node("Add", {"x", "three"}, {"a"}).Node("Clip", {"a", "zero", "six"}, {"c"});
  clipped.Node("Div", {"c", "six"}, {"d"}).Node("Mul", {"x", "d"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(clipped.Model())), ElementsAre("HardSwish"));
  GraphBuilder product_first = WithNumbers();
  product_first.Node("Add", {"x", "three"}, {"a"}).Node("Clip", {"a", "zero", "six"}, {"c"});
  product_first.Node("Mul", {"x", "c"}, {"m"}).Node("Div", {"m", "six"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(product_first.Model())), ElementsAre("HardSwish"));
  GraphBuilder sigmoid = WithNumbers();
  sigmoid.Node("HardSigmoid", {"x"}, {"s"}, {Attr("alpha", 1.0f / 6)}).Node("Mul", {"s", "x"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(sigmoid.Model())), ElementsAre("HardSwish"));
}

TEST(Recognize, IntegersAreNoHardSwish) {
  GraphBuilder b;
  b.Input("x", {2, 8}, kInt32);
  const std::vector<std::pair<std::string, int32_t>> numbers = {{"three", 3}, {"zero", 0}, {"six", 6}};
  for (const auto& [name, value] : numbers) b.Initializer(Tensor<int32_t>(name, kInt32, {}, {value}));
  b.Node("Add", {"x", "three"}, {"a"}).Node("Clip", {"a", "zero", "six"}, {"c"}).Node("Mul", {"x", "c"}, {"m"});
  b.Node("Div", {"m", "six"}, {"d"}).Node("Cast", {"d"}, {"y"}, {Attr("to", kFloat)}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "HardSwish"), 0);
}

TEST(Recognize, PatternsAreRecognizedInTheOutputOfOthers) {
  GraphBuilder b = WithNumbers();
  b.Node("Sigmoid", {"x"}, {"s"}).Node("Mul", {"x", "s"}, {"a"});
  b.Node("Sigmoid", {"a"}, {"t"}).Node("Mul", {"a", "t"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("Silu", "Silu"));
}

TEST(Recognize, LayerNorm) {
  GraphBuilder b = WithNumbers();
  const std::vector<int64_t> last = {-1};
  b.Node("ReduceMean", {"x"}, {"mean"}, {Attr("axes", last)}).Node("Sub", {"x", "mean"}, {"d"});
  b.Node("Pow", {"d", "two"}, {"sq"}).Node("ReduceMean", {"sq"}, {"var"}, {Attr("axes", last)});
  b.Node("Add", {"var", "eps"}, {"ve"}).Node("Sqrt", {"ve"}, {"root"}).Node("Div", {"d", "root"}, {"n"});
  b.Node("Mul", {"n", "scale"}, {"ns"}).Node("Add", {"ns", "bias"}, {"y"}).Output("y");
  const Graph graph = ExpectPassesKeepMeaning(b.Model());
  ASSERT_THAT(Ops(graph), ElementsAre("LayerNormalization"));
  EXPECT_EQ(graph.nodes[0].inputs.size(), 3u);
}

TEST(Recognize, MeanOverAnotherAxisIsNoLayerNorm) {
  GraphBuilder b = WithNumbers();
  const std::vector<int64_t> first = {0};
  b.Node("ReduceMean", {"x"}, {"mean"}, {Attr("axes", first)}).Node("Sub", {"x", "mean"}, {"d"});
  b.Node("Mul", {"d", "d"}, {"sq"}).Node("ReduceMean", {"sq"}, {"var"}, {Attr("axes", first)});
  b.Node("Add", {"var", "eps"}, {"ve"}).Node("Sqrt", {"ve"}, {"root"}).Node("Div", {"d", "root"}, {"n"});
  b.Node("Mul", {"n", "scale"}, {"y"}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "LayerNormalization"), 0);
}

TEST(Recognize, RmsNorm) {
  GraphBuilder b = WithNumbers();
  b.Ints("last", {-1});
  b.Node("Mul", {"x", "x"}, {"sq"}).Node("ReduceMean", {"sq", "last"}, {"ms"}).Node("Add", {"ms", "eps"}, {"me"});
  b.Node("Sqrt", {"me"}, {"root"}).Node("Reciprocal", {"root"}, {"inv"}).Node("Mul", {"x", "inv"}, {"n"});
  b.Node("Mul", {"scale", "n"}, {"y"}).Output("y");
  const Graph before = Import(b.Model(18));
  const Graph graph = Optimize(b.Model(18));
  ASSERT_THAT(Ops(graph), ElementsAre("RMSNormalization"));
  const std::vector<float> expected = RunOnRandom(before, 5), actual = RunOnRandom(graph, 5);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(expected[i], actual[i], 1e-5);
}

// An epsilon with more dimensions or more rows than the data broadcasts the result to its own shape.
TEST(Recognize, EpsilonThatWidensIsNoNormalization) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1, 1, 1}, std::vector<int64_t>{4, 1}}) {
    for (const bool layer_norm : {false, true}) {
      GraphBuilder b;
      b.Input("x", {1, 8}).Floats("scale", {8}, RandomFloats(8, 7)).Floats("bias", {8}, RandomFloats(8, 8));
      b.Floats("eps", shape, std::vector<float>(shape.size() == 2 ? 4 : 1, 1e-5f));
      const std::vector<int64_t> last = {-1};
      const std::string d = layer_norm ? "d" : "x";
      if (layer_norm) b.Node("ReduceMean", {"x"}, {"mean"}, {Attr("axes", last)}).Node("Sub", {"x", "mean"}, {"d"});
      b.Node("Mul", {d, d}, {"sq"}).Node("ReduceMean", {"sq"}, {"var"}, {Attr("axes", last)});
      b.Node("Add", {"var", "eps"}, {"ve"}).Node("Sqrt", {"ve"}, {"root"}).Node("Div", {d, "root"}, {"n"});
      b.Node("Mul", {"n", "scale"}, {"ns"}).Node("Add", {"ns", "bias"}, {"y"}).Output("y");
      const Graph before = Import(b.Model()), graph = ExpectPassesKeepMeaning(b.Model());
      EXPECT_EQ(CountOps(graph, "RMSNormalization") + CountOps(graph, "LayerNormalization"), 0);
      EXPECT_EQ(graph.values[graph.outputs[0]].type, before.values[before.outputs[0]].type);
    }
  }
}

}  // namespace
}  // namespace hone::graph
