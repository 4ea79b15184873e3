// SPDX-License-Identifier: Apache-2.0
// The arena plan: buffers alive together never share a byte, and little is wasted against the lower bound.
#include "deploy/package/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace hone::package {
namespace {

using ::testing::HasSubstr;

uint64_t Rounded(uint64_t bytes) { return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment; }

void ExpectValid(const std::vector<Lifetime>& lifetimes, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), lifetimes.size());
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kTensorAlignment, 0u);
    EXPECT_LE(plan.offsets[i] + lifetimes[i].bytes, plan.arena_bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together = lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last;
      const bool shared = plan.offsets[i] < plan.offsets[j] + lifetimes[j].bytes &&
                          plan.offsets[j] < plan.offsets[i] + lifetimes[i].bytes;
      const bool empty = lifetimes[i].bytes == 0 || lifetimes[j].bytes == 0;
      EXPECT_FALSE(!empty && together && shared) << i << " and " << j;
    }
  }
}

TEST(MemoryPlanTest, NothingNeedsNoMemory) {
  EXPECT_EQ(PlanMemory({}).arena_bytes, 0u);
  EXPECT_EQ(PeakBytes({}), 0u);
  EXPECT_EQ(PlanMemory(std::vector<Lifetime>{{0, 0, 3}}).arena_bytes, 0u);
}

TEST(MemoryPlanTest, AChainNeedsItsTwoLargestNeighbours) {
  std::vector<Lifetime> chain;
  for (int64_t i = 0; i < 10; ++i) chain.push_back({1000, i, i + 1});
  const MemoryPlan plan = PlanMemory(chain);
  ExpectValid(chain, plan);
  EXPECT_EQ(plan.arena_bytes, 2 * Rounded(1000));
  EXPECT_EQ(PeakBytes(chain), 2 * Rounded(1000));
}

TEST(MemoryPlanTest, ASmallBufferFillsTheGapBelowALargeOne) {
  // The second large buffer ends up above the first; the small one lives only with the second, in the space below.
  const std::vector<Lifetime> lifetimes = {{6400, 0, 1}, {3200, 1, 2}, {640, 2, 2}};
  const MemoryPlan plan = PlanMemory(lifetimes);
  ExpectValid(lifetimes, plan);
  EXPECT_EQ(plan.offsets[2], 0u);
  EXPECT_EQ(plan.arena_bytes, 9600u);
}

TEST(MemoryPlanTest, RandomLifetimesNeverOverlapAndStayNearTheLowerBound) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const int64_t steps = 1 + random.Below(60);
    std::vector<Lifetime> lifetimes;
    for (int64_t i = random.Below(80); i >= 0; --i) {
      const int64_t first = random.Below(steps);
      const int64_t length = random.Below(10) == 0 ? random.Below(steps) : random.Below(4);  // few long ones: skips
      lifetimes.push_back({static_cast<uint64_t>(random.Below(200000)), first, std::min(first + length, steps - 1)});
    }
    const MemoryPlan plan = PlanMemory(lifetimes);
    ExpectValid(lifetimes, plan);
    const uint64_t bound = PeakBytes(lifetimes);
    EXPECT_GE(plan.arena_bytes, bound);
    EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.5 * static_cast<double>(bound)) << "round " << round;
  }
}

TEST(MemoryPlanTest, TheSameLifetimesGiveTheSamePlan) {
  std::vector<Lifetime> lifetimes;
  for (int64_t i = 0; i < 20; ++i) lifetimes.push_back({128, i % 5, i % 5 + 2});
  EXPECT_EQ(PlanMemory(lifetimes).offsets, PlanMemory(lifetimes).offsets);
}

PackageTensor Tensor(TensorKind kind, int64_t elements) {
  return {.name = "t", .dtype = DType::kFloat32, .shape = {elements}, .kind = kind};
}

KernelInterface Kernel(const std::string& name, int64_t workspace_bytes = 0) {
  const KernelBuffer in = {.role = BufferRole::kInput, .dtype = "f32", .shape = {100}};
  KernelBuffer out = in;
  out.role = BufferRole::kOutput;
  return {.name = name, .buffers = {in, out}, .workspace_bytes = workspace_bytes, .main = {{.function = name}}};
}

// x -> a -> b -> y, each of 100 floats; the second call has a workspace.
PackageProgram Chain() {
  PackageProgram program;
  program.tensors = {Tensor(TensorKind::kInput, 100), Tensor(TensorKind::kIntermediate, 100),
                     Tensor(TensorKind::kIntermediate, 100), Tensor(TensorKind::kOutput, 100)};
  program.kernels = {Kernel("f"), Kernel("g", 4000), Kernel("h")};
  program.calls = {
      {.kernel = 0, .arguments = {0, 1}}, {.kernel = 1, .arguments = {1, 2}}, {.kernel = 2, .arguments = {2, 3}}};
  return program;
}

TEST(PlanArenaTest, PlacesIntermediatesAndWorkspacesButNotInputsAndOutputs) {
  PackageProgram program = Chain();
  ASSERT_TRUE(PlanArena(program).ok());
  EXPECT_EQ(program.arena_bytes[0], Rounded(4000) + 2 * Rounded(400));
  EXPECT_NE(program.tensors[1].arena_offset, program.tensors[2].arena_offset);
  EXPECT_EQ(program.calls[1].workspace_offset, 0u);
}

TEST(PlanArenaTest, InTheMemoryOfADeviceBuffersStartWhereASliceMay) {
  PackageProgram program = Chain();
  program.units[0].kind = CodeKind::kOpenCl;
  ASSERT_TRUE(PlanArena(program).ok());
  EXPECT_EQ(program.arena_bytes[0], 4096u + 2 * 512u);
  EXPECT_EQ(program.tensors[1].arena_offset % 512, 0u);
  EXPECT_EQ(program.tensors[2].arena_offset % 512, 0u);
}

// The second call runs in another home. Its input and output cross a border each.
TEST(PlanArenaTest, EachHomeHasItsOwnArena) {
  PackageProgram program = Chain();
  program.units.resize(2);
  program.units[0].kind = CodeKind::kOpenCl;
  program.kernel_units = {0, 1, 0};
  AssignHomes(program);
  for (const uint32_t home : {1, 1}) {
    program.tensors.push_back(Tensor(TensorKind::kIntermediate, 100));
    program.tensors.back().home = home;
  }
  program.calls[1].arguments = {4, 5};
  program.borders = {{1, 4, 1}, {5, 2, 2}};
  ASSERT_TRUE(PlanArena(program).ok());
  ASSERT_EQ(program.arena_bytes.size(), 2u);
  EXPECT_EQ(program.arena_bytes[0], 512u) << "one tensor has been copied before the other one arrives";
  EXPECT_EQ(program.arena_bytes[1], Rounded(4000) + 2 * Rounded(400));

  program.borders[1].call = 1;
  EXPECT_THAT(std::string(PlanArena(program).message()), HasSubstr("tensor 5 't' is used at moment 1 before"));
}

TEST(PlanArenaTest, KeepsATensorUntilItIsCopied) {
  PackageProgram program = Chain();
  program.copies = {{1, 3}};
  ASSERT_TRUE(PlanArena(program).ok());
  program.kernels[2].workspace_bytes = 64;
  ASSERT_TRUE(PlanArena(program).ok());
  EXPECT_NE(program.calls[2].workspace_offset, program.tensors[1].arena_offset);
}

TEST(PlanArenaTest, ATensorThatAKernelDoesNotUseIsNotKeptForIt) {
  PackageProgram program = Chain();
  program.kernels[1].buffers[0].used = false;
  program.calls[1].arguments[0] = kNoTensor;
  ASSERT_TRUE(PlanArena(program).ok());
  EXPECT_EQ(program.arena_bytes[0], Rounded(4000) + Rounded(400));
}

TEST(PlanArenaTest, NamesATensorThatIsReadBeforeItIsWritten) {
  PackageProgram program = Chain();
  std::swap(program.calls[0], program.calls[1]);
  const absl::Status status = PlanArena(program);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("tensor 1 't' is used at moment 0 before any call has written it"));
}

TEST(PlanArenaTest, RefusesIdsAndCountsOutOfRange) {
  PackageProgram program = Chain();
  program.calls[1].arguments[0] = 9;
  EXPECT_THAT(std::string(PlanArena(program).message()), HasSubstr("there is no tensor 9"));
  program = Chain();
  program.calls[0].arguments.push_back(2);
  EXPECT_THAT(std::string(PlanArena(program).message()), HasSubstr("'f' has 3 arguments, but the kernel takes 2"));
  program = Chain();
  program.calls[2].kernel = 3;
  EXPECT_THAT(std::string(PlanArena(program).message()), HasSubstr("call 2 runs kernel 3, but there are 3 kernels"));
  program = Chain();
  program.copies = {{12, 3}};
  EXPECT_THAT(std::string(PlanArena(program).message()), HasSubstr("there is no tensor 12"));
}

}  // namespace
}  // namespace hone::package
