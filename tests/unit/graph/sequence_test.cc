// SPDX-License-Identifier: Apache-2.0
// Sequences and optional values.
#include <cstring>

#include "compiler/graph/graph_edit.h"
#include "compiler/graph/interpret_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The f32 outputs of a model, one after the other, for these inputs.
std::vector<float> Compute(const GraphBuilder& b, const std::vector<std::vector<float>>& inputs,
                           const ImportOptions& options = {}) {
  const Plan plan = PlanOf(Import(b.Model(17), options));
  std::vector<ir::Bytes> bytes;
  for (const std::vector<float>& input : inputs) {
    const auto* first = reinterpret_cast<const std::byte*>(input.data());
    bytes.emplace_back(first, first + input.size() * sizeof(float));
  }
  const absl::StatusOr<std::vector<ir::Bytes>> outputs = InterpretPlan(plan, bytes);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  std::vector<float> numbers;
  for (size_t i = 0; outputs.ok() && i < outputs->size(); ++i) {
    const auto* first = reinterpret_cast<const float*>((*outputs)[i].data());
    numbers.insert(numbers.end(), first, first + (*outputs)[i].size() / sizeof(float));
  }
  return numbers;
}

std::string ErrorWith(const GraphBuilder& b, const ImportOptions& options = {}) {
  return std::string(ImportError(b.Model(17), options).message());
}

// A message with a type that has no tensors: field 4 of TypeProto is a sequence, field 9 an optional value.
std::string ContainerInput(const std::string& name, int field, int dtype) {
  const Message tensor = Message().Text(1, Message().Int(1, dtype).bytes());
  return Message()
      .Text(1, name)
      .Text(2, Message().Text(field, Message().Text(1, tensor.bytes()).bytes()).bytes())
      .bytes();
}

TEST(Sequence, ListsOfTensorsLeaveNoNodes) {
  GraphBuilder b;
  b.Input("x", {2}).Input("y", {2}).Ints("first", {0}).Initializer(Tensor<int64_t>("last", kInt64, {}, {-1}));
  b.Node("SequenceEmpty", {}, {"empty"}).Node("SequenceInsert", {"empty", "x"}, {"one"});
  b.Node("SequenceInsert", {"one", "y", "first"}, {"two"});  // y, x
  b.Node("SequenceAt", {"two", "last"}, {"a"}).Node("SequenceErase", {"two", "last"}, {"rest"});
  b.Node("SequenceAt", {"rest", "last"}, {"b"}).Node("Sub", {"a", "b"}, {"z"}).Output("z");
  EXPECT_THAT(Ops(Import(b.Model())), ElementsAre("Sub"));
  EXPECT_THAT(Compute(b, {{5, 6}, {1, 2}}), ElementsAre(4, 4));
}

TEST(Sequence, SplitAndConcatAreInverse) {
  GraphBuilder b;
  b.Input("x", {5, 2}).Initializer(Tensor<int64_t>("two", kInt64, {}, {2}));
  b.Node("SplitToSequence", {"x", "two"}, {"parts"}).Node("ConcatFromSequence", {"parts"}, {"y"}, {Attr("axis", 0)});
  b.Node("SequenceLength", {"parts"}, {"count"}).Node("Cast", {"count"}, {"n"}, {Attr("to", kFloat)});
  b.Output("y").Output("n");
  EXPECT_THAT(Compute(b, {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 3));

  GraphBuilder stacked;
  stacked.Input("x", {2, 3}).Node("SplitToSequence", {"x"}, {"parts"}, {Attr("axis", 1), Attr("keepdims", 0)});
  stacked.Node("ConcatFromSequence", {"parts"}, {"y"}, {Attr("axis", 0), Attr("new_axis", 1)}).Output("y");
  EXPECT_THAT(Compute(stacked, {{1, 2, 3, 4, 5, 6}}), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Sequence, VeryManyPartsAreRefused) {
  GraphBuilder ones;
  ones.Input("x", {65'537}).Node("SplitToSequence", {"x"}, {"parts"});
  ones.Node("ConcatFromSequence", {"parts"}, {"y"}, {Attr("axis", 0)}).Output("y");
  EXPECT_THAT(ErrorWith(ones), HasSubstr("the sequence would have 65537 elements; at most 65536 are supported"));

  GraphBuilder twos;
  twos.Input("x", {131'073}).Initializer(Tensor<int64_t>("two", kInt64, {}, {2}));
  twos.Node("SplitToSequence", {"x", "two"}, {"parts"});
  twos.Node("ConcatFromSequence", {"parts"}, {"y"}, {Attr("axis", 0)}).Output("y");
  EXPECT_THAT(ErrorWith(twos), HasSubstr("the sequence would have 65537 elements; at most 65536 are supported"));
}

TEST(Sequence, APositionThatARunKnowsSelectsAmongEqualTypes) {
  GraphBuilder b;
  b.Input("x", {2}).Input("y", {2}).Input("at", {1});
  b.Node("Cast", {"at"}, {"place"}, {Attr("to", kInt64)}).Node("SequenceConstruct", {"x", "y"}, {"two"});
  b.Node("SequenceAt", {"two", "place"}, {"z"}).Output("z");
  EXPECT_THAT(Compute(b, {{1, 2}, {3, 4}, {1}}), ElementsAre(3, 4));
}

TEST(Sequence, OptionalValuesAreKnown) {
  GraphBuilder b;
  b.Input("x", {1}).Node("Optional", {"x"}, {"some"}).Node("Optional", {}, {"none"});
  b.Node("OptionalHasElement", {"some"}, {"p"}).Node("OptionalHasElement", {"none"}, {"q"});
  b.Node("OptionalGetElement", {"some"}, {"content"});
  b.Node("Cast", {"p"}, {"a"}, {Attr("to", kFloat)}).Node("Cast", {"q"}, {"c"}, {Attr("to", kFloat)});
  b.Output("a").Output("c").Output("content");
  EXPECT_THAT(Compute(b, {{7}}), ElementsAre(1, 0, 7));
  b.Node("OptionalGetElement", {"none"}, {"nothing"}).Node("Relu", {"nothing"}, {"z"}).Output("z");
  EXPECT_THAT(ErrorWith(b), HasSubstr("its optional input has no element"));
}

TEST(Sequence, MapRunsItsBodyForEachElement) {
  GraphBuilder body, b;
  body.Input("e", {2}).Input("t", {2}).Node("Add", {"e", "t"}, {"sum"}).Node("Mul", {"sum", "outside"}, {"r"});
  body.Output("r");
  b.Input("x", {2}).Input("y", {2}).Input("t", {2}).Floats("outside", {}, {10});
  b.Node("SequenceConstruct", {"x", "y"}, {"two"});
  b.Node("SequenceMap", {"two", "t"}, {"mapped"}, {GraphAttr("body", body.bytes())}).Output("mapped");
  const Graph graph = Import(b.Model());
  EXPECT_THAT(graph.output_names, ElementsAre("mapped.0", "mapped.1")) << "an output for each element";
  EXPECT_THAT(Compute(b, {{1, 2}, {3, 4}, {1, 1}}), ElementsAre(20, 30, 40, 50));
}

TEST(Sequence, InputsAreTheirElements) {
  GraphBuilder b;
  b.Node("ConcatFromSequence", {"seq"}, {"y"}, {Attr("axis", 0)}).Output("y");
  const std::string graph = b.bytes() + Message().Text(11, ContainerInput("seq", 4, kFloat)).bytes();
  const auto model = [&] { return Message().Int(1, 8).Text(7, graph).Text(8, SerializeOpset("", 17)).bytes(); };
  EXPECT_THAT(std::string(ImportError(model()).message()),
              HasSubstr("input 'seq': it is a sequence, whose number of elements must be known; give their shapes with "
                        "--shape seq.0=2,3 --shape seq.1=2,3"));
  ImportOptions options;
  options.shapes["seq.0"] = {DimRange(1)};
  options.shapes["seq.1"] = {DimRange(2)};
  const Graph imported = Import(model(), options);
  ASSERT_EQ(imported.inputs.size(), 2u);
  EXPECT_EQ(imported.values[imported.inputs[1]].name, "seq.1");
  EXPECT_EQ(imported.values[imported.outputs[0]].type.shape[0], ir::Size(3));
  options.shapes["other.0"] = {DimRange(1)};
  EXPECT_THAT(std::string(ImportError(model(), options).message()), HasSubstr("the model has no input 'other.0'"));
}

// A loop that appends x * step to a sequence.
GraphBuilder Appending(bool reads_elsewhere = false) {
  GraphBuilder body;
  body.Input("step", {}, kInt64).Input("go", {}, kBool).Input("list", {}).Node("Identity", {"go"}, {"goes_on"});
  body.Node("Cast", {"step"}, {"s"}, {Attr("to", kFloat)}).Node("Mul", {"x", "s"}, {"row"});
  if (reads_elsewhere) body.Node("SequenceLength", {"list"}, {"n"}).Node("Identity", {"n"}, {"length"});
  body.Node("SequenceInsert", {"list", "row"}, {"longer"}).Output("goes_on").Output("longer");
  if (reads_elsewhere) body.Output("length");
  GraphBuilder b;
  b.Input("x", {2}).Node("SequenceEmpty", {}, {"empty"});
  b.Node("Loop", {"steps", "", "empty"}, {"list", reads_elsewhere ? "lengths" : ""}, {GraphAttr("body", body.bytes())});
  return b;
}

TEST(Sequence, LoopsWithAKnownNumberOfStepsAreUnrolled) {
  GraphBuilder b = Appending(true);
  b.Ints("steps", {3}).Node("ConcatFromSequence", {"list"}, {"y"}, {Attr("axis", 0)}).Output("y");
  b.Node("Cast", {"lengths"}, {"n"}, {Attr("to", kFloat)}).Output("n");
  EXPECT_EQ(CountOps(Import(b.Model()), "Loop"), 0);
  EXPECT_THAT(Compute(b, {{1, 2}}), ElementsAre(0, 0, 1, 2, 2, 4, 0, 1, 2));
}

TEST(Sequence, LoopsWhoseNumberOfStepsARunKnowsStackTheRows) {
  GraphBuilder b = Appending();
  b.Input("count", {1}).Node("Cast", {"count"}, {"steps"}, {Attr("to", kInt64)});
  b.Node("ConcatFromSequence", {"list"}, {"y"}, {Attr("axis", 0), Attr("new_axis", 1)});
  b.Node("ConcatFromSequence", {"list"}, {"flat"}, {Attr("axis", 0)});
  b.Node("SequenceLength", {"list"}, {"length"}).Node("Cast", {"length"}, {"n"}, {Attr("to", kFloat)});
  b.Ints("last", {1}).Node("SequenceAt", {"list", "last"}, {"second"});
  b.Output("y").Output("flat").Output("n").Output("second");
  const Graph graph = Import(b.Model());
  EXPECT_EQ(CountOps(graph, "Loop"), 1);
  EXPECT_THAT(Compute(b, {{1, 2}, {3}}), ElementsAre(0, 0, 1, 2, 2, 4, 0, 0, 1, 2, 2, 4, 3, 1, 2));
}

TEST(Sequence, WhatOnlyARunKnowsIsRefused) {
  GraphBuilder b = Appending(true);
  b.Input("count", {1}).Node("Cast", {"count"}, {"steps"}, {Attr("to", kInt64)});
  b.Node("ConcatFromSequence", {"list"}, {"y"}, {Attr("axis", 0)}).Output("y");
  b.Node("Cast", {"lengths"}, {"n"}, {Attr("to", kFloat)}).Output("n");
  EXPECT_THAT(ErrorWith(b), HasSubstr("state 0 is a sequence, and the number of steps is not known"));

  GraphBuilder output = Appending();
  output.Input("count", {1}).Node("Cast", {"count"}, {"steps"}, {Attr("to", kInt64)}).Output("list");
  EXPECT_THAT(ErrorWith(output), HasSubstr("output 'list' is a sequence whose length a run decides"));

  GraphBuilder other;
  other.Input("x", {2}).Node("SequenceConstruct", {"x"}, {"list"}).Node("Relu", {"list"}, {"y"}).Output("y");
  EXPECT_THAT(ErrorWith(other), HasSubstr("input 0 of Relu is a sequence or optional value"));
}

}  // namespace
}  // namespace hone::graph
