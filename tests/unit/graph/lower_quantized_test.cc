// SPDX-License-Identifier: Apache-2.0
// Models in QDQ form: after the passes their products are products of integers, and results differ by at most one step.
#include <cmath>
#include <tuple>

#include "compiler/graph/passes/pipeline.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using Ints = std::vector<int64_t>;

constexpr float kStep = 1.0f / 64;  // of all activations
constexpr char kVnni[] = "x86_64 -mcpu=icelake-server -threads=1", kPlain[] = "x86_64 -mcpu=haswell -threads=1";

// Builds models in QDQ form.
class QdqBuilder : public GraphBuilder {
 public:
  QdqBuilder() {
    Floats("step", {}, {kStep}).Floats("other_step", {}, {1.25f * kStep});
    Initializer(Tensor<uint8_t>("middle", kUInt8, {}, {128})).Initializer(Tensor<int8_t>("zero", kInt8, {}, {0}));
  }

  QdqBuilder& Quantize(const std::string& from, const std::string& to, const std::string& step = "step",
                       const std::string& zero_point = "middle") {
    Node("QuantizeLinear", {from, step, zero_point}, {to + "_q"});
    Node("DequantizeLinear", {to + "_q", step, zero_point}, {to});
    return *this;
  }

  // Weights with a scale for each place along the axis; as i8, or as u8 with zero points.
  QdqBuilder& Weights(const std::string& name, const std::vector<int64_t>& shape, int axis, bool has_offset = false) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    std::vector<int8_t> q;
    for (const float x : RandomFloats(count, 5)) q.push_back(static_cast<int8_t>(std::lround(x * 127)));
    std::vector<float> scales;
    for (int64_t c = 0; c < shape[axis]; ++c) scales.push_back(0.001f * static_cast<float>(1 + c % 5));
    Floats(name + "_scale", {shape[axis]}, scales);
    const int type = has_offset ? kUInt8 : kInt8;
    Initializer(Tensor(name + "_q", type, shape, q));
    std::vector<int8_t> offsets(static_cast<size_t>(shape[axis]), has_offset ? int8_t{100} : int8_t{0});
    Initializer(Tensor(name + "_offset", type, {shape[axis]}, offsets));
    Node("DequantizeLinear", {name + "_q", name + "_scale", name + "_offset"}, {name}, {Attr("axis", axis)});
    return *this;
  }
};

// Runs the passes for the target. Expects results within `tolerance` of those of the graph as imported.
Graph Lowered(const std::string& model, float tolerance = kStep * 1.001f, const std::string& target = kVnni) {
  Graph graph = Import(model);
  const std::vector<float> expected = RunOnRandom(graph, 1);
  graph.target = target::ParseTarget(target).value();
  EXPECT_EQ(RunPasses(graph, {.verify = true}), absl::OkStatus());
  const std::vector<float> actual = RunOnRandom(graph, 1);
  EXPECT_EQ(expected.size(), actual.size());
  int different = 0;
  for (size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    EXPECT_NEAR(expected[i], actual[i], tolerance) << i;
    different += std::abs(expected[i] - actual[i]) > kStep / 2 ? 1 : 0;
  }
  EXPECT_LE(different, static_cast<int>(expected.size() / 100)) << "a step of difference should be rare";
  return graph;
}

TEST(LowerQuantized, ConvolutionsSumIntegers) {
  for (const bool has_offset : {false, true}) {
    QdqBuilder b;
    b.Input("x", {2, 8, 7, 6}).Floats("bias", {10}, RandomFloats(10, 3));
    b.Quantize("x", "xd").Weights("w", {10, 8, 3, 3}, 0, has_offset);
    b.Node("Conv", {"xd", "w", "bias"}, {"c"}, {Attr("pads", Ints{1, 1, 1, 0}), Attr("strides", Ints{2, 1})});
    b.Node("Relu", {"c"}, {"r"});
    b.Quantize("r", "y").Output("y");
    const Graph graph = Lowered(b.Model());
    EXPECT_EQ(CountOps(graph, "ConvInteger"), 1);
    EXPECT_EQ(CountOps(graph, "QuantizeByReciprocal"), 1);
    EXPECT_EQ(CountOps(graph, "Conv"), 0);
  }
}

TEST(LowerQuantized, TheReaderMayAddAndNeedNotQuantize) {
  QdqBuilder b;
  b.Input("x", {1, 8, 5, 5});
  b.Quantize("x", "xd").Weights("w", {8, 8, 3, 3}, 0);
  b.Node("Conv", {"xd", "w"}, {"c"}, {Attr("pads", Ints{1, 1, 1, 1})});
  b.Node("Add", {"c", "xd"}, {"s"}).Node("Sigmoid", {"s"}, {"y"}).Output("y");
  EXPECT_EQ(CountOps(Lowered(b.Model(), 1e-5f), "ConvInteger"), 1);
}

TEST(LowerQuantized, MatrixProductsSumIntegers) {
  for (const bool transposed : {false, true}) {
    QdqBuilder b;
    b.Input("x", {5, 12}).Floats("bias", {9}, RandomFloats(9, 3));
    b.Quantize("x", "xd").Weights("w", transposed ? Ints{9, 12} : Ints{12, 9}, transposed ? 0 : 1);
    b.Node("Gemm", {"xd", "w", "bias"}, {"g"}, {Attr("transB", transposed ? 1 : 0)});
    b.Quantize("g", "y").Output("y");
    EXPECT_EQ(CountOps(Lowered(b.Model()), "MatMulInteger"), 1);
  }
  QdqBuilder b;
  b.Input("x", {2, 5, 12});
  b.Quantize("x", "xd").Weights("w", {12, 9}, 1).Node("MatMul", {"xd", "w"}, {"g"});
  b.Quantize("g", "y").Output("y");
  EXPECT_EQ(CountOps(Lowered(b.Model()), "MatMulInteger"), 1);
}

TEST(LowerQuantized, ProductsOfTwoActivations) {
  QdqBuilder b;
  b.Input("x", {3, 5, 6}).Input("z", {3, 6, 4});
  b.Quantize("x", "xd").Quantize("z", "zd", "other_step", "zero").Node("MatMul", {"xd", "zd"}, {"g"});
  b.Quantize("g", "y").Output("y");
  EXPECT_EQ(CountOps(Lowered(b.Model()), "MatMulInteger"), 1);
}

// The quantization bounds its results anyway.
TEST(LowerQuantized, BoundsThatTheQuantizationHasAreLeftOut) {
  for (const auto& [high, zero_point, left] :
       {std::tuple(255 * kStep, "low", 0), {254 * kStep, "low", 1}, {255 * kStep, "middle", 1}}) {
    QdqBuilder b;
    b.Input("x", {6, 12}).Floats("zero_f", {}, {0}).Floats("high", {}, {high});
    b.Initializer(Tensor<uint8_t>("low", kUInt8, {}, {0}));
    b.Quantize("x", "xd").Weights("w", {12, 9}, 1).Node("MatMul", {"xd", "w"}, {"g"});
    b.Node("Clip", {"g", "zero_f", "high"}, {"c"});
    b.Quantize("c", "y", "step", zero_point).Output("y");
    EXPECT_EQ(CountOps(Lowered(b.Model()), "Clip"), left) << high << zero_point;
  }
}

// A scale for each input channel cannot be taken out of the sum.
TEST(LowerQuantized, ScalesAlongTheSumStay) {
  QdqBuilder b;
  b.Input("x", {5, 12});
  b.Quantize("x", "xd").Weights("w", {12, 9}, 0).Node("MatMul", {"xd", "w"}, {"y"}).Output("y");
  EXPECT_EQ(CountOps(Lowered(b.Model(), 1e-4f), "MatMulInteger"), 0);
}

TEST(LowerQuantized, TargetsWithoutAnInstructionComputeInF32) {
  QdqBuilder b;
  b.Input("x", {1, 8, 5, 5});
  b.Quantize("x", "xd").Weights("w", {8, 8, 3, 3}, 0).Node("Conv", {"xd", "w"}, {"c"});
  b.Quantize("c", "y").Output("y");
  const Graph graph = Lowered(b.Model(), kStep * 1.001f, kPlain);
  EXPECT_EQ(CountOps(graph, "Conv"), 1);
  EXPECT_EQ(CountOps(graph, "ConvInteger"), 0);
}

TEST(LowerQuantized, IntegersAreMovedAndNotQuantizedAgain) {
  QdqBuilder b;
  b.Input("x", {1, 4, 8, 8});
  b.Quantize("x", "xd").Node("MaxPool", {"xd"}, {"p"}, {Attr("kernel_shape", Ints{2, 2}), Attr("strides", Ints{2, 2})});
  // Dropout takes floats alone.
  b.Quantize("p", "pd")
      .Node("Dropout", {"pd"}, {"d"})
      .Node("Transpose", {"d"}, {"t"}, {Attr("perm", Ints{0, 2, 3, 1})});
  b.Quantize("t", "td").Node("Flatten", {"td"}, {"y"}).Output("y");
  const Graph graph = Lowered(b.Model(), 0);
  EXPECT_EQ(CountOps(graph, "QuantizeLinear"), 1);
  EXPECT_EQ(CountOps(graph, "DequantizeLinear"), 1);
}

TEST(LowerQuantized, OtherStepsQuantizeAgain) {
  QdqBuilder b;
  b.Input("x", {1, 4, 8, 8});
  b.Quantize("x", "xd").Quantize("xd", "y", "other_step").Output("y");
  EXPECT_EQ(CountOps(Lowered(b.Model(), 0), "QuantizeLinear"), 2);
}

// Between kernels there are bytes, which take a quarter of the memory of f32.
TEST(LowerQuantized, WindowsReadBytes) {
  for (const std::string window : {"Conv", "AveragePool"}) {
    QdqBuilder b;
    b.Input("x", {1, 16, 8, 8});
    b.Quantize("x", "xd").Weights("w", {16, 1, 3, 3}, 0);
    const std::string pads = Attr("pads", Ints{1, 1, 1, 1});
    b.Node("Conv", {"xd", "w"}, {"c"}, {Attr("group", 16), pads}).Node("Relu", {"c"}, {"r"});
    b.Quantize("r", "rd");
    if (window == "Conv") b.Node("Conv", {"rd", "w"}, {"d"}, {Attr("group", 16), pads});
    if (window == "AveragePool") b.Node("AveragePool", {"rd"}, {"d"}, {Attr("kernel_shape", Ints{3, 3}), pads});
    b.Quantize("d", "y").Output("y");
    const Plan plan = PlanOf(Lowered(b.Model()));
    ASSERT_EQ(plan.calls.size(), 3u) << window;
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(plan.tensors[plan.calls[i].arguments.back()].type.dtype, ir::DType::kUInt8) << window << i;
    }
  }
}

// No kernel that reads each element many times takes the step from bytes, and a kernel for it alone would be slower.
TEST(LowerQuantized, OtherReadersGetFloats) {
  QdqBuilder b;
  b.Input("x", {1, 8, 8, 8});
  b.Quantize("x", "xd").Floats("w", {64, 8, 3, 3}, RandomFloats(64 * 72, 2));
  b.Node("Relu", {"xd"}, {"r"});
  b.Quantize("r", "rd").Node("Conv", {"rd", "w"}, {"y"}).Output("y");
  EXPECT_THAT(CallLabels(PlanOf(Lowered(b.Model(), 1e-4f))), testing::ElementsAre("transpose", "conv2d", "transpose"));
}

}  // namespace
}  // namespace hone::graph
