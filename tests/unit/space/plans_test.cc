// SPDX-License-Identifier: Apache-2.0
// Choosing a tile makes a plan and leaves the state alone; applying the plan takes the steps of the space.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "compiler/space/space.h"
#include "compiler/space/templates/lane_tile.h"
#include "compiler/space/templates/register_tile.h"
#include "tests/unit/space/pipelines.h"

namespace hone::space {
namespace {

using ::testing::HasSubstr;

ir::Workload SmallProduct() { return ir::ParseWorkload(tests::kEven).value(); }

// The preferred candidate of the space, for a workload with one product to tile.
Candidate PreferredOfSpace(const target::Target& target, int64_t space) {
  const Decisions given = {{std::string(kSpaceDecision), space, {}}};
  Chooser chooser(&given);
  return Build(SmallProduct(), target, ApplicableEntries(SmallProduct(), target), chooser).value();
}

// The decisions without that of the space, which is the first.
std::string OfTile(const Decisions& decisions) { return Print(Decisions(decisions.begin() + 1, decisions.end())); }

TEST(RegisterTilePlan, ChoosingLeavesTheStateAloneAndApplyTakesTheStepsOfTheSpace) {
  const target::Target target = target::ParseTarget("x86_64 -mcpu=haswell -threads=2").value();
  const Candidate expected = PreferredOfSpace(target, 1);
  Chooser chooser;
  Sketch sketch{schedule::InitialState(SmallProduct()), target, chooser, {}};
  const auto plan = ChooseRegisterTile(sketch.state, target, chooser, {"u", "t", ""});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(plan->has_value());
  EXPECT_TRUE(sketch.steps.empty());
  EXPECT_FALSE(sketch.Get("t").has_loop_steps);
  EXPECT_EQ(Print(chooser.decisions()), OfTile(expected.decisions));
  EXPECT_EQ(Apply(**plan, sketch), absl::OkStatus());
  EXPECT_EQ(schedule::Print(sketch.steps), schedule::Print(expected.schedule));
  EXPECT_THAT(Print(**plan), HasSubstr("t in tiles of u"));
}

TEST(RegisterTilePlan, AnOutputOfOneElementHasNone) {
  const ir::Workload workload = ir::ParseWorkload(R"(workload "dot"
input x: f32[1,24] in [-1, 1]
input w: f32[24,1] in [-1, 1]
t: f32[1,1] over i:1, j:1 = sum k:24 of x[i, k] * w[k, j]
u: f32[1,1] over a:1, b:1 = max(t[a, b], 0f32)
output u
)")
                                    .value();
  const target::Target target = target::ParseTarget("x86_64 -mcpu=haswell").value();
  Chooser chooser;
  const auto plan = ChooseRegisterTile(schedule::InitialState(workload), target, chooser, {"u", "t", ""});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->has_value());
  EXPECT_TRUE(chooser.decisions().empty());
}

TEST(LaneTilePlan, ChoosingLeavesTheStateAloneAndApplyTakesTheStepsOfTheSpace) {
  const target::Target target = target::ParseTarget("cuda:sm_80").value();
  const Candidate expected = PreferredOfSpace(target, 3);
  Chooser chooser;
  Sketch sketch{schedule::InitialState(SmallProduct()), target, chooser, {}};
  const auto plan = ChooseLaneTile(sketch.state, target, chooser, {"u", "t", ""});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(plan->has_value());
  EXPECT_TRUE(sketch.steps.empty());
  EXPECT_FALSE(sketch.Get("t").has_loop_steps);
  EXPECT_EQ(Print(chooser.decisions()), OfTile(expected.decisions));
  EXPECT_EQ(Apply(**plan, sketch), absl::OkStatus());
  EXPECT_EQ(schedule::Print(sketch.steps), schedule::Print(expected.schedule));
  EXPECT_THAT(Print(**plan), HasSubstr("t in tiles of u"));
}

TEST(Sketch, StepsReturnTheNamesOfWhatTheyMake) {
  const target::Target target = target::ParseTarget("x86_64 -mcpu=haswell").value();
  Chooser chooser;
  Sketch sketch{schedule::InitialState(SmallProduct()), target, chooser, {}};
  EXPECT_NE(sketch.state.FindNest(sketch.Pack("w", "t", {{1, 4, false}, {0}, {1, 4, true}}).value()), nullptr);
  EXPECT_NE(sketch.state.FindNest(sketch.CacheRead("x", "t").value()), nullptr);
  const Partials partials = sketch.Rfactor({"t", "k", 8}).value();
  EXPECT_EQ(sketch.Get("t").stage.reduce_axes[0].name, partials.axis);
  EXPECT_NE(sketch.state.FindNest(sketch.CacheWrite(partials.stage).value()), nullptr);
  const SplitLoops split = sketch.Split("a", 4, schedule::Tail::kMask).value();
  EXPECT_EQ(sketch.MaxExtent(split.outer), 4);
  EXPECT_EQ(sketch.MaxExtent(split.inner), 4);
  const std::string fused = sketch.FuseAll({split.outer, split.inner, "b"}).value();
  EXPECT_EQ(sketch.MaxExtent(fused), 4 * 4 * 20);
}

}  // namespace
}  // namespace hone::space
