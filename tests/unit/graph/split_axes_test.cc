// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "compiler/graph/passes/pipeline.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;

std::string CumSumModel(const Dims& shape, int axis, int exclusive = 0, int reverse = 0, int dtype = kFloat) {
  GraphBuilder b;
  b.Input("x", shape, dtype).Ints("axis", {axis});
  b.Node("CumSum", {"x", "axis"}, {"y"}, {Attr("exclusive", exclusive), Attr("reverse", reverse)});
  // The test compares f32 values.
  b.Node("Cast", {"y"}, {"z"}, {Attr("to", kFloat)}).Output("z");
  return b.Model();
}

TEST(SplitAxes, SumsOfBlocksMeanTheSame) {
  for (const int exclusive : {0, 1}) {
    for (const int reverse : {0, 1}) {
      EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(CumSumModel({2, 640}, -1, exclusive, reverse)), "CumSum"), 2);
      EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(CumSumModel({600, 3}, 0, exclusive, reverse)), "CumSum"), 2);
    }
  }
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(CumSumModel({2, 700}, 1, 0, 0, kInt32)), "CumSum"), 2);
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(CumSumModel({8, 512}, 1)), "CumSum"), 2) << "many sums";
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(CumSumModel({8, 100}, 1)), "CumSum"), 1) << "few sums";
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(CumSumModel({5000, 24}, 1)), "CumSum"), 1) << "short enough to unroll";
}

// The shapes of the data of every CumSum after all passes.
std::vector<std::vector<int64_t>> SummedShapes(const Graph& graph) {
  std::vector<std::vector<int64_t>> shapes;
  for (const Node& node : graph.nodes) {
    if (node.op == "CumSum") shapes.push_back(ir::Values(graph.values[node.inputs[0]].type.shape));
  }
  return shapes;
}

TEST(SplitAxes, BlocksOfSumsAreUnrolledOnCpus) {
  EXPECT_THAT(SummedShapes(Optimize(CumSumModel({2, 640}, 1))),
              ElementsAre(ElementsAre(2, 40), ElementsAre(2, 40, 16)));
  EXPECT_THAT(SummedShapes(Optimize(CumSumModel({2, 600}, 1))), ElementsAre(ElementsAre(2, 40), ElementsAre(2, 40, 15)))
      << "no padding";
  EXPECT_THAT(SummedShapes(Optimize(CumSumModel({2, 601}, 1))),
              ElementsAre(ElementsAre(2, 38), ElementsAre(2, 38, 16)));
  Graph lanes = Import(CumSumModel({2, 640}, 1));
  lanes.target = target::ParseTarget("cuda:sm_75").value();
  EXPECT_EQ(RunPasses(lanes), absl::OkStatus());
  EXPECT_THAT(SummedShapes(lanes), ElementsAre(ElementsAre(2, 5), ElementsAre(2, 5, 128)));
}

TEST(SplitAxes, TheDimensionsAfterASummedAxisAreOne) {
  const Graph graph = ExpectPassesKeepMeaning(CumSumModel({2, 640, 3, 5}, 1));
  EXPECT_THAT(SummedShapes(graph).back(), ElementsAre(2, 40, 16, 15));
}

TEST(SplitAxes, SumsOfBytesStayBytes) {
  for (const int dtype : {kInt8, kUInt8}) {
    EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(CumSumModel({1, 513}, 1, 0, 0, dtype)), "CumSum"), 2);
  }
}

TEST(SplitAxes, ManySumsOfBlocksAreSplitAgain) {
  EXPECT_EQ(CountOps(Optimize(CumSumModel({1, 480000}, 1)), "CumSum"), 4);
}

// A sum of 128 values in half precision would have lost digits.
TEST(SplitAxes, HalvesAreAddedUpInFloats) {
  const Graph graph = Optimize(CumSumModel({1, 640}, 1, 0, 0, kHalf));
  for (const Node& node : graph.nodes) {
    if (node.op != "CumSum") continue;
    EXPECT_EQ(graph.values[node.inputs[0]].type.dtype, ir::DType::kFloat32);
  }
}

// The positions are cast to f32, which the test compares.
std::string TopKModel(const Dims& shape, int axis, int count, int largest, int dtype = kFloat) {
  GraphBuilder b;
  b.Input("x", shape, dtype).Ints("k", {count});
  b.Node("TopK", {"x", "k"}, {"y", "i"}, {Attr("axis", axis), Attr("largest", largest)});
  b.Node("Cast", {"y"}, {"z"}, {Attr("to", kFloat)}).Output("z");
  b.Node("Cast", {"i"}, {"p"}, {Attr("to", kFloat)}).Output("p");
  return b.Model();
}

// Number of TopK nodes after the split. For the largest elements: one over the maxima of groups, one that puts the
// chosen groups in axis order, one over their elements. For the smallest: one over blocks and one over their results.
int TopKsOf(int largest) { return largest != 0 ? 3 : 2; }

TEST(SplitAxes, TheFirstOfPartsAreThoseOfAll) {
  for (const int largest : {0, 1}) {
    const auto count = [&](const Dims& shape, int axis) {
      return CountOps(ExpectPassesKeepMeaning(TopKModel(shape, axis, 3, largest)), "TopK");
    };
    EXPECT_EQ(count({2, 1024}, -1), TopKsOf(largest)) << "whole parts";
    EXPECT_EQ(count({2, 1100}, -1), TopKsOf(largest)) << "and a rest";
    EXPECT_EQ(count({1100, 2}, 0), TopKsOf(largest)) << "another axis";
  }
}

// Random 8-bit integers repeat, and the first of equal elements must stay first.
TEST(SplitAxes, EqualsKeepTheirOrder) {
  for (const int largest : {0, 1}) {
    EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(TopKModel({1, 1100}, -1, 20, largest, kInt8)), "TopK"),
              TopKsOf(largest));
  }
}

// NaN counts as the largest value, so also as the maximum of its group.
TEST(SplitAxes, NansKeepTheirPlaces) {
  for (const int largest : {0, 1}) {
    GraphBuilder b;
    b.Input("x", {1, 1100}).Ints("k", {40});
    b.Node("Log", {"x"}, {"l"});  // NaN for half of the numbers
    b.Node("TopK", {"l", "k"}, {"", "i"}, {Attr("axis", 1), Attr("largest", largest)});
    b.Node("Cast", {"i"}, {"p"}, {Attr("to", kFloat)}).Output("p");
    EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "TopK"), TopKsOf(largest));
  }
}

TEST(SplitAxes, LongRemaindersAreSplitAgain) {
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(TopKModel({1, 3000}, -1, 30, 0)), "TopK"), 3);
  EXPECT_GT(CountOps(ExpectPassesKeepMeaning(TopKModel({1, 30000}, -1, 30, 1)), "TopK"), 3);
}

TEST(SplitAxes, TakingMostOfAnAxisComparesAll) {
  EXPECT_THAT(Ops(Optimize(TopKModel({1, 1024}, -1, 300, 1))), ElementsAre("TopK", "Cast"));
  EXPECT_EQ(CountOps(Optimize(TopKModel({1, 512}, -1, 1, 1)), "TopK"), 1);
}

}  // namespace
}  // namespace hone::graph
