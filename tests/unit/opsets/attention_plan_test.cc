// SPDX-License-Identifier: Apache-2.0
// Attention is fused like the operators that exporters of older opsets write for it.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::UnorderedElementsAre;

// softmax(q k^T / 4 + mask) v, written out. Sizes: batch 2, heads 4, 64 positions, heads of 16.
std::string WrittenOut(bool masked) {
  GraphBuilder b;
  b.Input("q", {2, 4, 64, 16}).Input("k", {2, 4, 64, 16}).Input("v", {2, 4, 64, 16});
  if (masked) b.Input("mask", {2, 1, 64, 64}, kBool);
  b.Floats("scale", {}, {0.25}).Floats("lowest", {}, {-1e30f});
  b.Node("Mul", {"q", "scale"}, {"scaled"});
  b.Node("Transpose", {"k"}, {"kt"}, {Attr("perm", std::vector<int64_t>{0, 1, 3, 2})});
  b.Node("MatMul", {"scaled", "kt"}, {"scores"});
  if (masked) b.Node("Where", {"mask", "scores", "lowest"}, {"visible"});
  b.Node("Softmax", {masked ? "visible" : "scores"}, {"weights"}, {Attr("axis", -1)});
  b.Node("MatMul", {"weights", "v"}, {"y"}).Output("y");
  return b.Model(17);
}

std::string AsAttention(int kv_heads, bool causal, bool masked) {
  GraphBuilder b;
  b.Input("q", {2, 4, 64, 16}).Input("k", {2, kv_heads, 64, 16}).Input("v", {2, kv_heads, 64, 16});
  if (masked) b.Input("mask", {2, 1, 64, 64}, kBool);
  std::vector<std::string> inputs = {"q", "k", "v"};
  if (masked) inputs.push_back("mask");
  b.Node("Attention", inputs, {"y"}, {Attr("is_causal", causal ? 1 : 0)}).Output("y");
  return b.Model(24);
}

// The calls that compute the model, whatever their order.
std::vector<std::string> Calls(const std::string& model) { return CallLabels(PlanOf(Optimize(model))); }

TEST(AttentionPlan, IsThatOfTheOperatorsWrittenOut) {
  const auto written = UnorderedElementsAre("elementwise", "transpose", "attention");
  EXPECT_THAT(Calls(WrittenOut(false)), written);
  EXPECT_THAT(Calls(WrittenOut(true)), written);
  EXPECT_THAT(Calls(AsAttention(4, false, false)), written);
  EXPECT_THAT(Calls(AsAttention(4, true, false)), written);
  EXPECT_THAT(Calls(AsAttention(1, true, false)), written);
  EXPECT_THAT(Calls(AsAttention(2, false, false)), written);
  // The reduction asks the mask which queries see no key.
  EXPECT_THAT(Calls(AsAttention(4, false, true)),
              UnorderedElementsAre("elementwise", "transpose", "reduce", "attention"));
}

TEST(AttentionPlan, PassesKeepTheMeaning) {
  ExpectPassesKeepMeaning(AsAttention(2, true, false));
  ExpectPassesKeepMeaning(AsAttention(4, true, true));
}

}  // namespace
}  // namespace hone::graph
