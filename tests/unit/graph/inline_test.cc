// SPDX-License-Identifier: Apache-2.0
// Branches with a constant condition and model-local functions.
#include "compiler/graph/control_flow.h"
#include "compiler/graph/graph_edit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string IfModel(bool condition) {
  GraphBuilder then_branch, else_branch, b;
  then_branch.Node("Relu", {"x"}, {"t"}).Output("t");
  else_branch.Floats("two", {}, {2}).Node("Mul", {"x", "two"}, {"t"}).Output("t");
  b.Input("x", {3}).Initializer(Tensor<uint8_t>("c", kBool, {}, {condition}));
  b.Node("If", {"c"}, {"t"},
         {GraphAttr("then_branch", then_branch.bytes()), GraphAttr("else_branch", else_branch.bytes())});
  b.Node("Abs", {"t"}, {"y"}).Output("y");
  return b.Model();
}

TEST(Inline, ConstantConditionChoosesTheBranch) {
  EXPECT_THAT(Ops(Import(IfModel(true))), ElementsAre("Relu", "Abs"));
  EXPECT_THAT(Ops(Import(IfModel(false))), ElementsAre("Mul", "Abs"));
}

// A model with an If: `then_branch` if the condition is true, Abs otherwise.
std::string ModelWithBranch(bool condition, const std::string& then_branch, GraphBuilder b) {
  GraphBuilder other;
  other.Node("Abs", {"x"}, {"t"}).Output("t");
  b.Input("x", {3}).Initializer(Tensor<uint8_t>("c", kBool, {}, {condition}));
  b.Node("If", {"c"}, {"y"}, {GraphAttr("then_branch", then_branch), GraphAttr("else_branch", other.bytes())});
  return b.Output("y").Model();
}

TEST(Inline, InputsOfTheOtherBranchAreNotChecked) {
  GraphBuilder branch, b;
  branch.Node("Relu", {"v"}, {"t"}).Output("t");
  b.Node("NoSuchOperator", {"x"}, {"u"}).Node("Relu", {"u"}, {"v"});
  EXPECT_THAT(Ops(Import(ModelWithBranch(false, branch.bytes(), b))), ElementsAre("Abs"));
  EXPECT_THAT(std::string(ImportError(ModelWithBranch(true, branch.bytes(), b)).message()),
              HasSubstr("node 'node_of_u' (NoSuchOperator): the operator is not supported"));
}

TEST(Inline, TheOtherBranchMayBeUnreadable) {
  GraphBuilder branch;
  branch.Input("s", {1}, kString).Node("Relu", {"x"}, {"t"}).Output("t");
  EXPECT_THAT(Ops(Import(ModelWithBranch(false, branch.bytes(), {}))), ElementsAre("Abs"));
  EXPECT_THAT(std::string(ImportError(ModelWithBranch(true, branch.bytes(), {})).message()),
              HasSubstr("node 'node_of_y' (If): input 's': string tensors are not supported"));
}

// The sum of 90000 numbers exceeds the work that import does without need.
TEST(Inline, ConditionFromALargeConstant) {
  GraphBuilder then_branch, else_branch, b;
  then_branch.Node("Relu", {"x"}, {"t"}).Output("t");
  else_branch.Node("Abs", {"x"}, {"t"}).Output("t");
  b.Input("x", {3}).Ints("shape", {300, 300}).Node("ConstantOfShape", {"shape"}, {"zeros"});
  b.Node("ReduceSum", {"zeros"}, {"sum"}, {Attr("keepdims", 0)}).Node("Cast", {"sum"}, {"c"}, {Attr("to", kBool)});
  b.Node("If", {"c"}, {"y"},
         {GraphAttr("then_branch", then_branch.bytes()), GraphAttr("else_branch", else_branch.bytes())});
  b.Output("y");
  EXPECT_THAT(Ops(Import(b.Model())), ElementsAre("Abs"));
}

TEST(Inline, ConditionKnownOnlyAtRunTime) {
  GraphBuilder branch, b;
  branch.Node("Relu", {"x"}, {"t"}).Output("t");
  b.Input("x", {3}).Input("c", {1}, kBool);
  b.Node("If", {"c"}, {"y"}, {GraphAttr("then_branch", branch.bytes()), GraphAttr("else_branch", branch.bytes())});
  b.Output("y");
  const Graph graph = Import(b.Model());
  EXPECT_THAT(Ops(graph), ElementsAre("Reshape", "If"));  // the condition becomes a scalar
  const Graph& then_graph = BodyOf(graph.nodes.back(), "then");
  EXPECT_THAT(Ops(then_graph), ElementsAre("Relu"));
  EXPECT_EQ(then_graph.inputs.size(), 1u) << "x is captured";
}

TEST(Inline, BranchThatDoesNotMakeItsOutput) {
  GraphBuilder branch, b;
  branch.Node("Relu", {"x"}, {"t"}).Output("u");
  b.Input("x", {3}).Initializer(Tensor<uint8_t>("c", kBool, {}, {1}));
  b.Node("If", {"c"}, {"y"}, {GraphAttr("then_branch", branch.bytes()), GraphAttr("else_branch", branch.bytes())});
  b.Output("y");
  EXPECT_FALSE(ImportError(b.Model()).ok());
}

TEST(Inline, FunctionsWithAttributesAndDefaults) {
  const std::string leaky = SerializeFunction(
      "Leaky", {"a"}, "b", {SerializeNode("LeakyRelu", {"a"}, {"b"}, {ReferenceAttr("alpha", "slope", 1)})},
      Attr("slope", 0.5f));
  GraphBuilder b;
  b.Input("x", {3}).Node("Leaky", {"x"}, {"u"}, {Attr("slope", 0.25f)}, "local");
  b.Node("Leaky", {"u"}, {"y"}, {}, "local").Output("y");
  const Graph graph = Import(b.Model(17, {leaky}));
  ASSERT_THAT(Ops(graph), ElementsAre("LeakyRelu", "LeakyRelu"));
  EXPECT_EQ(FloatAttribute(graph.nodes[0], "alpha", 0), 0.25);
  EXPECT_EQ(FloatAttribute(graph.nodes[1], "alpha", 0), 0.5);
}

TEST(Inline, OverloadsAreToldApart) {
  // Field `overload` of FunctionProto is 13, of NodeProto 8.
  const std::string first = SerializeFunction("F", {"a"}, "b", {SerializeNode("Relu", {"a"}, {"b"})});
  const std::string second =
      SerializeFunction("F", {"a"}, "b", {SerializeNode("Abs", {"a"}, {"b"})}) + Message().Text(13, "second").bytes();
  const std::string both =
      SerializeFunction("Both", {"a"}, "c",
                        {SerializeNode("F", {"a"}, {"b"}, {}, "local"),
                         SerializeNode("F", {"b"}, {"c"}, {}, "local") + Message().Text(8, "second").bytes()});
  GraphBuilder b;
  b.Input("x", {3}).Node("Both", {"x"}, {"y"}, {}, "local").Output("y");
  EXPECT_THAT(Ops(Import(b.Model(17, {first, second, both}))), ElementsAre("Relu", "Abs"));
  EXPECT_THAT(std::string(ImportError(b.Model(17, {first, second, both, second})).message()),
              HasSubstr("function 'F' is defined twice"));
}

TEST(Inline, FunctionsCallFunctionsWithOptionalInputsLeftOut) {
  const std::string inner =
      SerializeFunction("Limit", {"a", "low", "high"}, "b", {SerializeNode("Clip", {"a", "low", "high"}, {"b"})});
  const std::string outer =
      SerializeFunction("Outer", {"a", "high"}, "b", {SerializeNode("Limit", {"a", "", "high"}, {"b"}, {}, "local")});
  GraphBuilder b;
  b.Input("x", {3}).Floats("one", {}, {1}).Node("Outer", {"x", "one"}, {"y"}, {}, "local").Output("y");
  EXPECT_THAT(Ops(Import(b.Model(17, {inner, outer}))), ElementsAre("Clip"));
}

// Ten functions that each call the one before twice; the innermost has a thousand constants and no node of the graph.
TEST(Inline, NodesOfRepeatedCallsAreCounted) {
  std::vector<std::string> constants;
  for (int i = 0; i < 1000; ++i) {
    constants.push_back(SerializeNode("Constant", {}, {"c" + std::to_string(i)}, {Attr("value_int", i)}));
  }
  std::vector<std::string> functions = {SerializeFunction("F0", {}, "c0", constants)};
  for (int i = 1; i <= 10; ++i) {
    const std::string before = "F" + std::to_string(i - 1);
    functions.push_back(
        SerializeFunction("F" + std::to_string(i), {}, "sum",
                          {SerializeNode(before, {}, {"a"}, {}, "local"), SerializeNode(before, {}, {"b"}, {}, "local"),
                           SerializeNode("Add", {"a", "b"}, {"sum"})}));
  }
  GraphBuilder b;
  b.Node("F10", {}, {"y"}, {}, "local").Output("y");
  EXPECT_THAT(std::string(ImportError(b.Model(17, functions)).message()), HasSubstr("more than 1000000 nodes"));
}

TEST(Inline, ValuesOfRepeatedBodiesHaveNamesOfTheirOwn) {
  const std::string twice =
      SerializeFunction("Twice", {"a"}, "c", {SerializeNode("Relu", {"a"}, {"b"}), SerializeNode("Abs", {"b"}, {"c"})});
  GraphBuilder b;
  b.Input("x", {3}).Node("Relu", {"x"}, {"b.1"});
  b.Node("Twice", {"b.1"}, {"u"}, {}, "local").Node("Twice", {"u"}, {"v"}, {}, "local");
  b.Node("Twice", {"v"}, {"y"}, {}, "local").Output("y");
  const Graph graph = Import(b.Model(17, {twice}));
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(graph.values[node.outputs[0]].name);
  EXPECT_THAT(names, ElementsAre("b.1", "b", "c", "b.2", "c.1", "b.3", "c.2"));
}

TEST(Inline, FunctionThatCallsItself) {
  const std::string endless = SerializeFunction("F", {"a"}, "b", {SerializeNode("F", {"a"}, {"b"}, {}, "local")});
  GraphBuilder b;
  b.Input("x", {3}).Node("F", {"x"}, {"y"}, {}, "local").Output("y");
  EXPECT_THAT(std::string(ImportError(b.Model(17, {endless})).message()),
              HasSubstr("in function F: node 'node_of_b' (F): the function calls itself"));
}

TEST(Inline, FunctionsThatCallEachOther) {
  const std::string there = SerializeFunction("F", {"a"}, "b", {SerializeNode("G", {"a"}, {"b"}, {}, "local")});
  const std::string back = SerializeFunction("G", {"a"}, "b", {SerializeNode("F", {"a"}, {"b"}, {}, "local")});
  GraphBuilder b;
  b.Input("x", {3}).Node("F", {"x"}, {"y"}, {}, "local").Output("y");
  EXPECT_THAT(std::string(ImportError(b.Model(17, {there, back})).message()),
              HasSubstr("in function F: in function G: node 'node_of_b' (F): the function calls itself"));
}

}  // namespace
}  // namespace hone::graph
