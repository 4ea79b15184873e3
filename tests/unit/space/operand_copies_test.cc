// SPDX-License-Identifier: Apache-2.0
// Which operands of products the default schedules for cores copy, in f32 or in the order of the tiles, and that the
// results are right.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/space/space.h"
#include "tests/unit/space/compiled.h"
#include "tests/unit/space/lowered.h"

namespace hone::space {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Sums are added in another order, so a result may round to the neighbour in f16 or bf16, which is up to 2^-8 away.
constexpr tests::Tolerance kShortTolerance = {.relative = 4e-3, .least = 1};

constexpr char kCpu[] = "x86_64 -mcpu=x86-64-v4 -threads=2";

// Returns the default schedule, or the one with these decisions, after checking that it computes the right values.
std::string CheckedSteps(const std::string& text, Decisions decisions = {}, const std::string& target = kCpu) {
  const auto workload = ir::ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  const target::Target cpu = target::ParseTarget(target).value();
  Chooser chooser(&decisions);
  const auto candidate = Build(*workload, cpu, ApplicableEntries(*workload, cpu), chooser);
  EXPECT_TRUE(candidate.ok()) << candidate.status();
  const std::string steps = schedule::Print(candidate->schedule);
  EXPECT_EQ(tests::CheckLowered(*workload, candidate->schedule, cpu, kShortTolerance), absl::OkStatus()) << steps;
  EXPECT_EQ(tests::CheckCompiled(*workload, candidate->schedule, cpu, kShortTolerance), absl::OkStatus()) << steps;
  return steps;
}

std::string ShortProduct(const char* type, const char* a, const char* b) {
  return fmt::format(R"(workload "matmul"
{1} x: {0}[24,40] in [-1, 1]
{2} w: {0}[40,56] in [-1, 1]
t: f32[24,56] over i:24, j:56 = sum k:40 of f32(x[i, k]) * f32(w[k, j])
u: {0}[24,56] over ui:24, uj:56 = {0}(max(t[ui, uj], 0f32))
output u
)",
                     type, a, b);
}

std::string ShortConvolution(const char* type, int64_t size, int64_t channels) {
  return fmt::format(R"(workload "conv2d"
input x: {0}[1,{1},{1},{2}] in [-1, 1]
const w: {0}[{2},{2},3,3] in [-1, 1]
const b: {0}[{2}] in [-1, 1]
p: {0}[1,{3},{3},{2}] over n:1, h:{3}, v:{3}, c:{2} = {0}(select(
  h >= 1 && h <= {1} && v >= 1 && v <= {1}, f32(x[n, h - 1, v - 1, c]), 0f32))
y: f32[1,{1},{1},{2}] over n1:1, h1:{1}, v1:{1}, o:{2} = 
  sum ci:{2}, r:3, s:3 of f32(p[n1, h1 + r, v1 + s, ci]) * f32(w[o, ci, r, s])
z: {0}[1,{1},{1},{2}] over n2:1, h2:{1}, v2:{1}, o2:{2} = {0}(y[n2, h2, v2, o2] + f32(b[o2]))
output z
)",
                     type, size, channels, size + 2);
}

TEST(Widen, TheOperandThatIsBroadcastIsCopied) {
  for (const char* type : {"f16", "bf16"}) {
    const std::string steps = CheckedSteps(ShortProduct(type, "input", "const"));
    EXPECT_THAT(steps, AllOf(HasSubstr("widen x t\n"), Not(HasSubstr("widen w t\n")))) << "weights are vectors";
    EXPECT_THAT(steps, HasSubstr("compute_at xwt ")) << "each block of rows copies its own";
  }
}

TEST(Widen, AConstantThatIsBroadcastIsCopiedBefore) {
  const std::string steps = CheckedSteps(ShortProduct("f16", "const", "input"));
  EXPECT_THAT(steps, AllOf(HasSubstr("widen x t\n"), Not(HasSubstr("compute_at xwt "))));
}

TEST(Widen, IsADecision) {
  EXPECT_THAT(CheckedSteps(ShortProduct("f16", "input", "const"), {{"t.widen", 0, {}}}), Not(HasSubstr("widen")));
}

TEST(Widen, PaddingIsComputedInTheCopy) {
  const std::string steps = CheckedSteps(ShortConvolution("f16", 5, 20), {{"space", 1, {}}});
  EXPECT_THAT(steps, HasSubstr("widen p y\ninline p\n"));
  EXPECT_THAT(steps, HasSubstr("skip_padding y\n")) << "the copy is padding, too";
}

TEST(Widen, WinogradTransformsBothOperandsInF32) {
  for (const char* type : {"f16", "bf16"}) {
    const auto transformed = AllOf(HasSubstr("widen p y\n"), HasSubstr("widen w y\n"), HasSubstr("winograd y "));
    EXPECT_THAT(CheckedSteps(ShortConvolution(type, 7, 8), {{"space", 5, {}}}), transformed);
    const ir::Workload large = ir::ParseWorkload(ShortConvolution(type, 56, 64)).value();
    EXPECT_THAT(schedule::Print(Default(large, target::ParseTarget(kCpu).value())->schedule), transformed);
  }
}

TEST(Widen, LanesConvertWhatTheyLoad) {
  const ir::Workload workload = ir::ParseWorkload(ShortProduct("f16", "input", "const")).value();
  const target::Target gpu = target::ParseTarget("cuda:sm_53").value();
  EXPECT_THAT(schedule::Print(Default(workload, gpu)->schedule), Not(HasSubstr("widen")));
}

// A^T B; rows of both operands are a power of two apart.
constexpr char kTransposed[] = R"(workload "matmul"
input x: f32[20,256] in [-1, 1]
input w: f32[20,128] in [-1, 1]
t: f32[256,128] over i:256, j:128 = sum k:20 of x[k, i] * w[k, j]
u: f32[256,128] over ui:256, uj:128 = max(t[ui, uj], 0f32)
output u
)";

TEST(PackedOperands, AreThoseWhoseStepsShareTheSetsOfTheSecondCache) {
  const std::string large = CheckedSteps(kTransposed, {}, std::string(kCpu) + " -l2=1048576");
  EXPECT_THAT(large, Not(HasSubstr("pack")));
  const std::string small = CheckedSteps(kTransposed, {}, std::string(kCpu) + " -l2=8192");
  EXPECT_THAT(small, AllOf(HasSubstr("pack w t 1/"), HasSubstr("pack x t 1/")));
  // 16384 bytes hold 32 rows of w, and 16 of x.
  const std::string medium = CheckedSteps(kTransposed, {}, std::string(kCpu) + " -l2=16384");
  EXPECT_THAT(medium, AllOf(Not(HasSubstr("pack w")), HasSubstr("pack x t ")));
}

}  // namespace
}  // namespace hone::space
