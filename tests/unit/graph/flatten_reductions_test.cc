// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/graph/passes/pipeline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using Ints = std::vector<int64_t>;
using ::testing::ElementsAre;
using ::testing::Pair;

// Returns the shape of the reduction's input after all passes.
Ints ReducedShape(const Graph& graph, std::string_view op) {
  for (const Node& node : graph.nodes) {
    if (node.op == op) return ir::Values(graph.values[node.inputs[0]].type.shape);
  }
  return {};
}

Ints AfterPasses(const char* op, const Dims& shape, const Ints& axes, int64_t keep) {
  GraphBuilder b;
  b.Input("x", shape).Node(op, {"x"}, {"y"}, {Attr("axes", axes), Attr("keepdims", keep)}).Output("y");
  return ReducedShape(ExpectPassesKeepMeaning(b.Model()), op);
}

TEST(FlattenReductions, ShortLastDimensionsBecomeOneLongOne) {
  EXPECT_THAT(AfterPasses("ReduceMax", {5, 9, 3}, {0, 1, 2}, 1), ElementsAre(135));
  EXPECT_THAT(AfterPasses("ReduceMean", {5, 9, 3}, {0, 1, 2}, 0), ElementsAre(135));
  EXPECT_THAT(AfterPasses("ReduceMax", {5, 9, 3}, {1, 2}, 0), ElementsAre(5, 27)) << "what is dropped is known";
  EXPECT_THAT(AfterPasses("ReduceL2", {5, 9, 3}, {-1, 1}, 1), ElementsAre(5, 27));
  GraphBuilder b;
  b.Input("x", {2, 7, 9, 3}).Node("GlobalAveragePool", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(ReducedShape(ExpectPassesKeepMeaning(b.Model()), "GlobalAveragePool"), ElementsAre(2, 7, 27));
}

Ints SearchedShape(const char* op, const Dims& shape, int64_t axis, int64_t keep) {
  GraphBuilder b;
  b.Input("x", shape).Node(op, {"x"}, {"i"}, {Attr("axis", axis), Attr("keepdims", keep)});
  b.Node("Cast", {"i"}, {"y"}, {Attr("to", kFloat)}).Output("y");  // the test compares f32 values
  return ReducedShape(ExpectPassesKeepMeaning(b.Model()), op);
}

TEST(FlattenReductions, TheDimensionsAfterASearchedAxisAreOne) {
  EXPECT_THAT(SearchedShape("ArgMax", {2, 9, 3, 5}, 1, 1), ElementsAre(2, 9, 15));
  EXPECT_THAT(SearchedShape("ArgMin", {2, 9, 3, 5}, -3, 0), ElementsAre(2, 9, 15));
  EXPECT_THAT(SearchedShape("ArgMax", {9, 3, 5, 2}, 0, 0), ElementsAre(9, 30));
  EXPECT_THAT(SearchedShape("ArgMax", {2, 9, 15}, 1, 1), ElementsAre(2, 9, 15)) << "there is but one";
  EXPECT_THAT(SearchedShape("ArgMax", {2, 9, 15}, 2, 1), ElementsAre(2, 9, 15)) << "there is none";
}

TEST(FlattenReductions, OthersStay) {
  EXPECT_THAT(AfterPasses("ReduceMax", {5, 9, 64}, {0, 1, 2}, 1), ElementsAre(5, 9, 64)) << "long enough";
  EXPECT_THAT(AfterPasses("ReduceMax", {5, 9, 3}, {0, 2}, 1), ElementsAre(5, 9, 3)) << "they do not lie together";
  EXPECT_THAT(AfterPasses("ReduceMax", {5, 9, 3}, {2}, 1), ElementsAre(5, 9, 3)) << "there is but one";
  EXPECT_THAT(AfterPasses("ReduceMax", {5, 9, 3}, {2}, 0), ElementsAre(5, 9, 3)) << "there is but one";
}

// On a device with lanes a whole group shares the elements of one result.
TEST(FlattenReductions, LanesTakeLongerOnes) {
  const auto reduced = [](const Dims& shape, const Ints& axes, int64_t keep) {
    GraphBuilder b;
    b.Input("x", shape).Node("ReduceMax", {"x"}, {"y"}, {Attr("axes", axes), Attr("keepdims", keep)}).Output("y");
    Graph graph = Import(b.Model());
    graph.target = target::ParseTarget("cuda:sm_75").value();
    EXPECT_EQ(RunPasses(graph), absl::OkStatus());
    return std::pair(ReducedShape(graph, "ReduceMax"), graph.values[graph.outputs[0]].type.shape);
  };
  EXPECT_THAT(reduced({5, 9, 40}, {1, 2}, 1), Pair(ElementsAre(5, 360), ElementsAre(5, 1, 1)));
  EXPECT_THAT(reduced({5, 9, 64}, {1, 2}, 1), Pair(ElementsAre(5, 9, 64), ElementsAre(5, 1, 1))) << "long enough";
  EXPECT_THAT(reduced({5, 9, 64}, {0, 1, 2}, 1), Pair(ElementsAre(5 * 9 * 64), ElementsAre(1, 1, 1))) << "to one";
  EXPECT_THAT(reduced({640}, {0}, 0), Pair(ElementsAre(640), ElementsAre())) << "its own dimension is enough";
}

}  // namespace
}  // namespace hone::graph
