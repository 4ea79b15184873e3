// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "compiler/execution/model.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"
#include "tests/unit/space/compiled.h"
#include "tests/unit/space/lowered.h"

namespace hone::schedule {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMatMul[] = R"(workload "matmul"
input x: f32[13,9] in [-1, 1]
const w: f32[9,22] in [-1, 1]
t: f32[13,22] over i:13, j:22 = sum k:9 of x[i, k] * w[k, j]
u: f32[13,22] over a:13, b:22 = max(t[a, b], 0f32)
output u
)";

ir::Workload MatMul() { return ir::ParseWorkload(kMatMul).value(); }

Schedule Parse(std::string_view text) { return ParseSchedule(text).value(); }

absl::Status ReplayError(std::string_view text) { return Replay(MatMul(), Parse(text)).status(); }

// Every legal schedule must compute the same as the workload's definition.
class LegalSchedule : public ::testing::TestWithParam<const char*> {};

TEST_P(LegalSchedule, KeepsTheMeaning) {
  EXPECT_EQ(hone::tests::CheckLowered(MatMul(), Parse(GetParam()), {}), absl::OkStatus());
  const auto target = target::ParseTarget("cpu");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(hone::tests::CheckCompiled(MatMul(), Parse(GetParam()), *target), absl::OkStatus());
}

INSTANTIATE_TEST_SUITE_P(
    Steps, LegalSchedule,
    ::testing::Values("", "split i 4 mask", "split i 4 shift", "split i 4 peel", "split i 13 mask", "split i 100 mask",
                      "split i 4 peel\nsplit io 2 mask\nunroll ii", "split j 8 peel\nsplit jo 2 mask\nvectorize ji",
                      "split k 4 mask", "split k 4 peel", "fuse i j", "fuse a b\nparallel a_b", "reorder j i",
                      "reorder k i j", "reorder k j i\nvectorize i", "split j 8 mask\nvectorize ji",
                      "split j 8 peel\nvectorize ji", "split b 8 shift\nvectorize bi", "unroll k", "unroll i",
                      "vectorize j", "cache_write t", "cache_write t\ncompute_at tc i", "cache_read x t",
                      "split i 3 shift\nsplit io 2 shift\ncache_read x t\ncompute_at xrt ioo",
                      "split j 4 shift\nsplit jo 4 shift\nreorder joo joi ji i\ncache_read w t\ncompute_at wrt joo",
                      "cache_read x t\ncompute_at xrt i", "cache_read w t\ncompute_at wrt j",
                      "split k 4 peel\ncache_read w t\ncompute_at wrt j", "pack w t 1/8 0 1%8", "pack x t 0/4 1 0%4",
                      "pack w t 1/8 0/2 0%2 1%8", "rfactor t k 4 outer", "rfactor t k 4 inner",
                      "rfactor t k 3 outer\ncompute_at tf i", "rfactor t k 4 outer first",
                      "rfactor t k 3 inner first\ncompute_at tf i", "split_axis t j 11", "split_axis t i 1",
                      "split_axis t j 4", "split_axis t j 100",
                      "split_axis t j 2\nsplit b 6 mask\nsplit bi 2 mask\nreorder a bo bii bio\ncompute_at t bii",
                      "compute_at t a", "compute_at t b", "split a 4 mask\ncompute_at t ao",
                      "split a 4 peel\ncompute_at t ao", "split a 4 shift\ncompute_at t ao",
                      "split a 5 peel\nsplit b 8 peel\nreorder ao bo ai bi\nparallel ao\ncompute_at t bo\nreorder k i "
                      "j\nunroll i\nvectorize j",
                      "split a 5 shift\nsplit b 16 mask\nreorder bo ao ai bi\nunroll ai\nvectorize bi\nfuse bo "
                      "ao\nparallel bo_ao\ncompute_at t bo_ao\nreorder k i j\nunroll i\nvectorize j",
                      "pack w t 1/8 0 1%8\nsplit b 8 mask\nreorder bo a bi\nparallel bo\ncompute_at t a\nreorder k i "
                      "j\nvectorize j\nprefetch wpt t bo 2",
                      "reorder j i k\nprefetch w t j 1"),
    [](const auto& info) { return "schedule_" + std::to_string(info.index); });

// Only the rows of a block's tiles are copied, although both the tiles and the blocks are shifted.
TEST(ComputeAt, BlocksOfShiftedTilesCopyTheirOwnRows) {
  const State state =
      Replay(MatMul(), Parse("split i 3 shift\nsplit io 2 shift\ncache_read x t\ncompute_at xrt ioo")).value();
  EXPECT_EQ(state.FindNest("xrt")->storage.shape[0], 6);
}

// An index that is bounded above, but begins below 0: it is no tile of the axis.
TEST(ComputeAt, AnIndexThatBeginsBelowZeroKeepsItsBase) {
  const auto workload = ir::ParseWorkload(R"(workload "moved"
input x: f32[64] in [-1, 1]
t: f32[64] over i:64 = x[i] * 2.0f32
y: f32[5,8] over b:5, j:8 = sum r:3 of t[min(j - 3, b + 2) + r + b * 10 + 3]
output y
)");
  ASSERT_TRUE(workload.ok()) << workload.status();
  const auto target = target::ParseTarget("cpu");
  EXPECT_EQ(hone::tests::CheckLowered(*workload, Parse("compute_at t b"), *target), absl::OkStatus());
}

constexpr char kPadded[] = R"(workload "conv3d"
input x: f32[4,5,6,3] in [-1, 1]
const w: f32[3,3,3,3,8] in [-1, 1]
p: f32[6,7,8,3] over pd:6, ph:7, pv:8, pc:3 = )"
                           R"(select(pd >= 1 && pd < 5 && ph >= 1 && ph < 6 && pv >= 1 && pv < 7, )"
                           R"(x[pd - 1, ph - 1, pv - 1, pc], 0f32)
t: f32[4,5,6,8] over d:4, h:5, v:6, f:8 = )"
                           R"(sum kd:3, kh:3, kv:3, c:3 of p[d + kd, h + kh, v + kv, c] * w[kd, kh, kv, c, f]
output t
)";

// The step reduces how often the statement inside all loops of t runs, and must not change the sum.
TEST(SkipPadding, SkipsIterationsByConditionsOfOuterReductionLoops) {
  const ir::Workload workload = ir::ParseWorkload(kPadded).value();
  const auto target = target::ParseTarget("cpu");
  ASSERT_TRUE(target.ok()) << target.status();
  const auto lowered = [&](std::string_view text) {
    EXPECT_EQ(hone::tests::CheckLowered(workload, Parse(text), *target), absl::OkStatus()) << text;
    EXPECT_EQ(hone::tests::CheckCompiled(workload, Parse(text), *target), absl::OkStatus()) << text;
    return ir::Print(execution::Lower(Replay(workload, Parse(text)).value(), *target, "k")->main[0]);
  };
  const std::string rows = "reorder d h kd kh kv c v f\nvectorize f\n";
  EXPECT_THAT(lowered(rows + "skip_padding t"), AllOf(HasSubstr("if d + kd"), HasSubstr("if h + kh")));
  EXPECT_THAT(lowered(rows), Not(HasSubstr("if d + kd")));
  EXPECT_THAT(lowered("cache_write t\ncompute_at tc h\nskip_padding tc\nreorder kdc khc kvc cc dc hc vc fc\n"),
              HasSubstr("if d + kdc"))
      << "the loop over the only plane that is computed there is inside";
  EXPECT_THAT(lowered("reorder d kd kh kv c h v f\nskip_padding t"),
              AllOf(HasSubstr("if d + kd"), Not(HasSubstr("if h + kh"))))
      << "rows are inside of the reduction";
  EXPECT_THAT(lowered("inline p\n" + rows + "skip_padding t"), HasSubstr("if d + kd"));
}

TEST(SkipPadding, SaysWhatDoesNotFit) {
  EXPECT_THAT(std::string(ReplayError("skip_padding t").message()), HasSubstr("no factor that is padded with 0"));
  EXPECT_THAT(
      std::string(
          Replay(ir::ParseWorkload(kPadded).value(), Parse("skip_padding t\nrfactor t c 3 outer")).status().message()),
      HasSubstr("scheduled already"));
  const auto thresholded = ir::ParseWorkload(R"(workload "matmul"
input x: f32[13,9] in [-1, 1]
const w: f32[9,22] in [-1, 1]
p: f32[13,9] over a:13, b:9 = select(x[a, b] > 0.25f32, x[a, b], 0f32)
t: f32[13,22] over i:13, j:22 = sum k:9 of p[i, k] * w[k, j]
output t
)");
  ASSERT_TRUE(thresholded.ok()) << thresholded.status();
  EXPECT_THAT(std::string(Replay(*thresholded, Parse("skip_padding t")).status().message()),
              HasSubstr("no factor that is padded with 0"))
      << "where numbers are 0 is no padding";
  EXPECT_THAT(std::string(ReplayError("skip_padding u").message()), HasSubstr("stage u is not a sum of products"));
  EXPECT_THAT(std::string(ReplayError("skip_padding q").message()), HasSubstr("no stage q"));
}

// A product whose weights have a scale for each 8 steps of the sum.
constexpr char kScaled[] = R"(workload "matmul"
input x: f32[5,20] in [-1, 1]
const w: f32[20,22] in [-1, 1]
const g: f32[22,3] in [-1, 1]
t: f32[5,22] over i:5, j:22 = sum k:20 of x[i, k] * (w[k, j] * g[j, k // 8])
output t
)";

TEST(FactorOut, KeepsTheMeaning) {
  const ir::Workload workload = ir::ParseWorkload(kScaled).value();
  const auto target = target::ParseTarget("cpu");
  ASSERT_TRUE(target.ok()) << target.status();
  for (const std::string_view text :
       {"rfactor t k 8 outer first\nfactor_out tf", "rfactor t k 8 outer first\nfactor_out tf\ninline tf",
        "rfactor t k 8 outer first\nfactor_out tf\ninline tf\npack w tfu 0 1/8 1%8\npack g t 0/8 1 0%8\n"
        "split j 8 mask\nreorder i jo kx ji\nvectorize ji\ncompute_at tfu kx\nvectorize jfu"}) {
    EXPECT_EQ(hone::tests::CheckLowered(workload, Parse(text), *target), absl::OkStatus()) << text;
    EXPECT_EQ(hone::tests::CheckCompiled(workload, Parse(text), *target), absl::OkStatus()) << text;
  }
}

// The sums of a block do not read its scale, which is applied to the result.
TEST(FactorOut, LeavesTheVaryingFactors) {
  const State state =
      Replay(ir::ParseWorkload(kScaled).value(), Parse("rfactor t k 8 outer first\nfactor_out tf")).value();
  EXPECT_EQ(FindLoadedBuffer(state.FindNest("tfu")->stage, "g"), nullptr);
  EXPECT_NE(FindLoadedBuffer(state.FindNest("tf")->stage, "g"), nullptr);
  EXPECT_EQ(FindLoadedBuffer(state.FindNest("tf")->stage, "w"), nullptr);
}

TEST(FactorOut, SaysWhatDoesNotFit) {
  const auto error = [](std::string_view text) {
    return std::string(Replay(ir::ParseWorkload(kScaled).value(), Parse(text)).status().message());
  };
  EXPECT_THAT(error("factor_out t"), HasSubstr("not a sum of products with a factor that is the same all along it"));
  EXPECT_THAT(error("rfactor t k 8 outer first\nfactor_out t"), HasSubstr("not a sum of products"));
  EXPECT_THAT(error("split i 2 mask\nfactor_out t"), HasSubstr("scheduled already"));
  EXPECT_THAT(error("factor_out q"), HasSubstr("no stage q"));
  EXPECT_THAT(std::string(ReplayError("factor_out u").message()), HasSubstr("stage u is not a sum"));
}

struct Illegal {
  const char* schedule;
  const char* message;
};
class IllegalSchedule : public ::testing::TestWithParam<Illegal> {};

TEST_P(IllegalSchedule, SaysWhichLoopAndWhy) {
  absl::Status status = ReplayError(GetParam().schedule);
  if (status.ok())
    status = execution::Lower(Replay(MatMul(), Parse(GetParam().schedule)).value(), {}, "kernel").status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Steps, IllegalSchedule,
    ::testing::Values(
        Illegal{"split q 4 mask", "no loop q"}, Illegal{"split i 0 mask", "less than 1"},
        Illegal{"split k 4 shift", "must not overlap"}, Illegal{"split i 20 shift", "fewer than the tile of 20"},
        Illegal{"vectorize k", "rfactor it first"}, Illegal{"parallel k", "reduction"},
        Illegal{"parallel i\nparallel j", "parallel already"}, Illegal{"unroll i\nsplit i 2 mask", "annotated already"},
        Illegal{"fuse i k", "not directly inside"}, Illegal{"fuse j k", "the other is not"},
        Illegal{"reorder i a", "another stage"}, Illegal{"reorder i i", "named twice"},
        Illegal{"inline t", "is a reduction"}, Illegal{"inline u", "is an output"},
        Illegal{"compute_at u i", "is an output"}, Illegal{"compute_at t i", "loop i belongs to stage t itself"},
        Illegal{"compute_at t a\nsplit a 2 mask", "at which stage t is computed"},
        Illegal{"split i 2 mask\ncompute_at t a", "scheduled already"},
        Illegal{"vectorize b\ncompute_at t b", "vectorized or unrolled already"},
        Illegal{"compute_at t a\nparallel i", "only a top-level stage"}, Illegal{"cache_read w u", "does not read w"},
        Illegal{"pack w t 0 1 1", "once whole"}, Illegal{"pack w t 1/8 0", "once whole"},
        Illegal{"pack w t 0 1 2", "no dimension 2"}, Illegal{"rfactor t i 2 outer", "i is not a reduction axis"},
        Illegal{"rfactor t k 50 outer", "factor 50 for axis k must be from 1 to"},
        Illegal{"split_axis q i 2", "no stage q"}, Illegal{"split_axis t k 3", "k is not an axis of stage t"},
        Illegal{"split_axis t j 0", "factor 0 is less than 1"},
        Illegal{"split_axis t j 9223372036854775807", "too large for axis j of 22"},
        Illegal{"split_axis u b 2", "is an output"}, Illegal{"compute_at t a\nsplit_axis t j 2", "scheduled already"},
        Illegal{"cache_write q", "no stage q"}, Illegal{"split i 4 peel\nreorder ii io", "must stay inside"},
        Illegal{"split i 4 shift\nreorder k io ii", "added twice"},
        Illegal{"split i 4 shift\nsplit io 2 mask\nreorder k ioo ioi ii j", "added twice"},
        Illegal{"split i 4 shift\nreorder io k ii j\nparallel io", "threads would add to the same elements"},
        Illegal{"split i 4 shift\nsplit io 2 mask\nparallel ioo", "threads would add to the same elements"},
        Illegal{"cache_read x t\ncompute_at xrt i\ncache_write t", "stage xrt is computed inside stage t already"},
        Illegal{"cache_read x t\ncompute_at xrt i\nrfactor t k 3 outer",
                "stage xrt is computed inside stage t already"},
        Illegal{"cache_read x t\ncompute_at xrt i\nsplit_axis t j 2", "stage xrt is computed inside stage t already"},
        Illegal{"cache_read x t\ncompute_at xrt i\ncompute_at t a", "stage xrt is computed inside stage t already"},
        Illegal{"cache_read x t\ncompute_at xrt i\ncache_read xrt t", "stage xrt is computed inside loop i"},
        Illegal{"cache_read x t\ncompute_at xrt i\npack xrt t 1 0", "stage xrt is computed inside loop i"},
        Illegal{"cache_read x t\ncompute_at xrt i\nround xrt t 10", "stage xrt is computed inside loop i"},
        Illegal{"pack w t 1/9223372036854775807 0 1%9223372036854775807",
                "too large for dimension 1 of w, which has 22 elements"},
        Illegal{"split i 4 peel\nsplit ii 2 shift", "its tail must be masked"},
        Illegal{"prefetch w q j 1", "no stage q"}, Illegal{"prefetch w u a 1", "u does not read w"},
        Illegal{"prefetch x t i 1", "x is not constant"},
        Illegal{"prefetch w t j 0", "0 iterations ahead; the number must be from 1 to 64"},
        Illegal{"prefetch w t a 1", "no loop a around stage t"},
        Illegal{"prefetch w t k 1", "stage t has no loop inside loop k"},
        Illegal{"prefetch w t i 1", "reads w does not grow by a constant step with loop i"},
        Illegal{"fuse i j\nprefetch w t i_j 1", "does not grow by a constant step"},
        Illegal{"split k 4 peel\nprefetch w t j 1", "loop ki has no constant extent"},
        Illegal{"reorder j i k\nprefetch w t j 1\nsplit i 2 mask", "because the prefetches of stage t depend on it"}),
    [](const auto& info) { return "schedule_" + std::to_string(info.index); });

TEST(ScheduleText, PrintsAndParsesBack) {
  const std::string text =
      "split i 4 peel\nfuse a b\nreorder io ii j\nvectorize j\nunroll ii\nparallel a_b\ncompute_at t a\ninline "
      "u\ncache_write t\n"
      "cache_read x t\npack w t 1/8 0 1%8\nrfactor t k 4 inner\nrfactor t k 4 outer\nrfactor t k 4 outer first\n"
      "split_axis t j 2\nfactor_out tf\nwinograd t 4\nprefetch wpt t bo 2\ntotal_order t\nskip_padding t\nscan t\n";
  const auto schedule = ParseSchedule(text);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(Print(*schedule), text);
}

TEST(ScheduleText, ErrorsNameTheLine) {
  for (const char* bad : {"split i", "split i x mask", "split i 4 wrap", "frobnicate i", "pack w t", "pack w t 1/0 0",
                          "rfactor t k 4", "rfactor t k 4 outer last", "factor_out", "split_axis t j", "reorder i",
                          "winograd t", "winograd t four", "prefetch w t j", "prefetch w t j one"}) {
    const auto schedule = ParseSchedule(std::string("inline u\n") + bad);
    ASSERT_FALSE(schedule.ok()) << bad;
    EXPECT_THAT(std::string(schedule.status().message()), HasSubstr("line 2"));
  }
}

std::string CodeBlock(const std::string& document, const std::string& language) {
  const size_t begin = document.find("```" + language + "\n") + language.size() + 4;
  return document.substr(begin, document.find("```", begin) - begin);
}

TEST(ScheduleDocument, ExampleIsLegal) {
  std::ifstream file(HONE_SOURCE_DIR "/docs/SCHEDULE.md");
  std::stringstream text;
  text << file.rdbuf();
  const auto workload = ir::ParseWorkload(CodeBlock(text.str(), "workload"));
  ASSERT_TRUE(workload.ok()) << workload.status();
  const auto schedule = ParseSchedule(CodeBlock(text.str(), "schedule"));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const auto state = Replay(*workload, *schedule);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(execution::Lower(*state, {}, "kernel", {.verify = true}).ok());
}

}  // namespace
}  // namespace hone::schedule
