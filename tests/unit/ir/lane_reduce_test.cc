// SPDX-License-Identifier: Apache-2.0
// Lane reductions ("merge"): text, verifier, and the interpreter's results, races and diverging lanes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/ir/match.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "fmt/format.h"
#include "tests/unit/ir/eval_text.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

// The first of every four lanes writes the result.
constexpr char kLegal[] =
    "func f(x: i64[8], out: i64[2]) grid 1 lanes 8 {\n"
    "  merge out[lane.id // 4 where lane.id < 7] = sum lane.id %% 4:4 of x[lane.id] + lane.id\n"
    "}\n";

std::string Verdict(const std::string& text) {
  const auto func = ParseFunc(text);
  return func.ok() ? std::string(Verify(*func).message()) : std::string(func.status().message());
}

// A group of four lanes; each has an i64 `t` of its own that holds the lane's number.
std::string WithOwn(const std::string& body) {
  return "func f(out: i64[4]) grid 1 lanes 4 { alloc t: i64[1] local { alloc s: i64[4] shared { t[0] = lane.id\n" +
         body + "} } }";
}

TEST(LaneReduce, TextReadsBack) {
  const auto func = ParseFunc(kLegal);
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(Print(*func), kLegal);
  EXPECT_EQ(Verdict(kLegal), "");
  EXPECT_EQ(RunText(kLegal), "6 15") << "the last lane adds nothing";
}

TEST(LaneReduce, ChildrenArePlaceMaskPartAndValue) {
  const Func func = ParseFunc(
                        "func f(x: i64[4], out: i64[4]) { for i in 4 { for k in 2 {"
                        " merge out[i where i < 3] = max k:2 of x[i] * k } } }")
                        .value();
  const Stmt merge = func.body.As<For>()->body.As<For>()->body;
  EXPECT_EQ(WrittenBuffer(merge), func.params[1]);
  EXPECT_EQ(Print(Substitute(merge, {{"i", Expr(1)}})), "merge out[1 where 1 < 3] = max k:2 of x[1] * k\n");
  EXPECT_TRUE(Substitute(merge, {{"j", Expr(3)}}).SameHandle(merge));
  LaneReduce other = *merge.As<LaneReduce>();
  EXPECT_TRUE(Equal(merge, MakeLaneReduce(other)));
  other.reduction = Reduction::kMin;
  EXPECT_FALSE(Equal(merge, MakeLaneReduce(other)));
}

TEST(LaneReduce, WithoutAGridPartsRunInOrder) {
  EXPECT_EQ(RunText("func f(out: i64[2]) { for i in 2 { lane k in 4 {"
                    " merge out[i where k != 2] = sum k:4 of i * 10 + k } } }"),
            "4 34");
  EXPECT_EQ(RunText("func f(out: i32[1]) { lane k in 4 { merge out[0] = min k:4 of i32(7 - k) } }"), "4i32");
}

TEST(LaneReduce, EveryLaneGetsTheResultInItsOwnMemory) {
  EXPECT_EQ(RunText(WithOwn("merge t[0] = sum lane.id:4 of t[0] * t[0] out[lane.id] = t[0]")), "14 14 14 14");
  EXPECT_EQ(RunText(WithOwn("merge t[0] = prod lane.id %% 2:2 of t[0] + 1 out[lane.id] = t[0]")), "2 2 12 12");
  EXPECT_EQ(RunText(WithOwn("merge t[0 where lane.id > 1] = max lane.id:4 of 0 - t[0] out[lane.id] = t[0]")),
            "0 1 -2 -2")
      << "who has no part writes nothing";
}

// The bits of this sum reveal the order: lanes that are half the lanes apart are added first.
TEST(LaneReduce, LanesHalfTheDistanceApartAreCombinedFirst) {
  EXPECT_EQ(RunText("func f(out: f32[4]) grid 1 lanes 4 { alloc t: f32[1] local {"
                    " t[0] = select(lane.id == 0, 1e8f32, select(lane.id == 2, -1e8f32, 1f32))"
                    " merge t[0] = sum lane.id:4 of t[0] out[lane.id] = t[0] } }"),
            "2.0f32 2.0f32 2.0f32 2.0f32");
  EXPECT_EQ(RunText("func f(out: f32[4]) grid 1 lanes 4 { alloc t: f32[1] local {"
                    " t[0] = select(lane.id == 0, 1e8f32, select(lane.id == 1, -1e8f32, 1f32))"
                    " merge t[0] = sum lane.id:4 of t[0] out[lane.id] = t[0] } }"),
            "0.0f32 0.0f32 0.0f32 0.0f32");
}

TEST(LaneReduce, IsNoBarrier) {
  EXPECT_THAT(RunText(WithOwn("s[lane.id] = t[0] merge t[0] = sum lane.id:4 of t[0] out[lane.id] = s[3 - lane.id]")),
              HasSubstr("race on element"));
  EXPECT_THAT(RunText(WithOwn("merge s[0] = sum lane.id:4 of t[0] out[lane.id] = s[0]")),
              HasSubstr("race on element 0 of 's': lane 1 of group 0 reads what lane 0 of group 0 wrote"));
  EXPECT_THAT(RunText(WithOwn("merge s[0] = sum lane.id %% 2:2 of t[0]")),
              HasSubstr("lane 2 of group 0 writes what lane 0 of group 0 wrote"));
  EXPECT_EQ(
      RunText(WithOwn("merge s[lane.id] = sum lane.id %% 2:2 of t[0] barrier out[lane.id] = s[lane.id // 2 * 2]")),
      "1 1 5 5");
}

TEST(LaneReduce, ErrorsSayWhatIsWrong) {
  const auto of = [](const std::string& merge) { return Verdict(WithOwn(merge)); };
  EXPECT_THAT(of("merge t[0] = sum lane.id:3 of t[0]"),
              HasSubstr("lane reduction to 't': it has 3 parts; the number must be a power of two"));
  EXPECT_THAT(of("merge t[0] = sum lane.id:64 of t[0]"),
              HasSubstr("it has 64 parts; the number must be a power of two from 2 to 32"));
  EXPECT_THAT(of("merge t[0] = sum lane.id:8 of t[0]"),
              HasSubstr("a lane reduction has 8 parts, which does not divide the 4 lanes"));
  EXPECT_THAT(of("merge t[0] = sum 3 - lane.id:4 of t[0]"),
              HasSubstr("in a lane reduction of 4 parts, lane 0 has part 3"));
  EXPECT_THAT(of("merge t[0] = sum lane.id:2 of t[0]"), HasSubstr("in a lane reduction of 2 parts, lane 2 has part 2"));
  EXPECT_THAT(of("for i in 2 { merge t[0] = sum i:4 of t[0] }"), HasSubstr("lane 0 has part i;"));
  EXPECT_EQ(of("let p = lane.id %% 2 { merge t[0] = sum p:2 of t[0] }"), "");
  EXPECT_THAT(of("if lane.id < 2 { merge t[0] = sum lane.id:4 of t[0] }"),
              HasSubstr("a lane reduction ('merge') where lanes of a group may diverge: inside 'if lane.id < 2'"));
  EXPECT_THAT(of("merge t[0] = none lane.id:4 of t[0]"), HasSubstr("expected the reduction: sum"));
  EXPECT_THAT(of("merge t[0] = order lane.id:4 of t[0]"), HasSubstr("expected the reduction: sum"));
  EXPECT_THAT(of("merge t[0] = sum 1f32:4 of t[0]"), HasSubstr("the index of the part must be an i64"));
  EXPECT_THAT(of("merge t[0] = sum lane.id:4 of 1f32"), HasSubstr("the destination is i64 but the value is f32"));
  EXPECT_THAT(of("merge s[ramp(0, 1, 4)] = sum lane.id:4 of t[0]"), HasSubstr("one element, not a vector"));
  EXPECT_THAT(Verdict("func f(x: f16[4]) grid 1 lanes 4 { merge x[0] = sum lane.id:4 of x[lane.id] }"),
              HasSubstr("reduction sum is not possible for f16"));
}

// The interpreter also finds the errors that the verifier refuses.
TEST(LaneReduce, TheInterpreterRejectsWrongPartNumbers) {
  EXPECT_THAT(RunText(WithOwn("merge t[0] = sum 3 - lane.id:4 of t[0]")),
              HasSubstr("lane 0 has part 3; it must have part 0"));
  EXPECT_THAT(RunText(WithOwn("if lane.id < 2 { merge t[0] = sum lane.id:4 of t[0] }")),
              HasSubstr("the lanes of a group diverge at a statement that all of them must reach"));
}

}  // namespace
}  // namespace hone::ir
