// SPDX-License-Identifier: Apache-2.0
// The winograd step: convolutions stay the same up to rounding, and the step refuses what it cannot transform.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/execution/model.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"
#include "compiler/schedule/convolution.h"
#include "compiler/space/space.h"
#include "tests/unit/space/compiled.h"
#include "tests/unit/space/lowered.h"

namespace hone::schedule {
namespace {

using ::testing::HasSubstr;

struct Shape {
  int batch, height, width, channels, filters;
};

// A channels-last convolution with padding, bias and a clamp.
std::string Last(const Shape& s) {
  return fmt::format(R"(workload "conv2d"
input x: f32[{0},{1},{2},{3}] in [-1, 1]
const w: f32[{4},{3},3,3] in [-1, 1]
const b: f32[{4}] in [-1, 1]
p: f32[{0},{5},{6},{3}] over p0:{0}, p1:{5}, p2:{6}, p3:{3} )"
                     R"(= select(p1 >= 1 && p1 <= {1} && p2 >= 1 && p2 <= {2}, x[p0, p1 - 1, p2 - 1, p3], 0f32)
t: f32[{0},{1},{2},{4}] over n:{0}, h:{1}, v:{2}, oc:{4} )"
                     R"(= sum ic:{3}, kh:3, kw:3 of p[n, h + kh, v + kw, ic] * w[oc, ic, kh, kw]
u: f32[{0},{1},{2},{4}] over un:{0}, uh:{1}, uw:{2}, uc:{4} = max(t[un, uh, uw, uc] + b[uc], 0f32)
output u
)",
                     s.batch, s.height, s.width, s.channels, s.filters, s.height + 2, s.width + 2);
}

// A channels-first convolution without padding.
std::string First(const Shape& s) {
  return fmt::format(R"(workload "conv2d"
input x: f32[{0},{3},{5},{6}] in [-1, 1]
const w: f32[{4},{3},3,3] in [-1, 1]
t: f32[{0},{4},{1},{2}] over n:{0}, oc:{4}, h:{1}, v:{2} )"
                     R"(= sum ic:{3}, kh:3, kw:3 of x[n, ic, h + kh, v + kw] * w[oc, ic, kh, kw]
output t
)",
                     s.batch, s.height, s.width, s.channels, s.filters, s.height + 2, s.width + 2);
}

// For f32 sums of a few dozen products; F(6,3) loses about two digits.
constexpr hone::tests::Tolerance kRounding{1e-4};

target::Target Host() { return target::ParseTarget("cpu -threads=2").value(); }

class WinogradTest : public ::testing::TestWithParam<Shape> {};

TEST_P(WinogradTest, KeepsTheMeaning) {
  for (const std::string& text : {Last(GetParam()), First(GetParam())}) {
    const auto workload = ir::ParseWorkload(text);
    ASSERT_TRUE(workload.ok()) << workload.status() << text;
    for (const int size : {2, 4, 6}) {
      SCOPED_TRACE(fmt::format("size {} of\n{}", size, text));
      const Schedule alone = {Winograd{"t", size}};
      EXPECT_EQ(hone::tests::CheckLowered(*workload, alone, Host(), kRounding), absl::OkStatus());
    }
  }
}

// The template, once with all tiles in every stage, and once with blocks of tiles that pass through all stages.
TEST_P(WinogradTest, TheTemplateKeepsTheMeaning) {
  for (const std::string& text : {Last(GetParam()), First(GetParam())}) {
    const auto workload = ir::ParseWorkload(text);
    ASSERT_TRUE(workload.ok()) << workload.status() << text;
    for (const int size : {2, 4, 6}) {
      for (const int block_tiles : {0, 1, 5, 64}) {
        SCOPED_TRACE(fmt::format("size {}, blocks of {}, of\n{}", size, block_tiles, text));
        const space::Decisions given = {{"space", 5, {}},
                                        {"winograd", size, {}},
                                        {"blocks", block_tiles > 0, {}},
                                        {"block_tiles", block_tiles, {}}};
        space::Chooser chooser(&given);
        const auto candidate = space::Build(*workload, Host(), space::ApplicableEntries(*workload, Host()), chooser);
        ASSERT_TRUE(candidate.ok()) << candidate.status();
        const std::string schedule = Print(candidate->schedule);
        EXPECT_THAT(schedule, HasSubstr(fmt::format("winograd t {}\n", size)));
        EXPECT_EQ(block_tiles > 0, schedule.find("compute_at tv") != std::string::npos) << schedule;
        EXPECT_EQ(hone::tests::CheckLowered(*workload, candidate->schedule, Host(), kRounding), absl::OkStatus());
        EXPECT_EQ(hone::tests::CheckCompiled(*workload, candidate->schedule, Host(), kRounding), absl::OkStatus());
      }
    }
  }
}

// A thread's own data must fit into the L2 cache, so that a block stays there.
TEST(Winograd, BlocksFitTheSecondCache) {
  const auto target = target::ParseTarget("x86_64 -mcpu=znver4 -threads=2 -l2=262144");
  ASSERT_TRUE(target.ok()) << target.status();
  const auto workload = ir::ParseWorkload(Last({1, 56, 56, 64, 64}));
  const space::Decisions given = {{"space", 5, {}}, {"winograd", 4, {}}, {"blocks", 1, {}}, {"block_tiles", 1000, {}}};
  space::Chooser chooser(&given);
  const auto candidate = space::Build(*workload, *target, space::ApplicableEntries(*workload, *target), chooser);
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  int64_t elements = 0;
  for (const char* stage : {"tv", "tm"}) {
    const Nest* nest = candidate->state.FindNest(stage);
    ASSERT_FALSE(nest->IsTopLevel());
    elements += ir::Product(nest->storage.shape).value();
  }
  EXPECT_GT(elements * 4, 65536);
  EXPECT_LE(elements * 4, 262144);
}

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradTest,
                         ::testing::Values(Shape{1, 8, 12, 4, 8}, Shape{2, 5, 7, 3, 5}, Shape{1, 6, 13, 19, 17},
                                           Shape{1, 2, 3, 2, 2}, Shape{3, 9, 4, 16, 32}),
                         [](const auto& info) { return fmt::format("shape_{}", info.index); });

struct Refused {
  std::string workload, schedule, message;
};
class WinogradRefusal : public ::testing::TestWithParam<Refused> {};

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST_P(WinogradRefusal, SaysWhy) {
  const auto workload = ir::ParseWorkload(GetParam().workload);
  ASSERT_TRUE(workload.ok()) << workload.status() << GetParam().workload;
  const absl::Status status = Replay(*workload, ParseSchedule(GetParam().schedule).value()).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

const Shape kSmall{1, 4, 4, 2, 3};
constexpr char kNoConvolution[] = "is not a 3x3 convolution of stride 1 with constant weights";
INSTANTIATE_TEST_SUITE_P(
    Steps, WinogradRefusal,
    ::testing::Values(
        Refused{Last(kSmall), "winograd q 4", "no stage q"},
        Refused{Last(kSmall), "winograd t 3", "there is no transform for tiles of 3; the size must be 2, 4 or 6"},
        Refused{Last(kSmall), "winograd u 4", kNoConvolution},
        Refused{Last(kSmall), "split h 2 mask\nwinograd t 4", "scheduled already"},
        Refused{Last(kSmall), "compute_at p n\nwinograd t 4", "p is computed inside stage t"},
        Refused{Last(kSmall), "winograd t 4\nwinograd t 4", kNoConvolution},
        Refused{Replaced(First(kSmall), "const w", "input w"), "winograd t 4", kNoConvolution},
        Refused{Replaced(First(kSmall), "w[oc, ic, kh, kw]", "w[oc, ic, kw, kh] * 2f32"), "winograd t 4",
                kNoConvolution},
        Refused{Replaced(First(kSmall), "v + kw]", "2 - kw]"), "winograd t 4", kNoConvolution},
        Refused{Replaced(First(kSmall), "x[n, ic, h + kh, v + kw]", "x[n, ic, h + kh, h + kw]"), "winograd t 4",
                kNoConvolution},
        Refused{Replaced(Replaced(First(kSmall), "x: f32[1,2,6,6]", "x: f32[1,2,10,6]"), "h + kh", "h * 2 + kh"),
                "winograd t 4", kNoConvolution},
        Refused{R"(workload "conv2d"
input x: i32[1,2,6,6] in [-9, 9]
const w: i32[3,2,3,3] in [-9, 9]
t: i32[1,3,4,4] over n:1, oc:3, h:4, v:4 = sum ic:2, kh:3, kw:3 of x[n, ic, h + kh, v + kw] * w[oc, ic, kh, kw]
output t
)",
                "winograd t 4", "stage t is i32; the transforms need floating point"}),
    [](const auto& info) { return fmt::format("refusal_{}", info.index); });

// The kernel reads only the fully transformed weights. The package need not store the half-transformed ones.
TEST(Winograd, KeepsOnlyTheWeightsThatAreRead) {
  const auto workload = ir::ParseWorkload(Last(kSmall));
  ASSERT_TRUE(workload.ok()) << workload.status();
  const auto state = Replay(*workload, {Winograd{"t", 2}});
  ASSERT_TRUE(state.ok()) << state.status();
  const auto module = execution::Lower(*state, Host(), "kernel");
  ASSERT_TRUE(module.ok()) << module.status();
  ASSERT_EQ(module->packed.size(), 1u);
  EXPECT_EQ(module->packed[0]->name, "tu");
}

// The order of dimensions must not affect the parts that are found.
TEST(FindConvolution, ReadsThePartsOffTheIndices) {
  for (const std::string& text : {Last({2, 5, 7, 3, 4}), First({2, 5, 7, 3, 4})}) {
    const State state = InitialState(ir::ParseWorkload(text).value());
    const auto conv = FindConvolution(state, state.FindNest("t")->stage);
    ASSERT_TRUE(conv.has_value()) << text;
    ASSERT_EQ(conv->batch.size(), 1u);
    EXPECT_EQ(conv->batch[0].name, "n");
    EXPECT_EQ(conv->out[0].name, "h");
    EXPECT_EQ(conv->out[1].name, "v");
    EXPECT_EQ(conv->filter.name, "oc");
    EXPECT_EQ(conv->channel.name, "ic");
    EXPECT_EQ(conv->window[0].name, "kh");
    EXPECT_EQ(conv->window[1].name, "kw");
  }
}

}  // namespace
}  // namespace hone::schedule
