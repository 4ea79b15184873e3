// SPDX-License-Identifier: Apache-2.0
// Funcs with a grid: their text, the verifier, and the interpreter's lanes, barriers and races.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/ir/interpret.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "tests/unit/ir/eval_text.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

std::string Verdict(const std::string& text, const GridLimits& limits = {}) {
  const auto func = ParseFunc(text);
  EXPECT_TRUE(func.ok()) << func.status();
  return std::string(Verify(*func, limits).message());
}

// Lanes reverse a row through shared memory.
constexpr char kReverse[] =
    "func f(x: i64[8], out: i64[8]) grid 2 lanes 4 {\n"
    "  alloc row: i64[4] shared {\n"
    "    row[lane.id] = x[group.id * 4 + lane.id]\n"
    "    barrier\n"
    "    out[group.id * 4 + lane.id] = row[3 - lane.id]\n"
    "  }\n"
    "}\n";

TEST(Grid, TextReadsBack) {
  const auto func = ParseFunc(kReverse);
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(func->grid, (Grid{2, 4}));
  EXPECT_EQ(Print(*func), kReverse);
  EXPECT_EQ(Verdict(kReverse), "");
}

// A group for every four elements of n.
std::string OpenGroups(const std::string& grid) {
  return "func f(x: i64[40], sizes: i64[1]) " + grid +
         " {\n"
         "  let n = min(max(sizes[0], 1), 40) {\n"
         "    if group.id * 4 + lane.id < n {\n"
         "      x[group.id * 4 + lane.id] = n\n"
         "    }\n"
         "  }\n"
         "}\n";
}

TEST(Grid, GroupsOfOpenSizesReadBack) {
  const std::string text = OpenGroups("grid 10 lanes 4 sizes n groups (n + 3) // 4");
  const auto func = ParseFunc(text);
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(func->grid.groups, 10);
  EXPECT_EQ(Print(*func), text);
  EXPECT_EQ(Verdict(text), "");
  EXPECT_NE(func->grid, (Grid{10, 4}));
  EXPECT_THAT(ParseFunc(OpenGroups("grid 10 lanes 4 sizes n groups n < 4")).status().message(),
              HasSubstr("a number of groups must be an i64"));
}

TEST(Grid, TheNumberOfGroupsMustFollowFromTheSizes) {
  EXPECT_THAT(Verdict(OpenGroups("grid 9 lanes 4 sizes n groups (n + 3) // 4")),
              HasSubstr("its number of groups, (n + 3) // 4, may be more than 9"));
  EXPECT_THAT(Verdict(OpenGroups("grid 10 lanes 4 sizes m groups (m + 3) // 4")),
              HasSubstr("its number of groups, (m + 3) // 4, is not arithmetic on its sizes"));
}

TEST(Grid, BoundLoopsReadBackAndRunOneAfterTheOther) {
  const std::string text =
      "func f(out: i64[8]) {\n  group i in 2 {\n    lane j in 4 {\n      out[i * 4 + j] = i * j\n    }\n  }\n}\n";
  const auto func = ParseFunc(text);
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(Print(*func), text);
  EXPECT_EQ(RunText(text), "0 0 0 0 0 1 2 3");
}

TEST(Grid, EveryLaneOfEveryGroupRuns) {
  EXPECT_EQ(RunText("func f(out: i64[6]) grid 3 lanes 2 { out[group.id * 2 + lane.id] = group.id * 10 + lane.id }"),
            "0 1 10 11 20 21");
}

TEST(Grid, SharedMemoryCarriesValuesAcrossABarrier) {
  EXPECT_EQ(RunText("func f(out: i64[4]) grid 1 lanes 4 { alloc s: i64[4] shared {"
                    "  s[lane.id] = lane.id * lane.id barrier out[lane.id] = s[3 - lane.id] } }"),
            "9 4 1 0");
}

TEST(Grid, LocalMemoryLivesAcrossBarriersInLoops) {
  EXPECT_EQ(RunText("func f(out: i64[3]) grid 1 lanes 3 { alloc s: i64[1] shared { alloc t: i64[1] local {"
                    "  t[0] = 0"
                    "  for k in 4 { if lane.id == 0 { s[0] = k } barrier t[0] = t[0] + s[0] * lane.id barrier }"
                    "  out[lane.id] = t[0] } } }"),
            "0 6 12");
}

TEST(Grid, AMissingBarrierIsARace) {
  EXPECT_THAT(
      RunText("func f(out: i64[4]) grid 1 lanes 4 { alloc s: i64[4] shared {"
              "  s[lane.id] = lane.id out[lane.id] = s[3 - lane.id] } }"),
      HasSubstr(
          "race on element 2 of 's': lane 2 of group 0 writes what lane 1 of group 0 read since the last barrier"));
  EXPECT_THAT(RunText("func f(out: i64[1]) grid 1 lanes 4 { out[0] = lane.id }"),
              HasSubstr("lane 1 of group 0 writes what lane 0 of group 0 wrote since the last barrier"));
}

TEST(Grid, ABarrierMissingInALoopIsARace) {
  EXPECT_THAT(RunText("func f(out: i64[3]) grid 1 lanes 3 { alloc s: i64[1] shared {"
                      "  for k in 4 { if lane.id == 0 { s[0] = k } barrier out[lane.id] = s[0] } } }"),
              HasSubstr("lane 0 of group 0 writes what"));
}

TEST(Grid, GroupsThatAccessOneElementRace) {
  EXPECT_THAT(RunText("func f(out: i64[2]) grid 2 lanes 1 { out[0] = group.id }"),
              HasSubstr("lane 0 of group 1 writes what lane 0 of group 0 wrote"));
  EXPECT_THAT(RunText("func f(out: i64[4]) grid 3 lanes 1 {"
                      "  if group.id < 2 { out[group.id + 1] = out[0] } else { out[0] = 7 } }"),
              HasSubstr("lane 0 of group 2 writes what lane 0 of group 1 read"));
}

TEST(Grid, LanesMayReadTheSameElement) {
  EXPECT_EQ(RunText("func f(out: i64[2]) grid 1 lanes 2 { alloc s: i64[1] shared {"
                    "  if lane.id == 1 { s[0] = 5 } barrier out[lane.id] = s[0] + s[0] } }"),
            "10 10");
}

TEST(GridVerifier, RejectsABarrierInDivergentCode) {
  EXPECT_THAT(Verdict("func f(out: i64[4]) grid 1 lanes 4 { block t { if lane.id < 2 { barrier } } }"),
              HasSubstr("func 'f': block 't': a barrier where lanes of a group may diverge: inside 'if lane.id < 2'"));
  EXPECT_THAT(Verdict("func f(out: i64[4]) grid 1 lanes 4 { let n = lane.id + 1 { for i in n { barrier } } }"),
              HasSubstr("inside loop 'i' with extent n"));
  EXPECT_THAT(Verdict("func f(out: i64[4]) grid 1 lanes 4 { alloc t: i64[1] local { t[0] = lane.id"
                      " if t[0] < 2 { barrier } } }"),
              HasSubstr("inside 'if t[0] < 2'"));
  EXPECT_EQ(Verdict("func f(out: i64[4]) grid 2 lanes 4 { for i in group.id { if i < 1 { barrier } } }"), "");
}

TEST(GridVerifier, RefusesTooManyLanes) {
  EXPECT_THAT(Verdict("func f(out: i64[4]) grid 1 lanes 512 { out[0] = 1 }", {.max_lanes = 256}),
              HasSubstr("its groups have 512 lanes; the target allows up to 256"));
}

TEST(GridVerifier, TerminatesOnHostileText) {
  EXPECT_THAT(std::string(ParseFunc("func f() grid 1 lanes 4611686018427387904 {}").status().message()),
              HasSubstr("a grid has at most"));
  std::string lets, ends;
  for (int i = 1; i <= 100; ++i) {
    const std::string before = "a" + std::to_string(i - 1);
    lets += "let a" + std::to_string(i) + " = " + before + " + " + before + " { ";
    ends += "}";
  }
  EXPECT_THAT(Verdict("func f() grid 1 lanes 4 { let a0 = lane.id { " + lets + ends + "} }"),
              HasSubstr("takes more than 65536 operations on lane.id"));
}

TEST(GridVerifier, RefusesTooMuchSharedMemory) {
  const char* text =
      "func f(out: i64[4]) grid 1 lanes 4 { alloc a: f32[512] shared { alloc b: f32[1024] shared { out[0] = 1 } } }";
  EXPECT_THAT(Verdict(text, {.shared_bytes = 4096}),
              HasSubstr("alloc of 'b' raises the shared memory of a group to 6144 bytes; the target has 4096"));
  EXPECT_EQ(Verdict(text, {.shared_bytes = 6144}), "");
}

TEST(GridVerifier, CountsSharedBuffersOfDisjointLifetimes) {
  const char* text =
      "func f(out: i64[4]) grid 1 lanes 4 { alloc a: f32[512] shared { out[0] = 1 } alloc b: f32[1024] shared {"
      " out[1] = 1 } }";
  EXPECT_THAT(Verdict(text, {.shared_bytes = 4096}),
              HasSubstr("alloc of 'b' raises the shared memory of a group to 6144 bytes; the target has 4096"));
  EXPECT_EQ(Verdict(text, {.shared_bytes = 6144}), "");
}

// Each shared buffer begins at a multiple of 64 bytes.
TEST(GridVerifier, CountsPaddingBetweenSharedBuffers) {
  const char* text =
      "func f(out: i64[4]) grid 1 lanes 4 { alloc a: f32[500] shared { alloc b: f32[524] shared { out[0] = 1 } } }";
  EXPECT_THAT(Verdict(text, {.shared_bytes = 4159}), HasSubstr("to 4160 bytes; the target has 4159"));
  EXPECT_EQ(Verdict(text, {.shared_bytes = 4160}), "");
}

// Iterations of an unrolled or split loop share one buffer.
TEST(GridVerifier, CountsEachSharedBufferOnce) {
  auto func = ParseFunc("func f(out: i64[4]) grid 1 lanes 4 { alloc a: f32[512] shared { out[0] = 1 } }");
  ASSERT_TRUE(func.ok()) << func.status();
  func->body = MakeBlock({func->body, func->body});
  EXPECT_EQ(VerifyGrid(*func, {.shared_bytes = 2048}), absl::OkStatus());
}

TEST(GridVerifier, RejectsGridStatementsWithoutAGrid) {
  EXPECT_THAT(Verdict("func f(out: i64[4]) { barrier }"), HasSubstr("a barrier is allowed only in a func with a grid"));
  EXPECT_THAT(Verdict("func f(out: i64[4]) grid 1 lanes 4 { parallel i in 4 { out[i] = 1 } }"),
              HasSubstr("loop 'i' is parallel, which is not allowed in a func with a grid"));
  EXPECT_THAT(Verdict("func f(out: i64[4]) grid 1 lanes 4 { lane i in 4 { out[i] = 1 } }"),
              HasSubstr("loop 'i' is bound, which is not allowed in a func with a grid"));
  EXPECT_THAT(Verdict("func f(out: i64[4]) grid 1 lanes 4 { alloc t: i64[4] workspace { out[0] = 1 } }"),
              HasSubstr("alloc of 't' in the workspace"));
  EXPECT_THAT(
      Verdict("func f(out: i64[4]) grid 1 lanes 4 { if lane.id < 2 { alloc t: i64[4] shared { out[0] = 1 } } }"),
      HasSubstr("alloc of shared 't' where lanes of a group may diverge: inside 'if lane.id < 2'"));
}

}  // namespace
}  // namespace hone::ir
