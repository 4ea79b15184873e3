// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/text.h"

#include <fstream>

#include "compiler/graph/graph_edit.h"
#include "compiler/graph/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Graph Parse(std::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

std::string ParseError(std::string_view text) { return std::string(ParseGraph(text).status().message()); }
std::string VerifyError(std::string_view text) { return std::string(Verify(Parse(text)).message()); }

TEST(GraphText, EverythingReadsBack) {
  const std::string text = R"(graph
input `a/b:0`: f16[1,2]
input _.2: u8[]
const numbers: f32[5] = [0.1f32, -0.0f32, inf_f32, -inf_f32, nan_f32]
const same: i64[40] = splat -3
const flags: bool[2] = [true, false]
const bytes: u8[17] = hex "000102030405060708090a0b0c0d0e0f10"
const empty: f32[0] = []
y: f32[5], _, indices: i64[5] = com.acme.Odd(`a/b:0`, _, numbers, same, flags, bytes, empty, _.2) opset 3 {)"
                           R"(axes = ints [], axis = -1, kind = "a \"quoted\" word",)"
                           R"( mode = strings ["x", "y"], ratio = 0.5f64, scales = floats [1.0f64, -2.5f64],)"
                           R"( value = tensor value: i32[2] = [1i32, 2i32]}
output y as "the output"
output indices as "indices"
output `a/b:0` as "a/b:0"
)";
  EXPECT_EQ(Print(Parse(text)), text);
}

TEST(GraphText, AModelMeansTheSameReadBack) {
  GraphBuilder b;
  b.Input("x", {1, 3, 8, 8}).Floats("w", {4, 3, 3, 3}, RandomFloats(108, 1));
  b.Node("Conv", {"x", "w"}, {"a"}, {Attr("pads", std::vector<int64_t>{1, 1, 1, 1})});
  b.Node("Split", {"a"}, {"l", "r"}, {Attr("axis", 1)}).Node("Sigmoid", {"r"}, {"s"}).Node("Mul", {"l", "s"}, {"y"});
  b.Output("y");
  for (const Graph& graph : {Import(b.Model()), Optimize(b.Model())}) {
    const Graph back = Parse(Print(graph));
    EXPECT_EQ(Verify(back), absl::OkStatus());
    EXPECT_EQ(Print(back), Print(graph));
    EXPECT_EQ(RunOnRandom(back, 1), RunOnRandom(graph, 1));
  }
}

TEST(GraphText, ANaNThatTextCannotSpellIsWrittenAsBytes) {
  Graph graph;
  graph.outputs = {AddConstant<uint32_t>(graph, "c", ir::DType::kFloat32, {1}, {0xffc00001})};
  graph.output_names = {"c"};
  EXPECT_THAT(Print(graph), HasSubstr("hex \"0100c0ff\""));
  EXPECT_EQ(Print(Parse(Print(graph))), Print(graph));
}

TEST(GraphText, BriefTextStandsForValuesOfTheSameKind) {
  Graph graph;
  graph.outputs = {AddConstant(graph, "c", ir::DType::kFloat32, {100}, RandomFloats(100, 1))};
  graph.output_names = {"c"};
  const std::string brief = PrintBrief(graph);
  EXPECT_THAT(brief, HasSubstr("const c.0: f32[100] = omitted \""));
  const std::vector<float> values = ReadConstant<float>(Parse(brief).values[0]);
  EXPECT_THAT(values, testing::Each(testing::AllOf(testing::Ge(-1), testing::Lt(1))));
  EXPECT_NE(values[0], values[1]);
  EXPECT_EQ(Print(Parse(brief)), Print(Parse(brief))) << "the same each time";
}

TEST(GraphText, ErrorsNameThePlace) {
  EXPECT_THAT(ParseError("graph\ny: f32[1] = Relu(x)"), StartsWith("line 2, column 18: there is no value 'x' yet"));
  EXPECT_THAT(ParseError("graph\ninput x: f32[1]\ninput x: f32[1]"), StartsWith("line 3, column 7: there are two"));
  EXPECT_THAT(ParseError("graph\nconst c: f32[2] = [1.0f32]"), StartsWith("line 2, column 26: expected ','"));
  EXPECT_THAT(ParseError("graph\nconst c: f32[1] = [1]"), StartsWith("line 2, column 20: expected a constant of type"));
  EXPECT_THAT(ParseError("graph\nconst c: f32[1] = hex \"00\""), StartsWith("line 2, column 19: expected 4 bytes"));
  EXPECT_THAT(ParseError("graph\nconst c: f32[9999999999] = splat 0.0f32"), HasSubstr("more than 4 GiB"));
  EXPECT_THAT(ParseError("graph\ninput x: f32[1]\ny: f32[1] = Relu(x) {a = 1, a = 2}"), HasSubstr("two attributes"));
  EXPECT_THAT(ParseError("graph\ninput x: f32[1]\ny: f32[1] = If(x) {then_branch = graph}"), StartsWith("line 3"));
}

TEST(VerifyGraph, FindsWhatIsWrong) {
  EXPECT_THAT(VerifyError("graph\ninput x: f32[4]\ny: f32[5] = Relu(x)"),
              HasSubstr("output 'y' is f32[5], but the operator makes f32[4]"));
  EXPECT_THAT(VerifyError("graph\ninput x: f32[4]\ny: f32[4] = Frobnicate(x)"), HasSubstr("not supported"));
  EXPECT_THAT(VerifyError("graph\ninput x: f32[4]\ny: f32[4] = Softmax(x) {axis = 9}"), HasSubstr("Softmax"));
}

TEST(VerifyGraph, FindsWhatTextCannotSay) {
  const Graph good = Parse("graph\ninput x: f32[4]\na: f32[4] = Relu(x)\ny: f32[4] = Neg(a)\noutput y as \"y\"");
  EXPECT_EQ(Verify(good), absl::OkStatus());
  const auto error = [&](const auto& spoil) {
    Graph graph = good;
    spoil(graph);
    return std::string(Verify(graph).message());
  };
  EXPECT_THAT(error([](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }),
              HasSubstr("'a' is used before it is defined"));
  EXPECT_THAT(error([](Graph& g) { g.nodes.push_back(g.nodes[0]); }), HasSubstr("'a' is defined twice"));
  EXPECT_THAT(error([](Graph& g) { g.nodes.pop_back(); }), HasSubstr("outputs: value 'y' is used before"));
  EXPECT_THAT(error([](Graph& g) { g.outputs = {99}; }), HasSubstr("there is no value 99"));
  EXPECT_THAT(error([](Graph& g) { g.output_names.clear(); }), HasSubstr("1 outputs and 0 names"));
  EXPECT_THAT(error([](Graph& g) { AddConstant<float>(g, "c", ir::DType::kFloat32, {3}, {1, 2}); }),
              HasSubstr("has 8 bytes, but its type f32[3] has 12"));
}

TEST(EqualGraphs, AreEqualIfAPassChangedNothing) {
  const Graph before = Parse("graph\ninput x: f32[4]\ny: f32[4] = Relu(x) {a = 1}\noutput y as \"y\"");
  Graph after = before;
  AddConstant<float>(after, "unused", ir::DType::kFloat32, {1}, {1});
  EXPECT_TRUE(Equal(before, after));
  after.nodes[0].attributes["a"] = int64_t{2};
  EXPECT_FALSE(Equal(before, after));
}

// The example in docs/IR.md must parse.
TEST(GraphText, TheDocumentIsRight) {
  std::ifstream file(HONE_SOURCE_DIR "/docs/IR.md");
  std::string text;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) inside = line == "```graph";
    if (inside && !line.starts_with("```")) text += line + "\n";
  }
  const Graph graph = Parse(text);
  EXPECT_EQ(Verify(graph), absl::OkStatus());
  EXPECT_EQ(Print(graph), text);
}

}  // namespace
}  // namespace hone::graph
