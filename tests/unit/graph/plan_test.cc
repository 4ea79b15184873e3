// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/plan.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/temporary_folder.h"
#include "compiler/graph/interpret_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ir::Bytes Bytes(const std::vector<float>& values) {
  ir::Bytes bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> Floats(const ir::Bytes& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(Plan, RunsFromTheFile) {
  GraphBuilder b;
  b.Input("x", {2, 3}).Floats("w", {3, 2}, {1, 2, 3, 4, 5, 6}).Floats("c", {2}, {10, 20});
  b.Node("Gemm", {"x", "w", "c"}, {"g"}).Node("Relu", {"g"}, {"y"}).Output("y");
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder / "model.onnx";
  std::ofstream(path) << b.Model();
  const absl::StatusOr<Plan> plan = BuildPlan(path, {}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto outputs = InterpretPlan(*plan, {Bytes({1, 0, 0, 0, 1, -9})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(Floats((*outputs)[0]), ElementsAre(11, 22, 0, 0));
}

TEST(Plan, ErrorsNameTheFile) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder / "bad.onnx";
  std::ofstream(path) << "not a model";
  const absl::Status status = BuildPlan(path, {}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

TEST(Plan, EqualKernelsShareOneWorkload) {
  GraphBuilder b;
  b.Input("x", {4, 8}).Floats("w1", {8, 8}, RandomFloats(64, 1)).Floats("w2", {8, 8}, RandomFloats(64, 2));
  b.Node("MatMul", {"x", "w1"}, {"a"})
      .Node("Relu", {"a"}, {"r"})
      .Node("MatMul", {"r", "w2"}, {"c"})
      .Node("Relu", {"c"}, {"y"})
      .Output("y");
  const Plan plan = PlanOf(Import(b.Model()));
  EXPECT_EQ(plan.workloads.size(), 1u);
  ASSERT_EQ(plan.calls.size(), 2u);
  EXPECT_NE(plan.calls[0].arguments[1], plan.calls[1].arguments[1]);
  EXPECT_EQ(plan.workloads[0].params[1].kind, ir::ParamKind::kConstant);
}

TEST(Plan, ArgumentsFollowTheCanonicalParams) {
  GraphBuilder b;
  b.Input("late", {3}).Input("early", {3}).Node("Sub", {"early", "late"}, {"y"}).Output("y");
  const Plan plan = PlanOf(Import(b.Model()));
  const auto outputs = InterpretPlan(plan, {Bytes({1, 2, 3}), Bytes({10, 20, 30})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(Floats((*outputs)[0]), ElementsAre(9, 18, 27));
}

TEST(Plan, SingleNumbersAreImmediates) {
  GraphBuilder b;
  b.Input("x", {4})
      .Floats("zero", {}, {0})
      .Floats("six", {}, {6})
      .Node("Clip", {"x", "zero", "six"}, {"y"})
      .Output("y");
  const Plan plan = PlanOf(Import(b.Model()));
  ASSERT_EQ(plan.workloads.size(), 1u);
  EXPECT_EQ(plan.workloads[0].params.size(), 1u);
  const auto outputs = InterpretPlan(plan, {Bytes({-1, 3, 7, 6})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(Floats((*outputs)[0]), ElementsAre(0, 3, 6, 6));
}

TEST(Plan, LayersThatDifferInANumberShareOneWorkload) {
  GraphBuilder b;
  b.Input("x", {4, 8}).Floats("w", {8, 8}, RandomFloats(64, 1));
  b.Floats("first", {1}, {0.25f}).Floats("second", {1}, {0.125f}).Floats("scale", {}, {0.5f});
  b.Node("MatMul", {"x", "w"}, {"a"}).Node("PRelu", {"a", "first"}, {"p"}).Node("Mul", {"p", "scale"}, {"q"});
  b.Node("MatMul", {"q", "w"}, {"c"}).Node("PRelu", {"c", "second"}, {"d"}).Node("Mul", {"d", "scale"}, {"y"});
  const Plan plan = PlanOf(Import(b.Output("y").Model()));
  ASSERT_EQ(plan.workloads.size(), 1u);
  EXPECT_EQ(plan.workloads[0].params.size(), 3u) << "the slope is a param, the scale a number of the kernel";
  ASSERT_EQ(plan.calls.size(), 2u);
  const std::vector<float> input = RandomFloats(32, 2), weights = RandomFloats(64, 1);
  const auto outputs = InterpretPlan(plan, {Bytes(input)});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  std::vector<float> layer = input;
  for (const float slope : {0.25f, 0.125f}) {
    std::vector<float> next(32, 0);
    for (size_t i = 0; i < 32; ++i) {
      for (size_t k = 0; k < 8; ++k) next[i] += layer[i / 8 * 8 + k] * weights[k * 8 + i % 8];
    }
    for (float& number : next) number = (number < 0 ? number * slope : number) * 0.5f;
    layer = next;
  }
  const std::vector<float> actual = Floats((*outputs)[0]);
  for (size_t i = 0; i < 32; ++i) EXPECT_NEAR(actual[i], layer[i], 1e-5) << "at " << i;
}

TEST(Plan, QuantizedLayersShareOneWorkload) {
  GraphBuilder b;
  b.Input("x", {4, 8}, kUInt8).Floats("s", {}, {0.5f}).Floats("t", {}, {0.25f}).Floats("u", {}, {0.125f});
  b.Initializer(Tensor<int8_t>("w", kInt8, {8, 8}, std::vector<int8_t>(64, 1)));
  b.Initializer(Tensor<int8_t>("none", kInt8, {}, {0})).Initializer(Tensor<uint8_t>("zero", kUInt8, {}, {0}));
  b.Node("QLinearMatMul", {"x", "s", "zero", "w", "u", "none", "t", "zero"}, {"a"});
  b.Node("QLinearMatMul", {"a", "t", "zero", "w", "s", "none", "u", "zero"}, {"y"});
  const Plan plan = PlanOf(Import(b.Output("y").Model()));
  EXPECT_EQ(plan.workloads.size(), 1u);
  EXPECT_EQ(plan.calls.size(), 2u);
}

// The model adds the residual as the first or as the second operand.
TEST(Plan, SumsInEitherOrderShareOneWorkload) {
  GraphBuilder b;
  b.Input("x", {4, 8}).Input("residual", {4, 8}).Floats("w", {8, 8}, RandomFloats(64, 1));
  b.Node("MatMul", {"x", "w"}, {"a"}).Node("Add", {"a", "residual"}, {"c"});
  b.Node("MatMul", {"c", "w"}, {"d"}).Node("Add", {"residual", "d"}, {"y"});
  const Plan plan = PlanOf(Import(b.Output("y").Model()));
  EXPECT_EQ(plan.workloads.size(), 1u);
  EXPECT_EQ(plan.calls.size(), 2u);
}

// PyTorch writes the indices of a pool like this. A window of one element does not need the maximum.
TEST(Plan, KernelsHaveNoStageThatNothingReads) {
  GraphBuilder b;
  b.Input("x", {1, 2, 4, 4});
  b.Node("MaxPool", {"x"}, {"", "at"}, {Attr("kernel_shape", std::vector<int64_t>{1, 1})}).Output("at");
  const Plan plan = PlanOf(Optimize(b.Model()));
  ASSERT_EQ(plan.workloads.size(), 1u);
  EXPECT_EQ(plan.workloads[0].stages.size(), 1u);
  EXPECT_TRUE(plan.workloads[0].params.empty());
}

TEST(Plan, OutputsThatAreInputsConstantsOrTwice) {
  GraphBuilder b;
  b.Input("x", {2}).Floats("k", {2}, {5, 6}).Node("Exp", {"x"}, {"e"}).Node("Identity", {"e"}, {"twin"});
  b.Output("k").Output("e").Output("twin");
  const Plan plan = PlanOf(Optimize(b.Model()));
  ASSERT_EQ(plan.outputs.size(), 3u);
  std::vector<std::string> names;
  for (TensorId id : plan.outputs) names.push_back(plan.tensors[id].name);
  EXPECT_THAT(names, ElementsAre("k", "e", "twin"));
  const auto outputs = InterpretPlan(plan, {Bytes({0, 0})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(Floats((*outputs)[0]), ElementsAre(5, 6));
  EXPECT_THAT(Floats((*outputs)[2]), ElementsAre(1, 1));
}

TEST(Plan, ReshapesAreAliases) {
  GraphBuilder b;
  b.Input("x", {2, 3})
      .Ints("s", {6})
      .Ints("t", {3, 2})
      .Node("Reshape", {"x", "s"}, {"a"})
      .Node("Reshape", {"a", "t"}, {"y"})
      .Output("y");
  const Plan plan = PlanOf(Import(b.Model()));
  EXPECT_THAT(plan.calls, IsEmpty());
  const PlanTensor& y = plan.tensors[plan.outputs[0]];
  EXPECT_EQ(y.alias_of, plan.inputs[0]);
  EXPECT_THAT(y.type.shape, ElementsAre(3, 2));
}

// The cache, an input of the model, and its update, an output, may be one memory.
TEST(Plan, CallsThatWriteRowsOfAnInputAreUpdates) {
  GraphBuilder b;
  b.Input("cache", {1, 2, 8, 4}).Input("rows", {1, 2, 1, 4}).Input("start", {1}, kInt64);
  b.Node("Exp", {"rows"}, {"e"});
  b.Node("TensorScatter", {"cache", "e", "start"}, {"present"}).Output("present");
  b.Node("TensorScatter", {"present", "e", "start"}, {"again"}).Output("again");
  const Plan plan = PlanOf(Import(b.Model(24)));
  ASSERT_EQ(plan.updates.size(), 1u) << "the second one updates no input";
  const PlanUpdate& update = plan.updates[0];
  EXPECT_EQ(update.input, plan.inputs[0]);
  EXPECT_EQ(update.output, plan.outputs[0]);
  EXPECT_EQ(update.starts, plan.inputs[2]);
  EXPECT_EQ(update.axis, 2);
  EXPECT_EQ(plan.calls[static_cast<size_t>(update.call)].arguments.back(), update.output);
}

TEST(Plan, KernelsFitTheirTensors) {
  GraphBuilder b;
  b.Input("x", {4}).Node("Exp", {"x"}, {"y"}).Output("y");
  Graph graph = Import(b.Model());
  graph.values[graph.outputs[0]].type.shape = {3};
  EXPECT_DEATH(PlanOf(graph), "internal error");
}

TEST(Plan, MadeUpDataIsInRange) {
  GraphBuilder b;
  b.Input("table", {10, 4}).Input("ids", {3}, kInt64).Node("Gather", {"table", "ids"}, {"y"}).Output("y");
  const Plan plan = PlanOf(Import(b.Model()));
  for (const ir::Param& param : plan.workloads[0].params) {
    if (param.buffer->dtype != ir::DType::kInt64) continue;
    EXPECT_EQ(param.low, 0);
    EXPECT_LE(param.high, 10);
    EXPECT_GT(param.high, 1);
  }
}

TEST(InterpretPlan, ChecksItsInputs) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Exp", {"x"}, {"y"}).Output("y");
  const Plan plan = PlanOf(Import(b.Model()));
  EXPECT_THAT(std::string(InterpretPlan(plan, {}).status().message()), HasSubstr("has 1 inputs, 0 were given"));
  EXPECT_THAT(std::string(InterpretPlan(plan, {Bytes({1})}).status().message()),
              HasSubstr("input 'x' takes 8 bytes, 4"));
}

}  // namespace
}  // namespace hone::graph
