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

// The graph after the passes for a target with lanes. Expects the same numbers as without passes.
Graph OnLanes(const std::string& model) {
  const Graph before = Import(model);
  Graph after = before;
  after.target = target::ParseTarget("cuda:sm_75").value();
  EXPECT_EQ(RunPasses(after, {.verify = true}), absl::OkStatus());
  const std::vector<float> expected = RunOnRandom(before, 1), actual = RunOnRandom(after, 1);
  EXPECT_FALSE(expected.empty());
  EXPECT_THAT(actual, ::testing::Pointwise(::testing::NanSensitiveFloatNear(1e-3F), expected));
  return after;
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
  EXPECT_THAT(SummedShapes(OnLanes(CumSumModel({2, 640}, 1))), ElementsAre(ElementsAre(2, 5), ElementsAre(2, 5, 128)));
}

TEST(SplitAxes, TheDimensionsAfterASummedAxisAreOne) {
  const Graph blocks = ExpectPassesKeepMeaning(CumSumModel({2, 640, 2, 3}, 1));
  EXPECT_THAT(SummedShapes(blocks).back(), ElementsAre(2, 40, 16, 6));
  const Graph columns = ExpectPassesKeepMeaning(CumSumModel({2, 640, 3, 5}, 1));
  EXPECT_THAT(SummedShapes(columns), ElementsAre(ElementsAre(2, 640, 15)));
}

// Threads add rows of columns one after the other. Lanes take blocks.
TEST(SplitAxes, SumsOfColumnsAreNotCutOnCpus) {
  EXPECT_THAT(SummedShapes(Optimize(CumSumModel({640, 8}, 0))), ElementsAre(ElementsAre(640, 8)));
  EXPECT_THAT(SummedShapes(Optimize(CumSumModel({640, 7}, 0))),
              ElementsAre(ElementsAre(40, 7), ElementsAre(40, 16, 7)));
  EXPECT_THAT(SummedShapes(OnLanes(CumSumModel({640, 8}, 0))), ElementsAre(ElementsAre(5, 8), ElementsAre(5, 128, 8)));
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

int TopKs(const Graph& graph) { return CountOps(graph, "TopK") + CountOps(graph, "DigitTopK"); }

// Number of TopK nodes after the split. For the largest elements: one over the maxima of groups, one that puts the
// chosen groups in axis order, one over their elements. For the smallest: one over blocks and one over their results.
int TopKsOf(int largest) { return largest != 0 ? 3 : 2; }

TEST(SplitAxes, TheFirstOfPartsAreThoseOfAll) {
  for (const int largest : {0, 1}) {
    for (const auto& [shape, axis] : {std::pair<Dims, int>{{2, 1024}, -1}, {{2, 1100}, -1}, {{1100, 2}, 0}}) {
      const std::string model = TopKModel(shape, axis, 3, largest);
      EXPECT_EQ(TopKs(OnLanes(model)), TopKsOf(largest));
      EXPECT_EQ(TopKs(ExpectPassesKeepMeaning(model)), largest != 0 ? 3 : 1) << "threads sort for the smallest";
    }
  }
}

// Random 8-bit integers repeat, and the first of equal elements must stay first.
TEST(SplitAxes, EqualsKeepTheirOrder) {
  for (const int largest : {0, 1}) {
    const std::string model = TopKModel({1, 1100}, -1, 20, largest, kInt8);
    EXPECT_EQ(TopKs(OnLanes(model)), TopKsOf(largest));
    EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(model), "DigitTopK"), 1);
  }
}

// NaN counts as the largest value, so also as the maximum of its group.
TEST(SplitAxes, NansKeepTheirPlaces) {
  for (const int largest : {0, 1}) {
    for (const int count : {10, 40}) {
      GraphBuilder b;
      b.Input("x", {1, 1100}).Ints("k", {count});
      b.Node("Log", {"x"}, {"l"});  // NaN for half of the numbers
      b.Node("TopK", {"l", "k"}, {"", "i"}, {Attr("axis", 1), Attr("largest", largest)});
      b.Node("Cast", {"i"}, {"p"}, {Attr("to", kFloat)}).Output("p");
      EXPECT_EQ(TopKs(OnLanes(b.Model())), TopKsOf(largest));
      EXPECT_EQ(TopKs(ExpectPassesKeepMeaning(b.Model())), largest != 0 && count == 10 ? 3 : 1);
    }
  }
}

TEST(SplitAxes, LongRemaindersAreSplitAgain) {
  EXPECT_EQ(TopKs(OnLanes(TopKModel({1, 3000}, -1, 30, 0))), 3);
  EXPECT_GT(TopKs(OnLanes(TopKModel({1, 30000}, -1, 30, 1))), 3);
}

TEST(SplitAxes, TakingMostOfAnAxisComparesAll) {
  EXPECT_THAT(Ops(OnLanes(TopKModel({1, 1024}, -1, 300, 1))), ElementsAre("TopK", "Cast"));
  EXPECT_THAT(Ops(Optimize(TopKModel({1, 1024}, -1, 300, 1))), ElementsAre("DigitTopK", "Cast"));
  EXPECT_EQ(CountOps(OnLanes(TopKModel({1, 512}, -1, 1, 1)), "TopK"), 1);
}

// Ranks are faster for short axes and few comparisons.
TEST(SplitAxes, ShortAxesAreNotSortedByDigits) {
  EXPECT_EQ(CountOps(Optimize(TopKModel({5000, 64}, -1, 64, 1)), "TopK"), 1);
  EXPECT_EQ(CountOps(Optimize(TopKModel({1, 180}, -1, 180, 1)), "TopK"), 1);
  EXPECT_EQ(CountOps(Optimize(TopKModel({100, 65}, -1, 65, 1)), "DigitTopK"), 1);
}

}  // namespace
}  // namespace hone::graph
