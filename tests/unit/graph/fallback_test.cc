// SPDX-License-Identifier: Apache-2.0
// Tests which nodes of a model are left to ONNX Runtime, and in which parts. Nodes "node_of_y" make the value y. Foo is
// an operator that Hone does not have.
#include "compiler/graph/fallback.h"

#include <filesystem>
#include <fstream>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "compiler/graph/check_onnx.h"
#include "compiler/graph/control_flow.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/onnx_import.h"
#include "compiler/graph/onnx_reader.h"
#include "compiler/graph/passes/pipeline.h"
#include "compiler/graph/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Names = std::vector<std::string>;

ImportOptions WithFallback() {
  ImportOptions options;
  options.fallback = true;
  return options;
}

// The nodes of each part.
std::vector<Names> PartsOf(const std::string& bytes) {
  absl::StatusOr<RawModel> model = ReadOnnxBytes(bytes, "", {.keeps_sources = true});
  HONE_CHECK(model.ok());
  std::vector<Names> parts;
  for (const ForeignNodes& part : MoveRefused(*model, WithFallback())) parts.push_back(part.nodes);
  return parts;
}

Graph Import(const std::string& bytes) {
  absl::StatusOr<Graph> graph = ImportOnnxBytes(bytes, "", WithFallback());
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph{};
}

// x -> Relu -> a -> Foo -> b -> Abs -> y, with these declared types.
GraphBuilder UnknownBetween() {
  GraphBuilder g;
  g.Input("x", {2, 3}).Node("Relu", {"x"}, {"a"}).Node("Foo", {"a"}, {"b"}).Node("Abs", {"b"}, {"y"});
  g.Output("y", {2, 3});
  return g;
}

TEST(Fallback, OnlyRefusedNodesOfKnownTypeAreLeft) {
  GraphBuilder g = UnknownBetween();
  g.Declared("b", {2, 3});
  EXPECT_THAT(PartsOf(g.Model()), ElementsAre(Names{"node_of_b"}));
}

TEST(Fallback, NodesBehindAnUnknownTypeJoin) {
  EXPECT_THAT(PartsOf(UnknownBetween().Model()), ElementsAre(Names{"node_of_b", "node_of_y"}));
}

// Some exporters write 0 for an extent that they do not know.
TEST(Fallback, ADeclaredExtentOfZeroIsUnknown) {
  GraphBuilder g = UnknownBetween();
  g.Declared("b", {0, 3});
  EXPECT_THAT(PartsOf(g.Model()), ElementsAre(Names{"node_of_b", "node_of_y"}));
}

TEST(Fallback, AModelThatCanBeCompiledHasNoParts) {
  GraphBuilder g;
  g.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(PartsOf(g.Model()), IsEmpty());
  EXPECT_EQ(Import(g.Model()).nodes.size(), 1u);
}

TEST(Fallback, ConnectedNodesAreOnePart) {
  GraphBuilder g;
  g.Input("x", {2}).Node("Foo", {"x"}, {"a"}).Node("Bar", {"a"}, {"b"}).Node("Abs", {"b"}, {"y"});
  g.Declared("a", {2}).Declared("b", {2}).Output("y");
  EXPECT_THAT(PartsOf(g.Model()), ElementsAre(Names{"node_of_a", "node_of_b"}));
}

TEST(Fallback, NodesWithAResultOfHoneBetweenThemAreTwoParts) {
  GraphBuilder g;
  g.Input("x", {2}).Node("Foo", {"x"}, {"a"}).Node("Abs", {"a"}, {"b"}).Node("Bar", {"a", "b"}, {"y"});
  g.Declared("a", {2}).Output("y", {2});
  EXPECT_THAT(PartsOf(g.Model()), ElementsAre(Names{"node_of_a"}, Names{"node_of_y"}));
  Graph graph = Import(g.Model());
  EXPECT_EQ(Verify(graph), absl::OkStatus());
  EXPECT_EQ(graph.nodes.size(), 3u);
}

// b lies between two nodes that must be one part, because the type of c is not known.
TEST(Fallback, ANodeBetweenNodesOfOnePartJoins) {
  GraphBuilder g;
  g.Input("x", {2}).Node("Foo", {"x"}, {"a", "c"}).Node("Abs", {"a"}, {"b"}).Node("Bar", {"b", "c"}, {"y"});
  g.Declared("a", {2}).Output("y", {2});
  EXPECT_THAT(PartsOf(g.Model()), ElementsAre(Names{"node_of_a", "node_of_b", "node_of_y"}));
}

// Each of two parts would need a result of the other through one of Hone's.
TEST(Fallback, PartsThatNeedEachOtherBecomeOne) {
  GraphBuilder g;
  g.Input("x", {2}).Input("z", {2});
  g.Node("Foo", {"x"}, {"a", "c"}).Node("Foo", {"z"}, {"d", "f"});
  g.Node("Abs", {"a"}, {"b"}).Node("Abs", {"d"}, {"e"});
  g.Node("Bar", {"f", "b"}, {"y"}).Node("Bar", {"c", "e"}, {"w"});
  g.Declared("a", {2}).Declared("d", {2}).Output("y", {2}).Output("w", {2});
  const Graph graph = Import(g.Model());
  EXPECT_EQ(Verify(graph), absl::OkStatus());
}

// The second node can be refused only when the type of the first one's output is known.
TEST(Fallback, NodesThatAreRefusedLaterFollow) {
  GraphBuilder g;
  g.Input("x", {2, 3}).Input("shape", {2}, kInt64).Node("Foo", {"x"}, {"a"}).Node("Reshape", {"a", "shape"}, {"b"});
  g.Node("Abs", {"b"}, {"y"}).Declared("a", {2, 3}).Declared("b", {3, 2}).Output("y");
  EXPECT_THAT(PartsOf(g.Model()), ElementsAre(Names{"node_of_a", "node_of_b"}));
}

TEST(Fallback, ANodeOfControlFlowGoesAsAWhole) {
  GraphBuilder then_branch, else_branch;
  then_branch.Node("Foo", {"a"}, {"t"}).Output("t");
  else_branch.Node("Abs", {"a"}, {"e"}).Output("e");
  GraphBuilder g;
  g.Input("x", {2}).Input("on", {}, kBool).Node("Relu", {"x"}, {"a"});
  g.Node("If", {"on"}, {"y"},
         {GraphAttr("then_branch", then_branch.bytes()), GraphAttr("else_branch", else_branch.bytes())});
  g.Output("y", {2});
  EXPECT_THAT(PartsOf(g.Model()), ElementsAre(Names{"node_of_y"}));
  const Graph graph = Import(g.Model());
  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.nodes[1].inputs.size(), 2u) << "the condition, and the value that the branches read";
}

TEST(Fallback, ConstantsAreInTheModelOfThePart) {
  GraphBuilder g;
  g.Input("x", {2}).Ints("n", {7}).Node("Add", {"n", "n"}, {"m"}).Node("Foo", {"x", "m"}, {"y"}).Output("y", {2});
  const Graph graph = Import(g.Model());
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].inputs.size(), 1u);
  const absl::StatusOr<RawModel> model = ReadOnnxBytes(StringAttribute(graph.nodes[0], "model", ""), "");
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->graph.initializers.size(), 1u);
  EXPECT_EQ(model->graph.initializers[0].name, "m");
  const Value value{.name = "m", .type = {}, .data = model->graph.initializers[0].constant->data, .elements = nullptr};
  EXPECT_THAT(ReadConstant<int64_t>(value), ElementsAre(14));
}

TEST(Fallback, TensorsOfStringsStayAsTheyAre) {
  GraphBuilder g;
  Message strings;
  strings.Int(1, 1).Int(2, kString).Text(6, "word").Text(8, "s");
  g.Input("x", {2}).Initializer(strings.bytes()).Node("Foo", {"x", "s"}, {"y"}).Output("y", {2});
  const Graph graph = Import(g.Model());
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_THAT(StringAttribute(graph.nodes[0], "model", ""), HasSubstr("word"));
}

TEST(Fallback, PassesKeepAPart) {
  GraphBuilder g = UnknownBetween();
  g.Declared("b", {2, 3});
  Graph graph = Import(g.Model());
  ASSERT_EQ(RunPasses(graph, {}), absl::OkStatus());
  EXPECT_EQ(Verify(graph), absl::OkStatus());
  const absl::StatusOr<Plan> plan = BuildPlan(graph);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->foreign.size(), 1u);
  ASSERT_EQ(plan->calls.size(), 3u);
  EXPECT_EQ(plan->calls[1].foreign, 0);
  EXPECT_EQ(plan->calls[1].arguments.size(), 2u);
}

TEST(Fallback, AnInvalidFileIsStillRefused) {
  GraphBuilder g;
  g.Input("x", {2}).Node("Relu", {"x", "x"}, {"y"}).Output("y", {2});
  const absl::StatusOr<Graph> graph = ImportOnnxBytes(g.Model(), "", WithFallback());
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Fallback, ACheckTellsThePartsAndTheirReasons) {
  const TemporaryFolder folder = *TemporaryFolder::Create();
  const std::string path = (std::filesystem::path(folder.path()) / "model.onnx").string();
  std::ofstream(path, std::ios::binary) << UnknownBetween().Model();
  const absl::StatusOr<ImportReport> refused = CheckOnnx(path, {});
  ASSERT_TRUE(refused.ok() && refused->problems.size() == 1) << refused.status();
  EXPECT_TRUE(MayFallBack(refused->problems[0]));
  EXPECT_THAT(refused->fallbacks, IsEmpty());
  const absl::StatusOr<ImportReport> report = CheckOnnx(path, WithFallback());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->problems, IsEmpty());
  ASSERT_EQ(report->fallbacks.size(), 1u);
  EXPECT_THAT(report->fallbacks[0].nodes, ElementsAre("node_of_b", "node_of_y"));
  ASSERT_EQ(report->fallbacks[0].reasons.size(), 1u);
  EXPECT_EQ(report->fallbacks[0].reasons[0].op, "Foo");
  EXPECT_THAT(Print(report->fallbacks[0]),
              HasSubstr("2 nodes left to ONNX Runtime: node_of_b, node_of_y; node 'node_of_b'"));
}

}  // namespace
}  // namespace hone::graph
