// SPDX-License-Identifier: Apache-2.0
// Copies by a group, and by groups that share them: text, verifier, interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "tests/unit/ir/eval_text.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

// Two groups of two lanes each add up rows of eight numbers that both groups copy, row after row.
constexpr char kLegal[] =
    "func f(x: f32[3,8], y: f32[4,2]) grid 4 lanes 2 {\n"
    "  alloc s: f32[2,8] shared {\n"
    "    if lane.id == 0 {\n"
    "      copy 8 group 2 s[0, 0] = x[0, 0]\n"
    "    }\n"
    "    commit\n"
    "    for k in 3 {\n"
    "      wait 0\n"
    "      barrier\n"
    "      if lane.id == 0 {\n"
    "        if k + 1 < 3 {\n"
    "          copy 8 group 2 s[(k + 1) %% 2, 0] = x[k + 1, 0]\n"
    "        }\n"
    "      }\n"
    "      commit\n"
    "      y[group.id, lane.id] = s[k %% 2, lane.id] + s[k %% 2, 7 - lane.id]\n"
    "    }\n"
    "    wait 0\n"
    "  }\n"
    "}\n";

std::string Verdict(const std::string& text, const GridLimits& limits = {}) {
  const auto func = ParseFunc(text);
  if (!func.ok()) return std::string(func.status().message());
  return std::string(Verify(*func, limits).message());
}

// Returns kLegal with `what` replaced by `other`.
std::string With(const std::string& what, const std::string& other) {
  std::string text = kLegal;
  return text.replace(text.find(what), what.size(), other);
}

// Two lanes that fill x with 10, 11, ... and then run the statements.
std::string Filled(const std::string& statements) {
  return "func f(x: i64[16], y: i64[2]) grid 1 lanes 2 { if lane.id == 0 { for i in 16 { x[i] = i + 10 } } barrier"
         " alloc s: i64[8] shared { " +
         statements + " } }";
}

TEST(BulkCopy, TextReadsBack) {
  const auto func = ParseFunc(kLegal);
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(Print(*func), kLegal);
  EXPECT_EQ(Verdict(kLegal), "");
  EXPECT_TRUE(HasBulkCopies(func->body));
  EXPECT_EQ(CountSharingGroups(func->body), 2);
  EXPECT_FALSE(Equal(*func, *ParseFunc(With("8 group 2", "8 group 4"))));
}

TEST(BulkCopy, ArrivesForAllLanesAfterWaitAndBarrier) {
  const std::string copy = "if lane.id == 0 { copy 8 s[0] = x[8] } commit ";
  EXPECT_EQ(RunText(Filled(copy + "wait 0 barrier y[lane.id] = s[7 - lane.id]")), "25 24");
  EXPECT_THAT(RunText(Filled(copy + "wait 0 y[lane.id] = s[7 - lane.id]")),
              HasSubstr("race on element 6 of 's': lane 1 of group 0 reads what lane 0 of group 0 wrote"));
  EXPECT_THAT(RunText(Filled(copy + "wait 1 barrier y[lane.id] = s[7 - lane.id]")),
              HasSubstr("reads element 7 of 's', to which lane 0 is still copying"));
}

TEST(BulkCopy, LimitsCommitGroupsInFlight) {
  const auto commit_groups = [](const std::string& first, int more) {
    return RunText(Filled(first + " commit for k in " + std::to_string(more) + " { commit } wait 0"));
  };
  const std::string copy = "if lane.id == 0 { copy 8 s[0] = x[8] }";
  EXPECT_EQ(commit_groups(copy, 7), "0 0");
  EXPECT_THAT(commit_groups(copy, 8), HasSubstr("9 commit groups are in flight; bulk copies allow up to 8"));
  EXPECT_EQ(commit_groups("copy 2 s[lane.id * 2] = x[lane.id * 2]", 8), "0 0");
  const auto verdict = [](const std::string& first) {
    std::string commits;
    for (int i = 0; i < 9; ++i) commits += " commit";
    return Verdict(Filled(first + commits + " wait 0"));
  };
  EXPECT_THAT(verdict(copy), HasSubstr("9 commit groups are in flight; bulk copies allow up to 8"));
  EXPECT_THAT(verdict(copy + " commit wait 0"), HasSubstr("9 commit groups are in flight"));
  EXPECT_EQ(verdict("copy 2 s[lane.id * 2] = x[lane.id * 2]"), "");
}

TEST(BulkCopyVerifier, RefusesWhatItIsNot) {
  const std::string first = "copy 8 group 2 s[0, 0] = x[0, 0]";
  EXPECT_THAT(
      Verdict(With(first, "copy 4 group 2 s[0, 0] = x[0, 0]")),
      HasSubstr(
          "copy to 's': 16 bytes by 2 groups; a bulk copy needs a multiple of 16 bytes for each group, up to 32768"));
  EXPECT_THAT(Verdict(With(first, "copy 9 s[0, 0] = x[0, 0]")), HasSubstr("36 bytes by 1 groups"));
  EXPECT_THAT(Verdict(With(first, "copy 8 group 0 s[0, 0] = x[0, 0]")), HasSubstr("by 0 groups"));
  EXPECT_THAT(Verdict(With(first, "copy 4 group 0 s[0, 0] = x[0, 0]")), HasSubstr("by 0 groups"));
  EXPECT_THAT(Verdict(With(first, "copy 8 group 1152921504606846976 s[0, 0] = x[0, 0]")),
              HasSubstr("by 1152921504606846976 groups"));
  EXPECT_THAT(Verdict(With(first, "copy 4611686018427387905 s[0, 0] = x[0, 0]")), HasSubstr("up to 32768"));
  EXPECT_THAT(Verdict(With(first, "copy 8 group 2 s[0, 0] = x[0, 0 where group.id < 2]")),
              HasSubstr("a bulk copy must not have a condition"));
  EXPECT_THAT(Verdict(With("] shared", "] swizzled")), HasSubstr("a bulk copy cannot write swizzled memory"));
  EXPECT_THAT(Verdict(With(first, "copy 8 group 2 s[0, 0] = x[0, 2]")),
              HasSubstr("its source in 'x' is not known to be aligned to 16 bytes"));
  EXPECT_THAT(Verdict(With(first, "copy 8 group 4 s[0, 0] = x[0, 0]")), HasSubstr("by 4 groups; a bulk copy needs"));
}

TEST(BulkCopyVerifier, OnlyTheFirstLaneMayIssueIt) {
  EXPECT_THAT(Verdict(With("if lane.id == 0 {", "if lane.id == 1 {")),
              HasSubstr("the bulk copy to 's' must be issued by the first lane alone"));
  EXPECT_THAT(Verdict(With("if lane.id == 0 {", "if lane.id < 1 {")),
              HasSubstr("must be issued by the first lane alone"));
  EXPECT_THAT(Verdict(With("if k + 1 < 3", "if lane.id < k")), HasSubstr("must be issued by the first lane alone"));
  EXPECT_THAT(Verdict(With("if k + 1 < 3", "if group.id < k")), HasSubstr("must be issued by the first lane alone"));
}

TEST(BulkCopyVerifier, SharingGroupsMustIssueTheSameCopy) {
  const std::string first = "x[0, 0]";
  EXPECT_EQ(Verdict(With(first, "x[group.id // 2, 0]")), "");
  const std::string copy = "if lane.id == 0 {\n      copy 8 group 2 s[0, 0] = x[0, 0]\n    }";
  const std::string of_g = "{ if lane.id == 0 { copy 8 group 2 s[0, 0] = x[g, 0] } }";
  EXPECT_EQ(Verdict(With(copy, "let g = group.id // 2 " + of_g)), "");
  EXPECT_THAT(Verdict(With(copy, "let g = (group.id + 1) // 2 " + of_g)), HasSubstr("do not copy the same elements"));
  EXPECT_THAT(Verdict(With(first, "x[group.id, 0]")),
              HasSubstr("the 2 groups that share a copy to 's' do not copy the same elements"));
  EXPECT_THAT(Verdict(With("s[0, 0] =", "s[group.id %% 2, 0] =")), HasSubstr("do not copy the same elements"));
  EXPECT_THAT(Verdict(With("grid 4", "grid 5")),
              HasSubstr("its copies are shared by 2 groups, which does not divide the 5"));
  EXPECT_THAT(
      Verdict(
          With("f32[3,8]", "f32[3,16]").replace(std::string(kLegal).find("copy 8 group 2") + 1, 14, "copy 16 group 4")),
      HasSubstr("its copies are shared by different numbers of groups"));
}

TEST(BulkCopyVerifier, SharingGroupsMustNotDiverge) {
  EXPECT_THAT(Verdict(With("for k in 3", "for k in group.id")),
              HasSubstr("a wait where lanes of a group may diverge: inside loop 'k' with extent group.id"));
  std::string apart = With("8 group 2", "8");
  apart.replace(apart.find("8 group 2"), 9, "8").replace(apart.find("k in 3"), 6, "k in group.id");
  EXPECT_EQ(Verdict(apart), "");
}

TEST(BulkCopyVerifier, ChecksTheLimitsOfTheTarget) {
  EXPECT_EQ(Verdict(kLegal, {.shared_bytes = 128, .sharing_groups = 2}), "");
  EXPECT_THAT(Verdict(kLegal, {.sharing_groups = 1}),
              HasSubstr("its copies are shared by 2 groups; the target allows up to 1"));
  EXPECT_THAT(Verdict(kLegal, {.shared_bytes = 127}), HasSubstr("to 128 bytes; the target has 127"));
}

}  // namespace
}  // namespace hone::ir
