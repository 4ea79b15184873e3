// SPDX-License-Identifier: Apache-2.0
// The fuzzer itself: it finds faults, reports them so that they can be reproduced, and is deterministic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/text.h"
#include "compiler/opt/opt.h"
#include "tests/fuzz/check_graph.h"
#include "tests/fuzz/random_graph.h"
#include "tests/fuzz/sizes.h"

namespace hone::fuzz {
namespace {

TEST(Fuzz, EqualSeedsMakeEqualGraphs) {
  const auto first = MakeRandomGraph(3), again = MakeRandomGraph(3), other = MakeRandomGraph(4);
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  EXPECT_EQ(graph::Print(*first), graph::Print(*again));
  EXPECT_NE(graph::Print(*first), graph::Print(*other));
}

TEST(Fuzz, SizesOfAnOpenGraphAreTriedAtBothEndsAndBetween) {
  const auto graph = MakeRandomGraph(3, /*open=*/true);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_FALSE(graph->sizes.empty());
  const std::vector<tests::SizeMap> drawn = DrawSizes(graph->sizes, 3);
  ASSERT_GT(drawn.size(), 4u);
  for (const ir::OpenSize& size : graph->sizes) {
    EXPECT_EQ(drawn[0].at(size.name), size.max);
    EXPECT_EQ(drawn[1].at(size.name), size.min);
  }
  for (const tests::SizeMap& sizes : drawn) EXPECT_EQ(graph::Verify(AtSizes(*graph, sizes)), absl::OkStatus());
}

TEST(Fuzz, WrongKernelOfAnOpenGraphIsFoundAtItsSizes) {
  Machine machine{.name = "a liar", .target = target::ParseTarget("x86_64 -mcpu=haswell").value()};
  std::vector<tests::SizeMap> seen;
  machine.run = [&](const auto& workload, const auto&, auto, const auto& sizes) {
    if (workload.sizes.empty()) return absl::OkStatus();
    seen = sizes;
    return absl::DataLossError("t[0] is 1, should be 2");
  };
  Counts counts;
  absl::Status status;
  for (uint64_t seed = 1; status.ok() && seed < 20; ++seed) {
    status = CheckGraph(seed, /*open=*/true, machine, [](const Attempt&) {}, counts);
  }
  EXPECT_FALSE(status.ok());
  EXPECT_GT(seen.size(), 1u);
}

TEST(Fuzz, WrongKernelIsFoundAndItsTextReadByHoneOpt) {
  Machine machine{.name = "a liar", .target = target::ParseTarget("x86_64 -mcpu=haswell").value()};
  machine.run = [](const auto&, const auto&, auto, const auto&) {
    return absl::DataLossError("t[0] is 1, should be 2");
  };
  Attempt last;
  Counts counts;
  const absl::Status status =
      CheckGraph(1, /*open=*/false, machine, [&](const Attempt& attempt) { last = attempt; }, counts);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("should be 2"));
  EXPECT_THAT(last.what, ::testing::HasSubstr("a liar"));
  EXPECT_EQ(counts.lowered, 1);
  const auto read = opt::Opt(last.text, {.target = machine.target, .verify_each = true, .interpret = true});
  EXPECT_TRUE(read.ok()) << read.status() << "\n" << last.text;
}

TEST(Fuzz, ScheduleThatLeadsNowhereIsDropped) {
  Machine machine{.name = "narrow", .target = target::ParseTarget("x86_64 -mcpu=haswell").value()};
  machine.run = [](const auto&, const auto&, auto, const auto&) { return absl::FailedPreconditionError("too large"); };
  Counts counts;
  EXPECT_TRUE(CheckGraph(1, /*open=*/false, machine, [](const Attempt&) {}, counts).ok());
  EXPECT_EQ(counts.run, 0);
  EXPECT_GT(counts.dropped, 0);
}

}  // namespace
}  // namespace hone::fuzz
