// SPDX-License-Identifier: Apache-2.0
// Files that no exporter writes. Each must yield an error, without a crash and without an allocation for missing data.
#include <cstring>

#include "compiler/graph/interpret_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::HasSubstr;

void ExpectInvalid(const std::string& model, const std::string& text) {
  const absl::Status status = ImportError(model);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

std::string SmallModel() {
  GraphBuilder b;
  b.Input("x", {1, 2, 5, 5}).Floats("w", {3, 2, 3, 3}, RandomFloats(54, 1)).Floats("b", {3}, {1, 2, 3});
  b.Ints("target", {1, -1});
  b.Node("Conv", {"x", "w", "b"}, {"c"}, {Attr("pads", std::vector<int64_t>{1, 1, 1, 1})});
  b.Node("Relu", {"c"}, {"r"}).Node("Reshape", {"r", "target"}, {"flat"});
  b.Node("Softmax", {"flat"}, {"y"}, {Attr("axis", 1)}).Output("y");
  return b.Model();
}

TEST(DamagedFile, EveryCutIsAnErrorOrAModel) {
  const std::string model = SmallModel();
  ASSERT_TRUE(ImportError(model).ok());
  for (size_t size = 0; size < model.size(); ++size) {
    const absl::Status status = ImportError(model.substr(0, size));
    EXPECT_NE(status.code(), absl::StatusCode::kInternal) << status << " at " << size;
  }
  ExpectInvalid(model.substr(0, model.size() / 2), "damaged, cut off");
  ExpectInvalid("", "no graph with outputs");
}

TEST(DamagedFile, EveryFlippedBitIsAnErrorOrAModel) {
  const std::string model = SmallModel();
  for (size_t i = 0; i < model.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = model;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      const absl::Status status = ImportError(flipped);
      EXPECT_NE(status.code(), absl::StatusCode::kInternal) << status << " at " << i << "." << bit;
    }
  }
}

TEST(DamagedFile, Cycle) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Add", {"x", "b"}, {"a"}).Node("Relu", {"a"}, {"b"}).Output("b");
  ExpectInvalid(b.Model(), "the graph has a cycle");
}

TEST(DamagedFile, NodeThatReadsItself) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Add", {"x", "a"}, {"a"}).Output("a");
  ExpectInvalid(b.Model(), "node 'node_of_a' (Add) depends on itself");
}

TEST(DamagedFile, UndefinedValue) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Add", {"x", "ghost"}, {"y"}).Output("y");
  ExpectInvalid(b.Model(), "node 'node_of_y' (Add): it reads 'ghost', which no node, input or initializer defines");
  b.Node("Relu", {"spirit"}, {"z"}).Output("z");
  ExpectInvalid(b.Model(), "2 problems:");
  ExpectInvalid(b.Model(), "node 'node_of_z' (Relu): it reads 'spirit'");
}

TEST(DamagedFile, UndefinedOutput) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("z");
  ExpectInvalid(b.Model(), "output 'z' is not defined");
}

TEST(DamagedFile, NodeWithoutOutputs) {
  GraphBuilder none, unnamed;
  none.Input("x", {2}).Node("Shape", {"x"}, {}).Node("Relu", {"x"}, {"y"}).Output("y");
  ExpectInvalid(none.Model(), "the node has no output");
  unnamed.Input("x", {2}).Node("Shape", {"x"}, {""}).Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_TRUE(ImportError(unnamed.Model()).ok());
}

TEST(DamagedFile, ValuesDefinedTwice) {
  GraphBuilder twice;
  twice.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Node("Abs", {"x"}, {"y"}).Output("y");
  ExpectInvalid(twice.Model(), "value 'y' is defined twice");
  GraphBuilder input;
  input.Input("x", {2}).Node("Relu", {"x"}, {"x"}).Output("x");
  ExpectInvalid(input.Model(), "'x' is defined twice");
  GraphBuilder tensors;
  tensors.Floats("w", {1}, {1}).Floats("w", {1}, {2}).Output("w");
  ExpectInvalid(tensors.Model(), "'w' is defined twice");
}

TEST(DamagedFile, TensorSizesMustAgree) {
  const auto with = [](const std::string& tensor) {
    GraphBuilder b;
    b.Initializer(tensor).Output("w");
    return b.Model();
  };
  ExpectInvalid(with(TensorOfBytes("w", kFloat, {3}, "12345678")),
                "tensor 'w': the shape needs 12 bytes, but the file has 8");
  ExpectInvalid(with(TensorOfBytes("w", kFloat, {int64_t{1} << 30}, "1234")), "but the file has 4");
  ExpectInvalid(with(TensorOfBytes("w", kFloat, {int64_t{1} << 40}, "1234")),
                "tensor 'w': f32[1099511627776] would take");
  ExpectInvalid(with(TensorOfBytes("w", kFloat, {int64_t{1} << 40, int64_t{1} << 40}, "1234")), "more than 1 TiB");
  ExpectInvalid(with(TensorOfBytes("w", kFloat, {0, int64_t{1} << 40}, "")), "more than 1 TiB");
  ExpectInvalid(with(TensorOfBytes("w", kFloat, {-1}, "1234")), "dimension -1 is negative");
  ExpectInvalid(with(TensorOfBytes("w", kBool, {1}, "\x02")), "neither 0 nor 1");
  ExpectInvalid(with(TensorOfBytes("w", 0, {1}, "1234")), "element type is missing");
  Message typed;
  typed.Int(1, int64_t{1} << 37).Int(2, kInt64).Text(8, "w").Int(7, 1);
  ExpectInvalid(with(typed.bytes()), "elements, but the file has 1");
}

TEST(DamagedFile, NodesWithoutANameAreNamedByTheirPlace) {
  const std::string relu = SerializeNode("Relu", {"c"}, {"y"});
  const std::string constant = Message().Text(2, "c").Text(4, "Constant").Text(5, TensorAttr("value", "")).bytes();
  Message graph, model;
  graph.Text(1, relu).Text(1, constant).Text(12, Message().Text(1, "y").bytes());
  model.Int(1, 8).Text(8, SerializeOpset("", 17)).Text(7, graph.bytes());
  ExpectInvalid(model.bytes(), "node 'Constant_1' (Constant): tensor '': the element type is missing");
}

TEST(DamagedFile, HugeResultsAreRefused) {
  GraphBuilder b;
  b.Input("x", {1})
      .Ints("shape", {int64_t{1} << 30, int64_t{1} << 30, 8})
      .Node("Expand", {"x", "shape"}, {"y"})
      .Output("y");
  ExpectInvalid(b.Model(), "more than 1 TiB");
}

TEST(DamagedFile, HugeInputsAreRefused) {
  GraphBuilder b;
  b.Input("x", Dims({Dim(int64_t{1} << 40), Dim(int64_t{1} << 40)})).Node("Size", {"x"}, {"y"}).Output("y");
  ExpectInvalid(b.Model(), "input 'x': f32[1099511627776,1099511627776] would take more than 1 TiB");
}

TEST(DamagedFile, NotAModel) {
  ExpectInvalid("PK\x03\x04 this is a zip file", "");
  ExpectInvalid(std::string(1000, '\xff'), "damaged");
  GraphBuilder b;
  b.Input("x", {1}).Node("Relu", {"x"}, {"y"});
  ExpectInvalid(b.Model(), "no graph with outputs");
}

TEST(DamagedFile, DeepNestingEnds) {
  std::string branch;
  GraphBuilder leaf;
  leaf.Floats("v", {1}, {1}).Output("v");
  branch = leaf.bytes();
  for (int i = 0; i < 200; ++i) {
    GraphBuilder b;
    b.Initializer(Tensor<uint8_t>("c" + std::to_string(i), kBool, {}, {1}));
    b.Node("If", {"c" + std::to_string(i)}, {"o" + std::to_string(i)},
           {GraphAttr("then_branch", branch), GraphAttr("else_branch", leaf.bytes())});
    b.Output("o" + std::to_string(i));
    branch = b.bytes();
  }
  GraphBuilder b;
  b.Initializer(Tensor<uint8_t>("c", kBool, {}, {1}));
  b.Node("If", {"c"}, {"y"}, {GraphAttr("then_branch", branch), GraphAttr("else_branch", branch)}).Output("y");
  EXPECT_EQ(ImportError(b.Model()).code(), absl::StatusCode::kInvalidArgument);
}

TEST(DamagedFile, VeryManyInputsAreAPlan) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Sum", std::vector<std::string>(20'000, "x"), {"s"});
  b.Node("Max", std::vector<std::string>(20'000, "s"), {"m"}).Node("Mean", std::vector<std::string>(65, "m"), {"y"});
  const Plan plan = PlanOf(Import(b.Output("y").Model()));
  const std::vector<float> x = {1, -0.5f};
  ir::Bytes bytes(sizeof(float) * x.size());
  std::memcpy(bytes.data(), x.data(), bytes.size());
  const auto outputs = InterpretPlan(plan, {bytes});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  std::vector<float> y(2);
  std::memcpy(y.data(), (*outputs)[0].data(), bytes.size());
  EXPECT_THAT(y, testing::ElementsAre(20'000, -10'000));
}

}  // namespace
}  // namespace hone::graph
