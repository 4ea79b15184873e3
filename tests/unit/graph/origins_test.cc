// SPDX-License-Identifier: Apache-2.0
// Calls of a plan name the nodes of the file that they compute, and tensors the values that they hold.
#include "compiler/graph/origins.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/graph/graph_edit.h"
#include "compiler/graph/plan.h"
#include "compiler/graph/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> NamesOf(const std::vector<Origin>& origins) {
  std::vector<std::string> names;
  for (const Origin& origin : origins) names.push_back(origin.name);
  return names;
}

// The names of the nodes of each call.
std::vector<std::vector<std::string>> CallNames(const Plan& plan) {
  std::vector<std::vector<std::string>> names;
  for (const PlanCall& call : plan.calls) names.push_back(NamesOf(call.origins));
  return names;
}

Plan PlanWithPasses(const GraphBuilder& b) { return PlanOf(Optimize(b.Model())); }

TEST(Origins, AFusedKernelNamesAllItsNodes) {
  GraphBuilder b;
  b.Input("x", {4, 8}).Floats("w", {8, 8}, RandomFloats(64, 1)).Floats("c", {8}, RandomFloats(8, 2));
  b.Node("MatMul", {"x", "w"}, {"m"}).Node("Add", {"m", "c"}, {"a"}).Node("Relu", {"a"}, {"y"}).Output("y");
  const Plan plan = PlanWithPasses(b);
  EXPECT_THAT(CallNames(plan), ElementsAre(ElementsAre("node_of_m", "node_of_a", "node_of_y")));
  EXPECT_EQ(plan.calls[0].origins[1].op, "Add");
  EXPECT_THAT(plan.uncalled, IsEmpty());
}

// Weights that hold the scale of a batch normalization compute it as well.
TEST(Origins, AFoldedNormalizationIsPartOfItsConvolution) {
  GraphBuilder b;
  b.Input("x", {1, 3, 8, 8}).Floats("w", {4, 3, 3, 3}, RandomFloats(108, 1));
  for (const char* name : {"scale", "shift", "mean"}) b.Floats(name, {4}, {1, 2, 3, 4});
  b.Floats("variance", {4}, {1, 2, 3, 4});
  b.Node("Conv", {"x", "w"}, {"c"})
      .Node("BatchNormalization", {"c", "scale", "shift", "mean", "variance"}, {"n"})
      .Node("Relu", {"n"}, {"y"})
      .Output("y");
  const Plan plan = PlanWithPasses(b);
  std::vector<std::string> names;
  for (const PlanCall& call : plan.calls) {
    for (const Origin& origin : call.origins) names.push_back(origin.name);
  }
  EXPECT_EQ(std::ranges::count(names, "node_of_n"), 1);
  EXPECT_EQ(std::ranges::count(names, "node_of_y"), 1);
}

TEST(Origins, ARecognizedPatternNamesAllNodesOfTheModel) {
  GraphBuilder b;
  b.Input("x", {4, 64}).Floats("two", {}, {2}).Floats("epsilon", {}, {1e-5F});
  b.Floats("scale", {64}, RandomFloats(64, 1)).Floats("bias", {64}, RandomFloats(64, 2));
  b.Node("ReduceMean", {"x"}, {"mean"}, {Attr("axes", std::vector<int64_t>{-1})})
      .Node("Sub", {"x", "mean"}, {"d"})
      .Node("Pow", {"d", "two"}, {"p"})
      .Node("ReduceMean", {"p"}, {"v"}, {Attr("axes", std::vector<int64_t>{-1})})
      .Node("Add", {"v", "epsilon"}, {"e"})
      .Node("Sqrt", {"e"}, {"s"})
      .Node("Div", {"d", "s"}, {"n"})
      .Node("Mul", {"n", "scale"}, {"scaled"})
      .Node("Add", {"scaled", "bias"}, {"y"})
      .Output("y");
  const Graph graph = Optimize(b.Model());
  ASSERT_EQ(CountOps(graph, "LayerNormalization"), 1);
  EXPECT_THAT(CallNames(PlanOf(graph)),
              ElementsAre(ElementsAre("node_of_mean", "node_of_d", "node_of_p", "node_of_v", "node_of_e", "node_of_s",
                                      "node_of_n", "node_of_scaled", "node_of_y")));
}

TEST(Origins, NodesWithoutEffectAndConstantsAreNotCalled) {
  GraphBuilder b;
  b.Input("x", {4, 8}).Floats("w", {8, 8}, RandomFloats(64, 1));
  b.Node("Neg", {"w"}, {"folded"})
      .Node("Identity", {"x"}, {"same"})
      .Node("MatMul", {"same", "folded"}, {"m"})
      .Node("Transpose", {"m"}, {"t"})
      .Node("Transpose", {"t"}, {"u"})
      .Node("Relu", {"u"}, {"y"})
      .Output("y");
  const Plan plan = PlanWithPasses(b);
  EXPECT_THAT(CallNames(plan), ElementsAre(ElementsAre("node_of_m", "node_of_y")));
  EXPECT_THAT(NamesOf(plan.uncalled), UnorderedElementsAre("node_of_folded", "node_of_same", "node_of_t", "node_of_u"));
}

TEST(Origins, OneOfTwoEqualNodesComputesBoth) {
  GraphBuilder b;
  b.Input("x", {4, 8}).Floats("w", {8, 8}, RandomFloats(64, 1));
  b.Node("MatMul", {"x", "w"}, {"a"}).Node("MatMul", {"x", "w"}, {"b"}).Output("a").Output("b");
  const Plan plan = PlanWithPasses(b);
  EXPECT_THAT(CallNames(plan), ElementsAre(ElementsAre("node_of_a", "node_of_b")));
}

TEST(Origins, AViewIsNamedOnlyWhereNothingElseIs) {
  GraphBuilder b;
  b.Input("x", {4, 8}).Ints("shape", {8, 4});
  b.Node("Relu", {"x"}, {"r"}).Node("Reshape", {"r", "shape"}, {"v"}).Node("Exp", {"v"}, {"y"}).Output("y");
  const Plan plan = PlanWithPasses(b);
  EXPECT_THAT(CallNames(plan), ElementsAre(ElementsAre("node_of_r", "node_of_y")));
  EXPECT_THAT(NamesOf(plan.uncalled), ElementsAre("node_of_v"));
}

TEST(Origins, NodesInsideOfFunctionsHaveTheNameOfTheCallBeforeTheirs) {
  GraphBuilder b;
  b.Input("x", {4}).Node("Twice", {"x"}, {"m"}, {}, "local").Node("Twice", {"m"}, {"y"}, {}, "local").Output("y");
  const std::string function =
      SerializeFunction("Twice", {"a"}, "c", {SerializeNode("Exp", {"a"}, {"b"}), SerializeNode("Neg", {"b"}, {"c"})});
  const Plan plan = PlanOf(Optimize(b.Model(17, {function})));
  EXPECT_THAT(CallNames(plan), ElementsAre(ElementsAre("node_of_m/node_of_b", "node_of_m/node_of_c",
                                                       "node_of_y/node_of_b", "node_of_y/node_of_c")));
}

// A replaced operator is one node of the file however many nodes of the graph compute it.
TEST(Origins, AllKernelsOfADecomposedNodeNameIt) {
  GraphBuilder b;
  b.Input("x", {1, 2, 4, 8});
  b.Node("InstanceNormalization", {"x", "s", "t"}, {"n"}).Floats("s", {2}, {1, 2}).Floats("t", {2}, {3, 4});
  b.Node("MeanVarianceNormalization", {"n"}, {"y"}).Output("y");
  const Plan plan = PlanWithPasses(b);
  ASSERT_FALSE(plan.calls.empty());
  for (const PlanCall& call : plan.calls) {
    ASSERT_FALSE(call.origins.empty());
    for (const Origin& origin : call.origins) {
      EXPECT_TRUE(origin.name == "node_of_n" || origin.name == "node_of_y");
    }
  }
}

TEST(Origins, AWorkloadDoesNotKnowTheNames) {
  GraphBuilder b;
  b.Input("x", {4, 8}).Floats("w", {8, 8}, RandomFloats(64, 1)).Floats("v", {8, 8}, RandomFloats(64, 2));
  b.Node("MatMul", {"x", "w"}, {"a"}).Node("MatMul", {"a", "v"}, {"y"}).Output("y");
  const Plan plan = PlanWithPasses(b);
  EXPECT_EQ(plan.workloads.size(), 1u);
  EXPECT_THAT(CallNames(plan), ElementsAre(ElementsAre("node_of_a"), ElementsAre("node_of_y")));
}

TEST(Origins, TheVerifierRefusesANodeWithoutOrigin) {
  GraphBuilder b;
  b.Input("x", {4}).Node("Relu", {"x"}, {"y"}).Output("y");
  Graph graph = Import(b.Model());
  ASSERT_TRUE(Verify(graph).ok());
  graph.nodes[0].origins.clear();
  EXPECT_THAT(std::string(Verify(graph).message()), HasSubstr("no origin"));
  graph.nodes[0].origins = {7};
  EXPECT_THAT(std::string(Verify(graph).message()), HasSubstr("no origin 7"));
}

// The tensors that hold a value of the file, with the order of its dimensions.
std::vector<std::vector<int64_t>> HoldersOf(const Plan& plan, const std::string& value) {
  std::vector<std::vector<int64_t>> axes;
  for (const PlanValue& held : plan.values) {
    if (held.name == value) axes.push_back(held.axes);
  }
  return axes;
}

TEST(Values, AResultIsHeldAndAnInnerValueIsNot) {
  GraphBuilder b;
  b.Input("x", {4, 8}).Floats("w", {8, 8}, RandomFloats(64, 1)).Floats("v", {8, 8}, RandomFloats(64, 2));
  b.Node("MatMul", {"x", "w"}, {"m"}).Node("Relu", {"m"}, {"r"}).Node("MatMul", {"r", "v"}, {"y"}).Output("y");
  const Plan plan = PlanWithPasses(b);
  EXPECT_THAT(HoldersOf(plan, "m"), IsEmpty());
  EXPECT_THAT(HoldersOf(plan, "r"), ElementsAre(IsEmpty()));
  EXPECT_THAT(HoldersOf(plan, "y"), ElementsAre(IsEmpty()));
}

// With channels last, dimension 1 of the file's value is the last one of the tensor.
TEST(Values, ALayoutChangesTheOrderOfDimensions) {
  GraphBuilder b;
  b.Input("x", {1, 16, 16, 16});
  for (const char* name : {"w1", "w2", "w3"}) b.Floats(name, {16, 16, 3, 3}, RandomFloats(16 * 16 * 9, 1));
  const std::vector<std::string> padded = {Attr("pads", std::vector<int64_t>{1, 1, 1, 1})};
  b.Node("Conv", {"x", "w1"}, {"a"}, padded)
      .Node("Relu", {"a"}, {"b"})
      .Node("Conv", {"b", "w2"}, {"c"}, padded)
      .Node("Relu", {"c"}, {"d"})
      .Node("Conv", {"d", "w3"}, {"y"}, padded)
      .Output("y");
  const Plan plan = PlanWithPasses(b);
  EXPECT_THAT(HoldersOf(plan, "b"), ElementsAre(ElementsAre(0, 3, 1, 2)));
  EXPECT_THAT(HoldersOf(plan, "d"), ElementsAre(ElementsAre(0, 3, 1, 2)));
}

}  // namespace
}  // namespace hone::graph
