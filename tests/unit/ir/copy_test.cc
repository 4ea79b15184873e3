// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies: their text, the verifier, and the interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/ir/match.h"
#include "compiler/ir/multiple.h"
#include "compiler/ir/serial_lanes.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "tests/unit/ir/eval_text.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

// Every lane copies four elements and adds up those that another lane copied.
constexpr char kLegal[] =
    "func f(x: f32[30], y: f32[8]) grid 1 lanes 8 {\n"
    "  alloc s: f32[8,4] shared {\n"
    "    copy 4 s[lane.id, 0] = x[lane.id * 4 where lane.id < 7]\n"
    "    commit\n"
    "    wait 0\n"
    "    barrier\n"
    "    y[lane.id] = s[7 - lane.id, 0] + s[7 - lane.id, 3]\n"
    "  }\n"
    "}\n";

std::string Verdict(const std::string& text) {
  const auto func = ParseFunc(text);
  if (!func.ok()) return std::string(func.status().message());
  return std::string(Verify(*func).message());
}

// A func of two lanes with these statements on x, which holds nonzero i64 numbers, and the shared buffer s.
std::string With(const std::string& statements) {
  return "func f(x: i64[8], y: i64[4]) grid 1 lanes 2 {"
         " if lane.id == 0 { for i in 8 { x[i] = i + 10 } } barrier"
         " alloc s: i64[4] shared { " +
         statements + " } }";
}

TEST(Copy, TextReadsBack) {
  const auto func = ParseFunc(kLegal);
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(Print(*func), kLegal);
  EXPECT_EQ(Verdict(kLegal), "");
  const auto waits = ParseFunc("func f() { wait 3 commit }");
  ASSERT_TRUE(waits.ok()) << waits.status();
  EXPECT_EQ(Print(*waits), "func f() {\n  wait 3\n  commit\n}\n");
}

TEST(Copy, ChildrenAreItsIndicesSourceAndCondition) {
  const Func func = ParseFunc(kLegal).value();
  const Stmt copy = func.body.As<Alloc>()->body.As<Block>()->stmts[0];
  const Copy& c = *copy.As<Copy>();
  EXPECT_EQ(WrittenBuffer(copy), c.buffer);
  EXPECT_TRUE(Equal(copy, MakeCopy(c.buffer, c.indices, c.source, c.mask, 4)));
  EXPECT_FALSE(Equal(copy, MakeCopy(c.buffer, c.indices, c.source, c.mask, 2)));
  EXPECT_FALSE(Equal(copy, MakeCopy(c.buffer, c.indices, c.source, {}, 4)));
  EXPECT_EQ(Print(Substitute(copy, {{kLaneVar, Expr(2)}})), "copy 4 s[2, 0] = x[2 * 4 where 2 < 7]\n");
  EXPECT_TRUE(Substitute(copy, {{"j", Expr(2)}}).SameHandle(copy));
  EXPECT_TRUE(Equal(MakeCopy(c.buffer, c.indices, c.source, MakeBool(true), 4),
                    MakeCopy(c.buffer, c.indices, c.source, {}, 4)));
  int reads = 0;
  ForEachExpr(copy, [&](const Expr& e) { reads += e.As<Load>() != nullptr ? 1 : 0; });
  EXPECT_EQ(reads, 1);  // the copy does not read the masked element
}

TEST(Copy, AsStoreMovesTheSame) {
  const Func func = ParseFunc("func f(x: i32[8], s: i32[8]) { copy 4 s[4] = x[0 where false] }").value();
  EXPECT_EQ(Print(CopyAsStore(*func.body.As<Copy>())),
            "s[ramp(4, 1, 4)] = x[ramp(0, 1, 4) where broadcast(false, 4)]\n");
}

TEST(Copy, ArrivesForAllLanesAfterWaitAndBarrier) {
  EXPECT_EQ(RunText(With("copy 2 s[lane.id * 2] = x[lane.id * 4] commit wait 0 barrier"
                         " y[lane.id * 2] = s[2 - lane.id * 2] y[lane.id * 2 + 1] = s[3 - lane.id * 2]")),
            "14 15 10 11");
}

TEST(Copy, ZerosArriveWhereItsConditionIsFalse) {
  EXPECT_EQ(RunText(With("copy 2 s[lane.id * 2] = x[lane.id * 100 where lane.id == 0] commit wait 0"
                         " y[lane.id * 2] = s[lane.id * 2] y[lane.id * 2 + 1] = s[lane.id * 2 + 1]")),
            "10 11 0 0");
}

// Three commit groups; the first has arrived when two are outstanding.
TEST(Copy, AWaitLeavesTheLatestCommitGroupsInFlight) {
  const std::string three = "for i in 3 { copy 1 s[i] = x[i + 4 where lane.id == 0] commit } ";
  const auto by_first = [](const std::string& statements) {
    std::string text = With(statements);
    const std::string two = "lanes 2";
    return text.replace(text.find(two), two.size(), "lanes 1");
  };
  EXPECT_EQ(RunText(by_first(three + "wait 2 y[0] = s[0] wait 0 y[1] = s[1] y[2] = s[2]")), "14 15 16 0");
  EXPECT_THAT(
      RunText(by_first(three + "wait 2 y[0] = s[1]")),
      HasSubstr("lane 0 of group 0 reads element 1 of 's', to which lane 0 is still copying; wait for the copy first"));
  EXPECT_THAT(RunText(by_first(three + "wait 0 wait 5 commit wait 0 y[0] = s[2] s[2] = 3")), HasSubstr("16 0 0 0"));
}

TEST(Copy, UseOfTheDestinationBeforeTheWaitIsAnError) {
  EXPECT_THAT(RunText(With("copy 2 s[lane.id * 2] = x[lane.id * 2] commit barrier y[lane.id] = s[lane.id] wait 0")),
              HasSubstr("reads element 0 of 's', to which lane 0 is still copying"));
  EXPECT_THAT(RunText(With("copy 2 s[lane.id * 2] = x[lane.id * 2] wait 0 barrier y[lane.id] = s[lane.id]")),
              HasSubstr("reads element 0 of 's', to which lane 0 is still copying"));  // the copy was not committed
  EXPECT_THAT(RunText(With("copy 2 s[lane.id * 2] = x[lane.id * 2] barrier s[lane.id] = 1 commit wait 0")),
              HasSubstr("writes element 0 of 's', to which lane 0 is still copying"));
  EXPECT_THAT(RunText(With("copy 2 s[0] = x[0 where lane.id == 0] commit wait 0")),
              HasSubstr("race on element 0 of 's': lane 1 of group 0 copies to what lane 0 of group 0 wrote"));
}

TEST(Copy, OtherLanesRaceWithoutABarrier) {
  EXPECT_THAT(RunText(With("copy 2 s[lane.id * 2] = x[lane.id * 2] commit barrier wait 0 y[lane.id] = s[lane.id * 2]"
                           " barrier y[lane.id + 2] = s[1]")),
              HasSubstr("10"));  // each lane its own, then all the same
  EXPECT_THAT(RunText(With("copy 2 s[lane.id * 2] = x[lane.id * 2] commit barrier wait 0 y[lane.id] = s[2]")),
              HasSubstr("race on element 2 of 's': lane 0 of group 0 reads what lane 1 of group 0 wrote"));
  EXPECT_THAT(RunText(With("copy 2 s[2 - lane.id * 2] = x[lane.id * 2] commit wait 0 y[lane.id] = s[lane.id * 2]")),
              HasSubstr("lane 1 of group 0 copies to what lane 0 of group 0 read since the last barrier"));
  EXPECT_THAT(RunText(With("s[lane.id * 2] = 1 barrier y[lane.id] = s[0] copy 2 s[lane.id * 2] = x[0] commit wait 0")),
              HasSubstr("lane 0 of group 0 copies to what lane 1 of group 0 read since the last barrier"));
}

TEST(Copy, ChangingTheSourceInFlightIsAnError) {
  EXPECT_THAT(RunText(With("copy 2 s[lane.id * 2] = x[lane.id * 2] commit barrier x[lane.id * 2] = 5 barrier wait 0")),
              HasSubstr("'x' changed while 2 elements from element 0 were copied to 's'"));
}

TEST(Copy, FreeingMemoryInFlightIsAnError) {
  EXPECT_THAT(RunText(With("copy 2 s[lane.id * 2] = x[lane.id * 2] commit wait 1")),
              HasSubstr("the memory of 's' is freed while a copy to it is in flight"));
}

TEST(Copy, EveryElementIsInsideItsBuffer) {
  EXPECT_THAT(RunText(With("copy 2 s[lane.id * 4] = x[0] commit wait 0")),
              HasSubstr("index 4 of dimension 0 is outside buffer 's'"));
  EXPECT_THAT(RunText(With("copy 2 s[lane.id * 2] = x[lane.id + 7] commit wait 0")),
              HasSubstr("element 8 is outside buffer 'x' of 8 elements"));
}

// Before lanes are bound, a loop over lanes means the same as a serial loop.
TEST(Copy, LoopsOverLanesCopyOneAfterTheOther) {
  const std::string text =
      "func f(y: i64[4]) { group g in 1 { alloc s: i64[4] shared { for i in 1 { block s { lane j in 4 {"
      " copy 1 s[j] = y[j] } } commit WAIT } lane j in 4 { y[3 - j] = s[j] + j } } } }";
  const auto with = [&](const std::string& wait) { return std::string(text).replace(text.find("WAIT"), 4, wait); };
  EXPECT_EQ(RunText(with("wait 0")), "3 2 1 0");
  EXPECT_THAT(RunText(with("wait 1")), HasSubstr("reads element 0 of 's', to which lane 0 is still copying"));
}

TEST(CopyVerifier, RejectsIllegalCopies) {
  const auto with = [](const std::string& copy) {
    return Verdict(
        "func f(x: f32[8,8], b: bool[4], h: f16[64], n: i64[1]) grid 1 lanes 2 { alloc t: f32[8] local {"
        " alloc s: f32[2,4] shared { " +
        copy + " commit wait 0 } } }");
  };
  EXPECT_EQ(with("copy 4 s[lane.id, 0] = x[n[0], 4]"), "");
  EXPECT_EQ(with("copy 1 s[lane.id, 3] = x[n[0], lane.id + 1]"), "");
  EXPECT_THAT(with("copy 3 s[0, 0] = x[0, 0]"),
              HasSubstr("copy to 's': 12 bytes; a copy by one lane must have 4, 8, 16 bytes"));
  EXPECT_THAT(with("copy 0 s[0, 0] = x[0, 0]"), HasSubstr("copy to 's': 0 bytes"));
  EXPECT_THAT(with("copy 4 s[0, lane.id] = x[0, 0]"),
              HasSubstr("copy to 's': its destination is not known to be aligned to 16 bytes"));
  EXPECT_THAT(with("copy 2 s[0, 0] = x[0, 1]"), HasSubstr("its source in 'x' is not known to be aligned to 8 bytes"));
  EXPECT_THAT(with("copy 4 x[0, 0] = x[1, 0]"), HasSubstr("copy to 'x': its destination is in param memory"));
  EXPECT_THAT(with("copy 4 s[0, 0] = t[4]"),
              HasSubstr("its source is local 't'; it must be a parameter or in the workspace"));
  EXPECT_THAT(with("copy 4 s[0, 0] = h[0]"), HasSubstr("the destination is f32 but the source is f16"));
  EXPECT_THAT(with("copy 4 s[0, 0] = x[0, 0 where 1]"), HasSubstr("bool"));
  EXPECT_THAT(with("copy 4 s[0, 0 where true] = x[0, 0]"),
              HasSubstr("the destination of a copy must not have a condition"));
  EXPECT_THAT(with("copy 4 s[0, ramp(0, 1, 4)] = x[0, ramp(0, 1, 4)]"), HasSubstr("first elements, not vectors"));
  EXPECT_THAT(with("copy 4 s[0, 0] = y[0, 0]"), HasSubstr("'y'"));
}

TEST(CopyVerifier, LanesMustCountCommitGroupsAlike) {
  EXPECT_THAT(Verdict("func f(y: i64[4]) grid 1 lanes 4 { block t { if lane.id < 2 { commit } } }"),
              HasSubstr("block 't': a commit where lanes of a group may diverge: inside 'if lane.id < 2'"));
  EXPECT_THAT(Verdict("func f(y: i64[4]) grid 1 lanes 4 { for i in lane.id { wait 1 } }"),
              HasSubstr("a wait where lanes of a group may diverge: inside loop 'i' with extent lane.id"));
}

// The verifier refuses reads without an earlier wait, judged by the order of statements alone.
TEST(CopyVerifier, RejectsAReadWithoutAWait) {
  const auto with = [](const std::string& statements) {
    return Verdict("func f(x: f32[64], y: f32[64]) grid 1 lanes 4 { alloc s: f32[3,4] shared { " + statements + " } }");
  };
  const std::string fill = "block fill { copy 1 s[0, lane.id] = x[lane.id] } commit ", read = " y[0] = s[0, 0] ";
  EXPECT_EQ(with(fill + "wait 0" + read), "");
  EXPECT_THAT(
      with(fill + "block use { y[0] = s[0, 0] } wait 0"),
      HasSubstr("block 'use': 's' is read while every copy to it is in flight: there is no wait before the read"));
  EXPECT_THAT(with(fill + "wait 1" + read + "wait 0"),
              HasSubstr("'s' is read while every copy to it is in flight: the last wait leaves 1 of 1"));
  EXPECT_EQ(with(fill + fill + "wait 1" + read + "wait 0"), "");
  EXPECT_THAT(with(fill + "wait 1"), HasSubstr("the memory of 's' is freed while every copy to it is in flight"));
  EXPECT_THAT(with("copy 1 s[0, lane.id] = x[lane.id] wait 0" + read), HasSubstr("'s' is read while"));
  EXPECT_THAT(with("if lane.id < 3 { copy 1 s[0, lane.id] = x[lane.id] } commit" + read),
              HasSubstr("there is no wait before the read"));
  EXPECT_EQ(with("s[0, lane.id] = 1f32 barrier copy 1 s[1, lane.id] = x[lane.id] commit" + read + "wait 0"), "");
}

TEST(CopyVerifier, FollowsALoopThroughItsFirstIteration) {
  const auto with = [](const std::string& n, const std::string& prologue) {
    return Verdict("func f(x: f32[64], y: f32[64]) grid 1 lanes 4 { alloc s: f32[3,4] shared { " + prologue +
                   " for k in 5 { wait " + n +
                   " barrier if k < 3 { copy 1 s[(k + 2) %% 3, lane.id] = x[lane.id] } commit"
                   " y[lane.id] = s[k %% 3, 3 - lane.id] } wait 0 } }");
  };
  const std::string one = "copy 1 s[0, lane.id] = x[lane.id] commit ", two = one + "copy 1 s[1, lane.id] = x[0] commit";
  EXPECT_EQ(with("1", two), "");
  EXPECT_EQ(with("0", two), "");
  EXPECT_THAT(with("2", two), HasSubstr("the last wait leaves 2 of 3"));
  EXPECT_THAT(with("1", one), HasSubstr("the last wait leaves 1 of 2"));
  // The read occurs in later iterations only, where the order of statements proves nothing, so it is accepted.
  EXPECT_EQ(Verdict("func f(x: f32[64], y: f32[64]) grid 1 lanes 4 { alloc s: f32[2,4] shared { for k in 5 {"
                    " copy 1 s[k %% 2, lane.id] = x[k * 4 + lane.id] commit"
                    " if k > 0 { wait 1 y[lane.id] = s[(k + 1) %% 2, lane.id] } } wait 0 } }"),
            "");
}

TEST(Multiple, FollowsTheStructureOfIndices) {
  const auto is = [](const std::string& index, int64_t n) {
    const Func func = ParseFunc("func f(y: i64[1]) { for i in 8 { for j in 8 { y[0] = " + index + " } } }").value();
    const Stmt store = func.body.As<For>()->body.As<For>()->body;
    return IsMultipleOf(store.As<Store>()->value, n);
  };
  EXPECT_TRUE(is("i * 8 + j * 12 - 4", 4));
  EXPECT_FALSE(is("i * 8 + j * 12 - 4", 8));
  EXPECT_FALSE(is("i * 8 + j", 4));
  EXPECT_TRUE(is("(i * 4) %% 16 + (j * 32) // 8", 4));
  EXPECT_FALSE(is("(i * 4) %% 6", 4));
  EXPECT_FALSE(is("(j * 16) // 8", 4));
  EXPECT_TRUE(is("min(i * 4, j * 8) * 2", 8));
  EXPECT_TRUE(is("min(i, 3) * 4", 4));
  EXPECT_TRUE(is("j", 1));
  EXPECT_FALSE(is("-2", 4));
  EXPECT_TRUE(is("-(i) * 4", 4));
  const BufferNode rows{"rows", DType::kFloat32, {5, 30}};
  EXPECT_TRUE(IsMultipleOf(rows, {MakeVar("i"), MakeVar("j") * Expr(2)}, 2));
  EXPECT_FALSE(IsMultipleOf(rows, {MakeVar("i"), MakeVar("j") * Expr(4)}, 4));
  EXPECT_TRUE(IsMultipleOf(rows, {MakeVar("i") * Expr(4)}, 4));
}

}  // namespace
}  // namespace hone::ir
