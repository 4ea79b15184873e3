// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::SizeIs;

std::string ConcatModel(int parts, int64_t axis) {
  GraphBuilder b;
  std::vector<std::string> names;
  for (int k = 0; k < parts; ++k) b.Input(names.emplace_back(fmt::format("x{}", k)), {2, 1 + k % 3, 2});
  b.Node("Concat", names, {"y"}, {Attr("axis", axis)}).Output("y");
  return b.Model();
}

size_t PartsMax(const Graph& graph) {
  size_t most = 0;
  for (const Node& node : graph.nodes) most = std::max(most, node.inputs.size());
  return most;
}

TEST(GroupConcats, ManyPartsBecomeATree) {
  const Graph graph = ExpectPassesKeepMeaning(ConcatModel(35, 1));
  EXPECT_EQ(CountOps(graph, "Concat"), 4) << "16, 16, 3, and those three";
  EXPECT_EQ(PartsMax(graph), 16U);
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(ConcatModel(33, -2)), "Concat"), 3) << "a single rest stays as it is";
  EXPECT_EQ(CountOps(Optimize(ConcatModel(300, 1)), "Concat"), 19 + 2 + 1);
}

TEST(GroupConcats, FewPartsStayOneKernel) {
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(ConcatModel(32, 1)), "Concat"), 1);
}

// One kernel of the whole tree would ask for all parts again.
TEST(GroupConcats, GroupsStayKernels) {
  EXPECT_THAT(CallLabels(PlanOf(Optimize(ConcatModel(48, 1)))), AllOf(SizeIs(4), Each("concat")));
}

}  // namespace
}  // namespace hone::graph
