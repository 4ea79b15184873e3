// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;

std::string ScatterModel(const std::string& op, const Dims& data, const std::string& indices, const Dims& updates,
                         const std::vector<std::string>& attributes = {}) {
  GraphBuilder b;
  b.Input("x", data).Input("u", updates).Initializer(indices);
  b.Node(op, {"x", "i", "u"}, {"y"}, attributes).Output("y");
  return b.Model();
}

std::string IndexTensor(const std::vector<int64_t>& shape, const std::vector<int64_t>& values) {
  return Tensor<int64_t>("i", kInt64, shape, values);
}

// PyTorch writes zeros.scatter_add(0, rows[:, None].expand(-1, 3), u) like this. Each row index is looked up once.
TEST(LowerScatter, ExpandedIndicesNameRows) {
  for (const bool of_rows : {true, false}) {
    GraphBuilder b;
    b.Input("x", {4, 3}).Input("u", {6, 3}).Input("r", of_rows ? Dims{6, 1} : Dims{1, 3}).Ints("shape", {6, 3});
    b.Floats("four", {}, {4})
        .Node("Mul", {"r", "four"}, {"place"})
        .Node("Cast", {"place"}, {"i"}, {Attr("to", kInt64)});
    b.Node("Expand", {"i", "shape"}, {"e"});
    b.Node("ScatterElements", {"x", "e", "u"}, {"y"}, {Attr("axis", 0), Attr("reduction", "add")}).Output("y");
    EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model(18)), "ScatterND"), of_rows ? 1 : 0);
  }
}

// PyTorch writes y[:, ::2] = z like this, with one tuple of indices per element.
TEST(LowerScatter, AssignedSlicesAreOneKernelThatGathers) {
  const std::string indices = IndexTensor({2, 2, 2}, {0, 0, 0, 2, 1, 0, 1, 2});
  const Graph graph = ExpectPassesKeepMeaning(ScatterModel("ScatterND", {2, 4}, indices, {2, 2}));
  EXPECT_THAT(Ops(graph), ElementsAre("Reshape", "Gather", "Where"));
  EXPECT_EQ(CallLabels(PlanOf(graph)).size(), 1u);
}

TEST(LowerScatter, TheLastUpdateOfAPlaceCounts) {
  for (const std::string& indices :
       {IndexTensor({3, 1}, {2, -3, 2}), Tensor<int32_t>("i", kInt32, {3, 1}, {-1, 0, 2})}) {
    const Graph graph = ExpectPassesKeepMeaning(ScatterModel("ScatterND", {3, 2, 2}, indices, {3, 2, 2}));
    EXPECT_THAT(Ops(graph), ElementsAre("Gather", "Where"));
  }
  EXPECT_EQ(
      CountOps(ExpectPassesKeepMeaning(ScatterModel("ScatterND", {2, 3}, IndexTensor({2, 0}, {}), {2, 2, 3})), "Where"),
      1)
      << "tuples of no index name the whole";
}

TEST(LowerScatter, ElementsGoAlongTheirAxis) {
  for (const int axis : {0, 1, -1, -2}) {
    const std::string model =
        ScatterModel("ScatterElements", {3, 4}, IndexTensor({2, 3}, {1, 0, 2, -1, 0, 1}), {2, 3}, {Attr("axis", axis)});
    EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(model), "ScatterElements"), 0) << axis;
  }
}

TEST(LowerScatter, UpdatesAreCombinedWhereIndicesAreDistinct) {
  for (const char* reduction : {"add", "mul", "max", "min"}) {
    for (const int64_t second : {-1, 1}) {
      const std::string model =
          ScatterModel("ScatterND", {3, 2}, IndexTensor({2, 1}, {1, second}), {2, 2}, {Attr("reduction", reduction)});
      EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(model), "ScatterND"), second == 1 ? 1 : 0) << reduction;
    }
  }
}

TEST(LowerScatter, IndicesThatAreNotKnownAreSearched) {
  GraphBuilder b;
  b.Input("x", {3, 2}).Input("i", {2, 1}, kInt64).Input("u", {2, 2});
  b.Node("ScatterND", {"x", "i", "u"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(ExpectPassesKeepMeaning(b.Model())), ElementsAre("ScatterND"));
}

}  // namespace
}  // namespace hone::graph
