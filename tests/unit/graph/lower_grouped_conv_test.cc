// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/graph_edit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using Ints = std::vector<int64_t>;
using ::testing::ElementsAre;

struct Case {
  int in, out, groups;
  Ints kernel, strides, dilations, pads;
};

// Groups of whole and of partial vectors, uneven windows and pads, and one input channel per group. Large images stay
// channels-first.
TEST(LowerGroupedConv, KeepsTheMeaning) {
  const std::vector<Case> cases = {
      {64, 96, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},   {60, 66, 3, {3, 1}, {2, 1}, {1, 1}, {1, 0, 0, 0}},
      {64, 128, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}}, {64, 44, 4, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {64, 80, 2, {3, 3}, {1, 1}, {2, 2}, {2, 0, 1, 2}},   {4, 6, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.kernel) + testing::PrintToString(c.groups));
    const int in = c.in / c.groups;
    GraphBuilder b;
    b.Input("x", {2, c.in, 7, 8}).Floats("bias", {c.out}, RandomFloats(c.out, 2));
    b.Floats("w", {c.out, in, c.kernel[0], c.kernel[1]}, RandomFloats(c.out * in * c.kernel[0] * c.kernel[1], 1));
    b.Node("Conv", {"x", "w", "bias"}, {"t"},
           {Attr("strides", c.strides), Attr("pads", c.pads), Attr("dilations", c.dilations), Attr("group", c.groups)});
    b.Node("Relu", {"t"}, {"y"}).Output("y");
    const Graph graph = ExpectPassesKeepMeaning(b.Model());
    EXPECT_EQ(CountOps(graph, "Conv"), 0);
    EXPECT_EQ(CountOps(graph, "GroupedConv"), 1);
  }
}

TEST(LowerGroupedConv, ElementwiseReadersAreFused) {
  GraphBuilder b;
  b.Input("x", {1, 64, 28, 28}).Floats("w", {96, 32, 3, 3}, RandomFloats(27648, 1));
  b.Floats("b", {96}, RandomFloats(96, 2));
  b.Node("Conv", {"x", "w", "b"}, {"t"}, {Attr("pads", Ints{1, 1, 1, 1}), Attr("group", 2)});
  b.Node("Relu", {"t"}, {"y"}).Output("y");
  EXPECT_THAT(CallLabels(PlanOf(ExpectPassesKeepMeaning(b.Model()))),
              ElementsAre("transpose", "grouped_conv2d", "transpose"));
}

// In a depthwise convolution the output channel's number is the input channel's, so no index is divided.
TEST(LowerGroupedConv, DepthwiseStays) {
  GraphBuilder b;
  b.Input("x", {1, 64, 28, 28}).Floats("w", {64, 1, 3, 3}, RandomFloats(576, 1));
  b.Node("Conv", {"x", "w"}, {"y"}, {Attr("pads", Ints{1, 1, 1, 1}), Attr("group", 64)}).Output("y");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "GroupedConv"), 0);
}

}  // namespace
}  // namespace hone::graph
