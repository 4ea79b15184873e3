// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/emit.h"
#include "compiler/ir/match.h"
#include "gtest/gtest.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {
namespace {

TEST(GatherOps, ReadWhereTheIndicesSay) {
  const Constant x = Counting({2, 3});
  ExpectOutput({"Gather", {x, Ints({2}, {1, -2})}}, {2, 3}, {3, 4, 5, 0, 1, 2});
  ExpectOutput({"Gather", {x, Ints({}, {2})}, {{"axis", Int(1)}}}, {2}, {2, 5});
  ExpectOutput({"Gather", {x, Ints({1, 2}, {0, -1})}, {{"axis", Int(-1)}}}, {2, 1, 2}, {0, 2, 3, 5});
  ExpectOutput({"GatherElements", {x, Ints({1, 3}, {1, 0, -1})}}, {1, 3}, {3, 1, 5});
  ExpectOutput({"GatherND", {x, Ints({2, 2}, {0, 1, 1, -1})}}, {2}, {1, 5});
  ExpectOutput({"GatherND", {x, Ints({2, 1}, {0, 2})}, {{"batch_dims", Int(1)}}}, {2}, {0, 5});
}

TEST(GatherOps, SelectByCondition) {
  const Constant x = Counting({2, 3});
  ExpectOutput({"Compress", {x, Bools({3}, {1, 0, 1})}, {{"axis", Int(1)}}}, {2, 2}, {0, 2, 3, 5});
  ExpectOutput({"Compress", {x, Bools({5}, {0, 1, 0, 0, 1})}}, {2}, {1, 4});
  ExpectOutput({"Compress", {x, Bools({1}, {0})}, {{"axis", Int(0)}}}, {0, 3}, {});
  ExpectOutput({"NonZero", {Floats({2, 2}, {1, 0, 0, 2})}}, {2, 2}, {0, 1, 0, 1});
}

// The length of the condition must not affect the size of an element's expression.
TEST(GatherOps, SelectByLongCondition) {
  const Constant condition = Bools({1000}, std::vector<double>(1000, 1));
  Graph graph;
  graph.values.push_back({"x", {ir::DType::kFloat32, {1000, 2}}, nullptr});
  graph.values.push_back({"condition", condition.type, condition.data});
  graph.values.push_back({"y", {}, nullptr});
  Node node;
  node.op = "Compress";
  node.opset = 11;
  node.inputs = {0, 1};
  node.outputs = {2};
  node.attributes = {{"axis", Int(0)}};
  const absl::StatusOr<EmittedNode> emitted = EmitNode(graph, node);
  ASSERT_TRUE(emitted.ok()) << emitted.status();
  int expressions = 0;
  ir::ForEachExpr(emitted->stages.back().value, [&](const ir::Expr&) { ++expressions; });
  EXPECT_LT(expressions, 20);
}

TEST(GatherOps, ReverseSequences) {
  const Constant x = Counting({3, 2});
  ExpectOutput({"ReverseSequence", {x, Ints({2}, {2, 3})}}, {3, 2}, {2, 5, 0, 3, 4, 1});
  ExpectOutput({"ReverseSequence", {x, Ints({3}, {1, 2, 2})}, {{"batch_axis", Int(0)}, {"time_axis", Int(1)}}}, {3, 2},
               {0, 1, 3, 2, 5, 4});
}

TEST(ScatterOps, WriteWhereTheIndicesSay) {
  const Constant x = Floats({1, 5}, {1, 2, 3, 4, 5});
  auto scatter = [&](const std::string& reduction) {
    return OpCase{"ScatterElements",
                  {x, Ints({1, 3}, {1, 1, -1}), Floats({1, 3}, {10, 20, 30})},
                  {{"axis", Int(1)}, {"reduction", reduction}},
                  18};
  };
  ExpectOutput(scatter("none"), {1, 5}, {1, 20, 3, 4, 30});  // the last of several updates wins
  ExpectOutput(scatter("add"), {1, 5}, {1, 32, 3, 4, 35});
  ExpectOutput(scatter("mul"), {1, 5}, {1, 400, 3, 4, 150});
  ExpectOutput(scatter("max"), {1, 5}, {1, 20, 3, 4, 30});
  ExpectOutput(scatter("min"), {1, 5}, {1, 2, 3, 4, 5});
}

TEST(ScatterOps, IndicesMayCoverAPart) {
  ExpectOutput({"ScatterElements", {Floats({2, 3}, {0, 0, 0, 0, 0, 0}), Ints({1, 2}, {1, 0}), Floats({1, 2}, {5, 6})}},
               {2, 3}, {0, 6, 0, 5, 0, 0});
  ExpectOutput({"Scatter", {Floats({2}, {1, 2}), Ints({0}, {}), Floats({0}, {})}, {}, 9}, {2}, {1, 2});
}

TEST(ScatterOps, WriteSlices) {
  const Constant x = Counting({3, 2});
  ExpectOutput({"ScatterND", {x, Ints({2, 1}, {2, 0}), Floats({2, 2}, {6, 7, 8, 9})}}, {3, 2}, {8, 9, 2, 3, 6, 7});
  ExpectOutput(
      {"ScatterND", {x, Ints({2, 2}, {1, 1, 1, 1}), Floats({2}, {10, 20})}, {{"reduction", std::string("add")}}},
      {3, 2}, {0, 1, 2, 33, 4, 5});
}

}  // namespace
}  // namespace hone::graph
