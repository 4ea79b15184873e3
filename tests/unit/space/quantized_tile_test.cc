// SPDX-License-Identifier: Apache-2.0
// The template of products with weights of few bits: which workloads it takes, and what its tiles look like. Whether
// its schedules are correct is tested with those of all spaces (space_test.cc).
#include "compiler/space/templates/quantized_tile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/execution/model.h"
#include "compiler/ir/match.h"
#include "compiler/space/space.h"
#include "tests/unit/space/workloads.h"

namespace hone::space {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTarget[] = "x86_64 -mcpu=x86-64-v4 -threads=2";

// `weights` and `scales` are "const" or "input"; `block` is the index of a weight's block.
std::string FewBitsProduct(std::string_view rows, int64_t columns, std::string_view weights = "const",
                           std::string_view scales = "const", std::string_view block = "b // 32") {
  const std::string size = rows == "n" ? "size n in [1, 64]\n" : "";
  return fmt::format(R"(workload "matmul_nbits"
{5}input x: f32[{0},256] in [-1, 1]
{2} w: u8[{1},8,16] in [0, 255]
{3} s: f32[{1},8] in [0.01, 0.1]
m: f32[{1},256] over a:{1}, b:256 = )"
                     R"((f32(i32(w[a, b // 32, b %% 32 // 2]) >> i32(b %% 32 %% 2) * 4i32 & 15i32) - 8f32) * s[a, {4}]
t: f32[{0},{1}] over i:{0}, j:{1} = sum k:256 of x[i, k] * m[j, k]
output t
)",
                     rows, columns, weights, scales, block, size);
}

std::string DefaultSchedule(const std::string& text, const std::string& target_text = kTarget) {
  const auto workload = ir::ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  const target::Target target = *target::ParseTarget(target_text);
  return schedule::Print(Default(*workload, target).value().schedule);
}

// The bytes of the largest buffer that the kernel allocates.
int64_t LargestBuffer(const ir::Workload& workload, const target::Target& target) {
  const auto lowered = execution::Lower(Default(workload, target).value().state, target, "k");
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  int64_t largest = 0;
  for (const ir::Func& func : lowered->main) {
    ir::AnyStmt(func.body, [&](const ir::Stmt& s) {
      const ir::Alloc* alloc = s.As<ir::Alloc>();
      if (alloc != nullptr) largest = std::max(largest, ir::NumBytes(*alloc->buffer));
      return false;
    });
  }
  return largest;
}

// No kernel stores the weights as floats: what it allocates fits the registers.
TEST(QuantizedTile, UnpacksInRegisters) {
  for (const std::string text : {kTarget, "x86_64 -mcpu=haswell", "arm64 -mcpu=cortex-a53 -threads=4"}) {
    const target::Target target = *target::ParseTarget(text);
    for (const tests::NamedWorkload& named : tests::QuantizedWorkloads()) {
      SCOPED_TRACE(text + " " + named.name);
      EXPECT_LE(LargestBuffer(ir::ParseWorkload(named.text).value(), target),
                target.vector_registers * target.VectorWidth(4) * 4);
    }
  }
}

TEST(QuantizedTile, ReadsWeightsInTheOrderOfMemoryAndScalesOncePerBlock) {
  EXPECT_THAT(
      DefaultSchedule(FewBitsProduct("1", 256)),
      AllOf(HasSubstr("rfactor tc kc 32 outer first\nfactor_out tcf\n"), HasSubstr("pack w tcfu 0/64 1 2 0%64\n"),
            HasSubstr("pack s tc 0/64 1 0%64\n"), HasSubstr("parallel jo\n"), HasSubstr("compute_at tcfu kcx\n")));
}

TEST(QuantizedTile, PanelsAreNarrowerForMoreThreads) {
  EXPECT_THAT(DefaultSchedule(FewBitsProduct("1", 256), "x86_64 -mcpu=x86-64-v4 -threads=8"),
              HasSubstr("split j 32 mask\n"));
}

// Threads share panels, whose number is fixed, so that packed weights are read without conditions.
TEST(QuantizedTile, OpenRowsAreTilesOfAPanel) {
  EXPECT_THAT(DefaultSchedule(FewBitsProduct("n", 256)),
              AllOf(HasSubstr("factor_out"), HasSubstr("split i 6 fit\n"), HasSubstr("parallel jo\n"),
                    HasSubstr("compute_at tc io\n")));
}

TEST(QuantizedTile, TakesOnlyConstantWeightsWithAScalePerBlock) {
  for (const std::string& other : {FewBitsProduct("1", 256, "input"), FewBitsProduct("1", 256, "const", "input"),
                                   FewBitsProduct("1", 256, "const", "const", "b %% 8")}) {
    EXPECT_THAT(DefaultSchedule(other), Not(HasSubstr("factor_out"))) << other;
  }
}

}  // namespace
}  // namespace hone::space
