// SPDX-License-Identifier: Apache-2.0
// Small graphs with open sizes in which the fuzzer found faults: each is checked as the fuzzer does it, at both ends of
// the ranges and between, with several draws of schedules.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/text.h"
#include "tests/fuzz/check_graph.h"

namespace hone::fuzz {
namespace {

constexpr uint64_t kDraws = 8;

struct Found {
  std::string name;
  std::string_view graph;
};

void PrintTo(const Found& found, std::ostream* out) { *out << found.name; }

class OpenGraphs : public ::testing::TestWithParam<Found> {
 protected:
  static void Check(std::string_view target_text) {
    const auto graph = graph::ParseGraph(GetParam().graph);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const Machine machine{.name = "interpreter", .target = target::ParseTarget(target_text).value()};
    for (uint64_t seed = 1; seed <= kDraws; ++seed) {
      Attempt last;
      Counts counts;
      const absl::Status status =
          CheckGraph(*graph, seed, machine, [&](const Attempt& attempt) { last = attempt; }, counts);
      EXPECT_TRUE(status.ok()) << "seed " << seed << ": " << last.what << ": " << status << "\n" << last.text;
    }
  }
};

TEST_P(OpenGraphs, EqualTheInterpreterForThreads) { Check("x86_64 -mcpu=haswell -threads=2"); }
TEST_P(OpenGraphs, EqualTheInterpreterForLanes) { Check("cuda:sm_80"); }

// The middle element, which is subtracted first, is not there if the size is 0.
constexpr std::string_view kNormalizationOfNothing = R"(graph
size n in [0, 5]
input x: f32[3,n]
input s: f32[3,n]
y: f32[3,n] = LayerNormalization(x, s) {axis = 0, epsilon = 0.125f64}
output y as "y"
)";

// The range of the lengths ended before it began.
constexpr std::string_view kReversedNothing = R"(graph
size n in [0, 5]
input x: f32[n,3]
input lengths: i64[3]
y: f32[n,3] = ReverseSequence(x, lengths) {batch_axis = 1, time_axis = 0}
output y as "y"
)";

INSTANTIATE_TEST_SUITE_P(Found, OpenGraphs,
                         ::testing::Values(Found{"NormalizationOfNothing", kNormalizationOfNothing},
                                           Found{"ReversedNothing", kReversedNothing}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone::fuzz
