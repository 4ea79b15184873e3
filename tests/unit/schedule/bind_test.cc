// SPDX-License-Identifier: Apache-2.0
// Schedules for targets with lanes: bound loops and shared memory, how passes lower them, and that results stay the
// same.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/status.h"
#include "compiler/execution/model.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"
#include "compiler/schedule/grid.h"
#include "compiler/schedule/spread.h"
#include "tests/unit/space/lowered.h"

namespace hone::schedule {
namespace {

using ::testing::HasSubstr;

constexpr char kMatMul[] = R"(workload "matmul"
input x: f32[13,9] in [-1, 1]
input w: f32[9,22] in [-1, 1]
t: f32[13,22] over i:13, j:22 = sum k:9 of x[i, k] * w[k, j]
u: f32[13,22] over a:13, b:22 = max(t[a, b], 0f32)
output u
)";

constexpr char kSoftmax[] = R"(workload "softmax"
input x: f32[5,37] in [-1, 1]
m: f32[5] over i:5 = max j:37 of x[i, j]
e: f32[5,37] over i1:5, j1:37 = exp(x[i1, j1] - m[i1])
s: f32[5] over i2:5 = sum j2:37 of e[i2, j2]
y: f32[5,37] over i3:5, j3:37 = e[i3, j3] / s[i3]
output y
)";

target::Target Lanes() {
  target::Target target = target::TypicalTarget(target::Kind::kOpenCl);
  target.hierarchy.max_lanes = 64;
  return target;
}

// A target whose lanes can read each other's registers.
target::Target Shuffling() {
  target::Target target = Lanes();
  target.hierarchy.shuffle_lanes = 32;
  return target;
}

absl::StatusOr<passes::Module> Lower(const ir::Workload& workload, const Schedule& schedule,
                                     const target::Target& target = Lanes()) {
  HONE_ASSIGN_OR_RETURN(const State state, Replay(workload, schedule));
  return execution::Lower(state, target, "kernel", {.verify = true});
}

// Runs the launches in the interpreter, which also finds races between lanes.
absl::Status Check(const ir::Workload& workload, const Schedule& schedule, const target::Target& target = Lanes()) {
  return hone::tests::CheckLowered(workload, schedule, target);
}

Schedule Parse(std::string_view text) { return ParseSchedule(text).value(); }
ir::Workload MatMul() { return ir::ParseWorkload(kMatMul).value(); }
ir::Workload Softmax() { return ir::ParseWorkload(kSoftmax).value(); }

// The partial results of 16 lanes are combined by 4 lanes and then by the first one.
TEST(Rfactor, PartialResultsAreReducedInPartsAgain) {
  const auto state = Replay(Softmax(), Parse("rfactor s j2 16 inner\nrfactor s j2y 4 inner\n"));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->FindNest("sf")->stage.buffer->shape, (std::vector<int64_t>{5, 16}));
  EXPECT_EQ(state->FindNest("sff")->stage.buffer->shape, (std::vector<int64_t>{5, 4}));
  EXPECT_EQ(Check(Softmax(), Parse("rfactor s j2 16 inner\nrfactor s j2y 4 inner\nbind i group\nbind i1 group\n"
                                   "bind i2 group\nbind i2f group\nbind i2ff group\nbind i3 group\n")),
            absl::OkStatus());
}

class BoundMatMul : public ::testing::TestWithParam<const char*> {};

TEST_P(BoundMatMul, KeepsTheMeaning) { EXPECT_EQ(Check(MatMul(), Parse(GetParam())), absl::OkStatus()); }

INSTANTIATE_TEST_SUITE_P(
    Schedules, BoundMatMul,
    ::testing::Values(
        "", "bind a group\nbind b lane", "bind a group\nbind b lane\ncompute_at t b",
        "fuse a b\nsplit a_b 64 mask\nbind a_bo group\nbind a_bi lane\ncompute_at t a_bi",
        // Register tiles of virtual lanes.
        "split a 4 mask\nsplit b 8 mask\nsplit bi 2 mask\nreorder ao bo bio ai bii\nbind ao group\nbind bo group\n"
        "bind bio lane\nunroll ai\nunroll bii\ncompute_at t bio\nreorder k i j\nunroll i\nunroll j",
        // Both operands staged in shared memory by all lanes.
        "cache_read x t\nstore_in xrt shared 1 2\ncache_read w t\nstore_in wrt shared 3\n"
        "split a 8 mask\nsplit b 8 mask\nreorder ao bo ai bi\nbind ao group\nbind bo group\nbind ai lane\nbind bi "
        "lane\n"
        "compute_at t bi\nsplit k 4 mask\nreorder ko ki i j\ncompute_at xrt ko\ncompute_at wrt ko\n"
        "fuse xrt_0 xrt_1\nbind xrt_0_xrt_1 lane\nfuse wrt_0 wrt_1\nsplit wrt_0_wrt_1 5 mask\nbind wrt_0_wrt_1o lane",
        // A whole stage is in shared memory, filled by fewer and by more iterations than there are lanes.
        "store_in t shared\nsplit b 6 mask\nreorder a bo bi\nbind a group\nbind bo lane\ncompute_at t a\nbind j lane",
        "store_in t shared\nreorder b a\nbind b group\nbind a lane\ncompute_at t b\nbind i lane",
        "store_in t shared\nsplit a 2 mask\nreorder ao b ai\nbind ao group\nbind b lane\ncompute_at t ao\nfuse i "
        "j\nbind i_j lane",
        // Filled by the first lane only.
        "store_in t shared\nbind a group\nbind b lane\ncompute_at t a",
        // Each lane takes every other column of six.
        "split_axis t j 2\nsplit b 6 mask\nsplit bi 2 mask\nreorder a bo bii bio\nbind a group\nbind bo group\n"
        "bind bii lane\ncompute_at t bii",
        // A reduction split across lanes. Each part has its lanes; the first half of them combines the results.
        "rfactor t k 2 inner\nstore_in tf shared\nstore_in t shared\nbind a group\nbind b lane\n"
        "compute_at t a\ncompute_at tf a\nreorder kyf if jf\nfuse kyf if\nfuse kyf_if jf\nbind kyf_if_jf lane\n"
        "bind j lane"));

// The masked tile of the fused loop covers a second i, which the stage lacks.
TEST(ComputeAt, AxisOfExtentOneIsAsWideAsTheTile) {
  const auto workload = ir::ParseWorkload(R"(workload "reduce"
input x: f32[2,7,12,3] in [-1, 1]
t: f32[2,1,7,12] over b:2, i:1, j:7, k:12 = sum r:3 of x[b, j, k, r]
output t
)");
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(Check(*workload, Parse("cache_write t\nstore_in tc shared\nbind b group\nfuse i j\nfuse i_j k\n"
                                   "split i_j_k 8 mask\nreorder b i_j_ki i_j_ko\nbind i_j_ki lane\n"
                                   "compute_at tc b\nfuse ic jc\nfuse ic_jc kc\nsplit ic_jc_kc 8 mask\n"
                                   "reorder bc ic_jc_kci ic_jc_kco rc\nbind ic_jc_kci lane")),
            absl::OkStatus());
}

TEST(BoundSoftmax, RowsInSharedMemoryKeepTheMeaning) {
  EXPECT_EQ(Check(Softmax(), Parse("store_in m shared\nstore_in e shared\nstore_in s shared\nsplit j3 8 mask\n"
                                   "reorder i3 j3i j3o\nbind i3 group\nbind j3i lane\ncompute_at s i3\n"
                                   "compute_at e i3\ncompute_at m i3\nsplit j1 8 mask\nreorder i1 j1i j1o\n"
                                   "bind i1 lane\nbind j1i lane")),
            absl::OkStatus());
  EXPECT_EQ(Check(Softmax(), Parse("rfactor m j 8 inner\nstore_in mf shared\nstore_in m shared\nstore_in e shared\n"
                                   "rfactor s j2 8 inner\nstore_in sf shared\nstore_in s shared\n"
                                   "split j3 8 mask\nreorder i3 j3i j3o\nbind i3 group\nbind j3i lane\n"
                                   "compute_at s i3\ncompute_at sf i3\ncompute_at e i3\ncompute_at m i3\n"
                                   "compute_at mf i3\nbind if lane\nbind jyf lane\nbind i2f lane\nbind j2yf lane\n"
                                   "split j1 8 mask\nreorder i1 j1i j1o\nbind i1 lane\nbind j1i lane")),
            absl::OkStatus());
}

TEST(BoundSoftmax, SpreadStagesAreOneLaunchEach) {
  const ir::Workload workload = Softmax();
  const Schedule spread = SpreadOverLanes(InitialState(workload), 16);
  EXPECT_EQ(Check(workload, spread), absl::OkStatus());
  const auto module = Lower(workload, spread);
  ASSERT_TRUE(module.ok()) << module.status();
  ASSERT_EQ(module->main.size(), 4);
  EXPECT_EQ(module->workspace.size(), 3);
  EXPECT_EQ(module->main[1].grid, (ir::Grid{12, 16}));  // 5 * 37 elements
}

// Five rows of 100 elements, each divided by the result of its reduction.
ir::Workload Rows(const std::string& type = "f32", const std::string& reduction = "sum") {
  return ir::ParseWorkload(fmt::format(R"(workload "rows"
input x: {0}[5,100] in [1, 2]
s: {0}[5] over i:5 = {1} j:100 of x[i, j]
y: {0}[5,100] over a:5, b:100 = x[a, b] - s[a]
output y
)",
                                       type, reduction))
      .value();
}

int Count(const ir::Stmt& s, bool (*is)(const ir::Stmt&)) {
  int count = is(s) ? 1 : 0;
  ir::ForEachChild(s, [&](const ir::Stmt& child) { count += Count(child, is); }, [](const ir::Expr&) {});
  return count;
}
bool IsBarrier(const ir::Stmt& s) { return s.As<ir::Barrier>() != nullptr; }
bool IsLaneReduce(const ir::Stmt& s) { return s.As<ir::LaneReduce>() != nullptr; }

struct Merging {
  const char* schedule;
  int barriers, merges;
};

// One set of lanes that shuffle, after which each lane has the result.
constexpr Merging kByAll = {
    "rfactor s j 32 inner\nsplit b 32 mask\nreorder a bi bo\nbind a group\nbind bi lane\n"
    "compute_at s a\nbind jy lane\ncompute_at sf jy",
    0, 1};
// Two sets of lanes; every lane adds up the results of both.
constexpr Merging kInTwo = {
    "rfactor s j 64 inner\nrfactor s jy 32 outer\nstore_in sff shared\nsplit b 64 mask\nreorder a bi bo\n"
    "bind a group\nbind bi lane\ncompute_at s a\ncompute_at sff a\nbind jyxff lane\nbind jyy lane\n"
    "compute_at sf jyy",
    1, 1};

class LaneReduceTest : public ::testing::TestWithParam<Merging> {};

TEST_P(LaneReduceTest, KeepTheMeaning) {
  const Schedule schedule = Parse(GetParam().schedule);
  EXPECT_EQ(Check(Rows(), schedule, Shuffling()), absl::OkStatus());
  const auto module = Lower(Rows(), schedule, Shuffling());
  ASSERT_TRUE(module.ok()) << module.status();
  ASSERT_EQ(module->main.size(), 1);
  EXPECT_EQ(Count(module->main[0].body, IsBarrier), GetParam().barriers) << ir::Print(module->main[0]);
  EXPECT_EQ(Count(module->main[0].body, IsLaneReduce), GetParam().merges) << ir::Print(module->main[0]);
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, LaneReduceTest,
    ::testing::Values(
        kByAll, kInTwo,
        // The first half of the lanes combines the results for all.
        Merging{"rfactor s j 32 inner\nstore_in s shared\nsplit b 64 mask\nreorder a bi bo\nbind a group\n"
                "bind bi lane\ncompute_at s a\nbind jy lane\ncompute_at sf jy",
                1, 1},
        // Eight of sixteen lanes combine the results.
        Merging{"rfactor s j 8 inner\nstore_in s shared\nsplit b 16 mask\nreorder a bi bo\nbind a group\n"
                "bind bi lane\ncompute_at s a\nbind jy lane\ncompute_at sf jy",
                1, 1},
        // All lanes combine the results; the output needs half of them.
        Merging{"rfactor s j 32 inner\nsplit b 16 mask\nreorder a bi bo\nbind a group\nbind bi lane\n"
                "compute_at s a\nbind jy lane\ncompute_at sf jy",
                0, 1},
        // A group has two rows and as many lanes as both rows have parts. The last tile extends past the last row.
        Merging{"rfactor s j 32 inner\nstore_in s shared\nsplit a 2 mask\nsplit b 32 mask\nreorder ao bi ai bo\n"
                "bind ao group\nbind bi lane\ncompute_at s ao\nbind i lane\nbind jy lane\ncompute_at sf jy",
                1, 1},
        // The row tile extends past the last row.
        Merging{"rfactor s j 8 inner\nstore_in s shared\nsplit a 3 mask\nsplit b 16 mask\nreorder ao bi ai bo\n"
                "bind ao group\nbind bi lane\ncompute_at s ao\nsplit i 2 mask\nbind io lane\nbind ii lane\n"
                "bind jy lane\ncompute_at sf jy",
                1, 1},
        // The results of the lanes are not stored at the lane's own loop.
        Merging{"rfactor s j 16 inner\nstore_in sf shared\nsplit b 16 mask\nreorder a bi bo\nbind a group\n"
                "bind bi lane\ncompute_at s a\nbind jy lane\ncompute_at sf a\nbind jyf lane",
                1, 1}));

TEST(LaneReduce, KeepsTheMeaningOfEveryReductionAndType) {
  for (const char* type : {"f32", "f64", "i32", "i64", "u8"}) {
    for (const char* reduction : {"sum", "prod", "max", "min"}) {
      for (const Merging& merging : {kByAll, kInTwo}) {
        EXPECT_EQ(Check(Rows(type, reduction), Parse(merging.schedule), Shuffling()), absl::OkStatus())
            << type << " " << reduction << "\n"
            << merging.schedule;
      }
    }
  }
}

// The output has no lanes, so all lanes take part in the reduction.
TEST(LaneReduce, ARowOfOneElementNeedsNoSharedMemory) {
  const auto workload = ir::ParseWorkload(R"(workload "reduce"
input x: f32[5,100] in [-1, 1]
t: f32[5] over i:5 = sum j:100 of x[i, j]
output t
)");
  const Schedule schedule =
      Parse("cache_write t\nrfactor tc jc 32 inner\nbind i group\ncompute_at tc i\nbind jcy lane\ncompute_at tcf jcy");
  EXPECT_EQ(Check(*workload, schedule, Shuffling()), absl::OkStatus());
  const auto module = Lower(*workload, schedule, Shuffling());
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(module->main[0].grid, (ir::Grid{5, 32}));
  const State state = Replay(*workload, schedule).value();
  EXPECT_EQ(Grids(state)[0].lanes, 32);
  EXPECT_EQ(Grids(state)[0].shared_bytes, 0);
  EXPECT_EQ(Count(module->main[0].body, IsBarrier), 0);
}

struct Illegal {
  const char* schedule;
  const char* message;
};
class IllegalBound : public ::testing::TestWithParam<Illegal> {};

TEST_P(IllegalBound, SaysWhichLoopAndWhy) {
  EXPECT_THAT(std::string(Lower(MatMul(), Parse(GetParam().schedule)).status().message()),
              HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Steps, IllegalBound,
    ::testing::Values(Illegal{"bind k lane", "loop k is a reduction"},
                      Illegal{"bind b group", "loop a encloses loop b: reorder"},
                      Illegal{"bind a lane\nbind b group", "loop a encloses loop b: reorder"},
                      Illegal{"store_in u shared", "stage u is an output"},
                      Illegal{"store_in t shared", "stage t is stored in shared memory but not computed inside a loop"},
                      Illegal{"bind a group\ncompute_at t a\nbind i lane",
                              "its loops can only be lanes, and only if it is in shared memory"},
                      Illegal{"split a 4 shift\nbind ao group", "tiles of loop ao overlap: lanes would write"},
                      Illegal{"store_in t shared\nbind a group\ncompute_at t a\nbind b lane", "bind the lanes first"},
                      Illegal{"store_in t shared -1", "padding of -1 elements"},
                      Illegal{"store_in t swizzled 1", "swizzled memory cannot have padding"},
                      Illegal{"store_in t shared 1 3",
                              "a row of 3 dimensions; for stage t the number must be from 1 to 2"},
                      Illegal{"compute_at t a\nstore_in t shared", "stage t is scheduled already"},
                      Illegal{"bind b group\nbind a lane", "loop a encloses loop b"},
                      Illegal{"fuse a b\nbind a_b lane", "its groups have 286 lanes; the target allows up to 64"},
                      Illegal{"split a 4 peel\nbind ai lane", "loop ai has no constant extent"}));

class IllegalLaneReduce : public ::testing::TestWithParam<Illegal> {};

TEST_P(IllegalLaneReduce, SaysWhichLoopAndWhy) {
  const auto module = Lower(Rows(), Parse(GetParam().schedule), Shuffling());
  EXPECT_EQ(module.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(module.status().message()), HasSubstr(GetParam().message));
}

constexpr char kTooFew[] =
    "rfactor s j 32 inner\nsplit b 64 mask\nreorder a bi bo\nbind a group\nbind bi lane\ncompute_at s a\n"
    "bind jy lane\ncompute_at sf jy";

INSTANTIATE_TEST_SUITE_P(
    Steps, IllegalLaneReduce,
    ::testing::Values(
        Illegal{"bind j lane", "only lanes can share one, in a stage that is computed inside a loop"},
        Illegal{"bind a group\ncompute_at s a\nbind j group", "only lanes can share one"},
        Illegal{"bind a group\ncompute_at s a\nbind j lane",
                "loop j is a reduction of 100 iterations; lanes can share 2 to 32, a constant power of two"},
        Illegal{"rfactor s j 64 inner\nbind a group\ncompute_at s a\nbind jy lane",
                "loop jy is a reduction of 64 iterations; lanes can share"},
        Illegal{"rfactor s j 12 inner\nbind a group\ncompute_at s a\nbind jy lane",
                "loop jy is a reduction of 12 iterations; lanes can share"},
        Illegal{"bind a group\ncompute_at s a\nsplit j 32 peel\nbind ji lane",
                "a reduction of an unknown number of iterations"},
        Illegal{"bind a group\ncompute_at s a\nsplit j 4 mask\nreorder ji jo\nbind ji lane",
                "loop jo is inside loop ji, a reduction that lanes share"},
        Illegal{"bind a group\ncompute_at s a\nsplit j 4 mask\nbind ji lane", "loop jo encloses loop ji"},
        Illegal{"split a 2 mask\nbind ao group\nrfactor s j 4 inner\ncompute_at s ao\nbind jy lane",
                "loop i encloses loop jy: reorder"},
        Illegal{"split a 2 mask\nbind ao group\nrfactor s j 4 inner\nstore_in s shared\ncompute_at s ao\n"
                "bind i lane\nbind jy lane\nreorder jy i",
                "loop i is inside loop jy"},
        Illegal{kTooFew, "the result of the lane reduction to 's' is local to each lane, but not all 64 lanes"},
        Illegal{"rfactor s j 32 inner\nstore_in s shared\nsplit b 48 mask\nreorder a bi bo\nbind a group\n"
                "bind bi lane\ncompute_at s a\nbind jy lane\ncompute_at sf jy",
                "a lane reduction has 32 parts, which does not divide the 48 lanes"},
        Illegal{"rfactor s j 4 inner\nbind a group\nbind b lane\ncompute_at s b\nbind jy lane",
                "lane loop jy is inside another"}));

TEST(LaneReduce, ATargetWithoutLanesRejectsIt) {
  const auto replayed =
      Replay(Rows(), Parse("bind a group\ncompute_at s a\nsplit j 4 mask\nreorder ji jo\nbind ji lane"));
  EXPECT_THAT(std::string(replayed.status().message()), HasSubstr("illegal step 'bind ji lane': loop jo is inside"));
}

TEST(LaneReduce, ATargetWithoutShufflesRejectsIt) {
  EXPECT_THAT(
      std::string(Lower(Rows(), Parse(kByAll.schedule)).status().message()),
      HasSubstr("loop jy is a reduction that 32 lanes share; lanes of the target can share one of up to 0 iterations"));
}

TEST(BoundSchedule, TextReadsBack) {
  const std::string text = "store_in t shared\nstore_in w local 4\nstore_in v shared 0 2\nbind a group\nbind b lane\n";
  EXPECT_EQ(Print(Parse(text)), text);
  EXPECT_FALSE(ParseSchedule("bind a").ok());
  EXPECT_FALSE(ParseSchedule("bind a parallel").ok());
  EXPECT_FALSE(ParseSchedule("store_in t param").ok());
  EXPECT_FALSE(ParseSchedule("store_in t shared 1 2 3").ok());
}

// PoCL 3.1 makes wrong code of barriers inside a condition.
TEST(BindOpenGroups, ThereIsNoConditionAroundBarriers) {
  auto func = ir::ParseFunc(
      "func f(a: f32[96], sizes: i64[1]) { let n = min(max(sizes[0], 0), 24) { group i in n {"
      "  alloc t: f32[4] shared { block t { lane k in 4 { t[k] = a[i * 4 + k] } }"
      "  lane j in 4 { a[i * 4 + j] = t[3 - j] } } } } }");
  ASSERT_TRUE(func.ok()) << func.status();
  ASSERT_EQ(passes::Bind(*func), absl::OkStatus());
  const std::string text = ir::Print(*func);
  EXPECT_NE(text.find("min(group.id, max(n - 1, 0))"), std::string::npos) << text;
  EXPECT_EQ(text.find("if group.id"), std::string::npos) << text;
}

}  // namespace
}  // namespace hone::schedule
