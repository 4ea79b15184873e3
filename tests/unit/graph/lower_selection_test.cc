// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;

std::string EveryThird(int64_t count) {
  std::vector<uint8_t> values;
  for (int64_t k = 0; k < count; ++k) values.push_back(k % 3 == 0);
  return Tensor<uint8_t>("c", kBool, {count}, values);
}

void ExpectTextsThatAreRead(const Graph& graph) {
  for (const ir::Workload& workload : PlanOf(graph).workloads) {
    const absl::StatusOr<ir::Workload> read = ir::ParseWorkload(ir::Print(workload));
    EXPECT_TRUE(read.ok()) << read.status();
  }
}

TEST(LowerSelection, CompressGathers) {
  const std::vector<std::vector<std::string>> axes = {{}, {Attr("axis", 1)}, {Attr("axis", -2)}};
  for (const std::vector<std::string>& axis : axes) {
    GraphBuilder b;
    b.Input("x", {4, 7}).Initializer(EveryThird(5)).Node("Compress", {"x", "c"}, {"y"}, axis).Output("y");
    EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(b.Model()), "Gather"), 1);
  }
}

TEST(LowerSelection, LongConditionsAreNoTextOfAWorkload) {
  GraphBuilder b;
  b.Input("x", {120000}).Initializer(EveryThird(120000)).Node("Compress", {"x", "c"}, {"y"}).Output("y");
  const Graph graph = Optimize(b.Model());
  EXPECT_THAT(Ops(graph), ElementsAre("Gather"));
  ExpectTextsThatAreRead(graph);
}

// The positions take a MiB more than the condition, so constant folding leaves the node for this pass.
TEST(LowerSelection, PositionsAreAConstant) {
  GraphBuilder b;
  b.Initializer(Tensor<uint8_t>("c", kBool, {300, 300}, std::vector<uint8_t>(90000, 1)));
  b.Input("x", {2, 90000}, kInt64).Node("NonZero", {"c"}, {"p"}).Node("Add", {"x", "p"}, {"y"}).Output("y");
  const Graph graph = Optimize(b.Model());
  EXPECT_THAT(Ops(graph), ElementsAre("Add"));
  ExpectTextsThatAreRead(graph);
}

}  // namespace
}  // namespace hone::graph
