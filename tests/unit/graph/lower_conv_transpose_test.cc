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

struct TransposedCase {
  Ints kernel, strides, pads, extra;
};

// Odd and even kernels, strides and pads, and kernels shorter than the stride, whose last phases have no taps. Lowered
// phase by phase or, for few output channels, as all products first.
TEST(LowerConvTranspose, KeepsTheMeaning) {
  const std::vector<TransposedCase> cases = {
      {{4, 4}, {2, 2}, {1, 1, 1, 1}, {0, 0}}, {{2, 2}, {2, 2}, {0, 0, 0, 0}, {0, 0}},
      {{3, 3}, {2, 2}, {1, 1, 1, 1}, {0, 0}}, {{3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
      {{5, 4}, {3, 2}, {2, 1, 0, 2}, {1, 0}}, {{2, 1}, {3, 2}, {0, 0, 0, 0}, {0, 0}},
      {{5, 3}, {2, 1}, {3, 1, 2, 1}, {0, 0}}};
  int phased = 0, summed = 0;
  for (const TransposedCase& c : cases) {
    for (const int outputs : {16, 3}) {
      SCOPED_TRACE(testing::PrintToString(c.kernel) + testing::PrintToString(c.strides) + std::to_string(outputs));
      GraphBuilder b;
      b.Input("x", {2, 64, 5, 6}).Floats("bias", {outputs}, RandomFloats(outputs, 2));
      b.Floats("w", {64, outputs, c.kernel[0], c.kernel[1]}, RandomFloats(64 * outputs * c.kernel[0] * c.kernel[1], 1));
      b.Node("ConvTranspose", {"x", "w", "bias"}, {"t"},
             {Attr("strides", c.strides), Attr("pads", c.pads), Attr("output_padding", c.extra)});
      b.Node("Relu", {"t"}, {"y"}).Output("y");
      const Graph graph = ExpectPassesKeepMeaning(b.Model());
      EXPECT_EQ(CountOps(graph, "ConvTranspose"), 0);
      phased += CountOps(graph, "PhasedConvTranspose");
      summed += CountOps(graph, "SumTaps");
    }
  }
  EXPECT_EQ(phased + summed, 14);
  EXPECT_GE(phased, 2);
  EXPECT_GE(summed, 7);
}

// A result of f16 is rounded once, whatever its parts are.
TEST(LowerConvTranspose, ShortFloatsAreRoundedOnce) {
  for (const int outputs : {32, 3}) {
    GraphBuilder b;
    b.Input("x", {1, 64, 5, 6}).Floats("w", {64, outputs, 4, 4}, RandomFloats(64 * outputs * 16, 1));
    b.Floats("b", {outputs}, RandomFloats(outputs, 2));
    for (const char* name : {"x", "w", "b"}) b.Node("Cast", {name}, {std::string(name) + "h"}, {Attr("to", kHalf)});
    b.Node("ConvTranspose", {"xh", "wh", "bh"}, {"y"}, {Attr("strides", Ints{2, 2})});
    b.Node("Cast", {"y"}, {"z"}, {Attr("to", kFloat)}).Output("z");
    const Graph graph = ExpectPassesKeepMeaning(b.Model());
    EXPECT_EQ(CountOps(graph, "ConvTranspose"), 0);
    EXPECT_EQ(CountOps(graph, "SumTaps"), outputs == 3 ? 1 : 0);
  }
}

TEST(LowerConvTranspose, ElementwiseReadersAreFused) {
  GraphBuilder b;
  b.Input("x", {1, 64, 8, 8})
      .Floats("w", {64, 32, 4, 4}, RandomFloats(32768, 1))
      .Floats("b", {32}, RandomFloats(32, 2));
  b.Node("ConvTranspose", {"x", "w", "b"}, {"t"}, {Attr("strides", Ints{2, 2}), Attr("pads", Ints{1, 1, 1, 1})});
  b.Node("Relu", {"t"}, {"y"}).Output("y");
  EXPECT_THAT(CallLabels(PlanOf(ExpectPassesKeepMeaning(b.Model()))),
              ElementsAre("transpose", "conv_transpose", "transpose"));
}

// The other convolution makes it worth changing the layout.
TEST(LowerConvTranspose, NoOutputChannelsStayNone) {
  GraphBuilder b;
  b.Input("x", {1, 8, 32, 32}).Floats("v", {16, 8, 3, 3}, RandomFloats(1152, 1)).Floats("w", {8, 0, 2, 2}, {});
  b.Node("Conv", {"x", "v"}, {"y"}, {Attr("pads", Ints{1, 1, 1, 1})}).Output("y");
  b.Node("ConvTranspose", {"x", "w"}, {"t"}, {Attr("strides", Ints{2, 2})}).Output("t");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "ConvTranspose"), 1);
}

TEST(LowerConvTranspose, DilationsGroupsAndUnknownWeightsStay) {
  GraphBuilder b;
  b.Input("x", {1, 64, 5, 5}).Input("v", {64, 32, 3, 3});
  b.Floats("w", {64, 32, 3, 3}, RandomFloats(18432, 1));
  const std::string strides = Attr("strides", Ints{2, 2});
  b.Node("ConvTranspose", {"x", "w"}, {"dilated"}, {strides, Attr("dilations", Ints{2, 2})}).Output("dilated");
  b.Node("ConvTranspose", {"x", "w"}, {"grouped"}, {strides, Attr("group", 2)}).Output("grouped");
  b.Node("ConvTranspose", {"x", "v"}, {"unknown"}, {strides}).Output("unknown");
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "ConvTranspose"), 3);
}

}  // namespace
}  // namespace hone::graph
