// SPDX-License-Identifier: Apache-2.0
// Stages that sort (ir::Reduction::kOrder): whole lines and their first places, of fixed and open length, with long and
// short digits, and what a schedule may do with them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/execution/model.h"
#include "compiler/schedule/apply.h"
#include "compiler/space/space.h"
#include "tests/unit/space/compiled.h"
#include "tests/unit/space/lowered.h"

namespace hone::space {
namespace {

using ::testing::HasSubstr;

// `places` of `values` in each of three lines. `pair` may use x[i, r], any i64, and r.
ir::Workload Sort(const std::string& values, const std::string& places, const std::string& pair = "x[i, r]",
                  const std::string& sizes = "") {
  return ir::ParseWorkload(fmt::format(R"(workload "top_k"
{3}input x: i64[3,{0}] in [-9e18, 9e18]
t: i64[3,{1}] over i:3, p:{1} = order r:{0} of {2}
y: i64[3,{1}] over j:3, q:{1} = t[j, q] ^ 1
output y
)",
                                       values, places, pair, sizes))
      .value();
}

// Several elements of a key, whose order their places show.
constexpr char kFewKeys[] = "x[i, r] %% 5 * 4294967296 - 8589934592 + r";

// The default schedule, compiled.
absl::Status CheckDefault(const ir::Workload& workload, const std::vector<tests::SizeMap>& sizes = tests::kFixedSizes) {
  const target::Target target = target::ParseTarget("cpu -threads=2").value();
  const absl::StatusOr<Candidate> candidate = Default(workload, target);
  if (!candidate.ok()) return candidate.status();
  return tests::CheckCompiled(workload, candidate->schedule, target, {}, 2, codegen::Effort::kKernel, sizes);
}

TEST(Sorts, WholeLinesAndFirstPlaces) {
  for (const char* pair : {"x[i, r]", kFewKeys, "r", "0 - r * 4294967296", "9223372032559808512 + r"}) {
    SCOPED_TRACE(pair);
    for (const char* places : {"1", "7", "4999", "5000"}) {
      EXPECT_EQ(CheckDefault(Sort("5000", places, pair)), absl::OkStatus()) << places;
    }
    for (const char* places : {"1", "16", "17", "30", "31"}) {
      EXPECT_EQ(CheckDefault(Sort("31", places, pair)), absl::OkStatus()) << places;
    }
  }
}

TEST(Sorts, OpenLines) {
  const std::vector<tests::SizeMap> lengths = {{{"n", 1}}, {{"n", 2}}, {{"n", 300}}, {{"n", 301}}, {{"n", 5000}}};
  for (const char* pair : {"x[i, r]", kFewKeys}) {
    for (const char* places : {"n", "min(n,300)", "1"}) {
      EXPECT_EQ(CheckDefault(Sort("n", places, pair, "size n in [1, 5000]\n"), lengths), absl::OkStatus()) << places;
    }
  }
}

// The same by the interpreter of funcs, which finds uses of memory that nothing has written.
TEST(Sorts, LoopsMeanTheSame) {
  const target::Target target = target::ParseTarget("cpu -threads=2").value();
  for (const ir::Workload& workload : {Sort("40", "40"), Sort("40", "9", kFewKeys), Sort("4200", "4200")}) {
    const Candidate candidate = Default(workload, target).value();
    EXPECT_EQ(tests::CheckLowered(workload, candidate.schedule, target), absl::OkStatus());
  }
}

TEST(Sorts, ThreadsShareTheLines) {
  const target::Target target = target::ParseTarget("cpu -threads=2").value();
  EXPECT_THAT(schedule::Print(Default(Sort("5000", "5000"), target)->schedule), HasSubstr("parallel i\n"));
}

TEST(Sorts, StepsDoNotDivideThem) {
  const auto error = [](const std::string& steps) {
    return std::string(schedule::Replay(Sort("40", "9"), schedule::ParseSchedule(steps).value()).status().message());
  };
  EXPECT_THAT(error("split p 4 mask\n"), HasSubstr("loop p is a part of a sort"));
  EXPECT_THAT(error("split r 4 mask\n"), HasSubstr("loop r is a part of a sort"));
  EXPECT_THAT(error("reorder p i\n"), HasSubstr("loop p is a part of a sort"));
  EXPECT_THAT(error("cache_write t\n"), HasSubstr("stage t is a sort; it can be neither replaced nor placed"));
  EXPECT_THAT(error("compute_at t j\n"), HasSubstr("stage t is a sort; it can be neither replaced nor placed"));
  EXPECT_THAT(error("rfactor t r 4 outer\n"), HasSubstr("stage t is a sort; it can be neither replaced nor placed"));
}

TEST(Sorts, LanesRefuseThem) {
  const target::Target target = target::ParseTarget("cuda:sm_90").value();
  const ir::Workload workload = Sort("40", "9");
  const schedule::Schedule naive = execution::ModelOf(target).naive_schedule(workload, target);
  const absl::StatusOr<schedule::State> state = schedule::Replay(workload, naive);
  const absl::Status status = state.ok() ? execution::Lower(*state, target, "k").status() : state.status();
  EXPECT_THAT(status.message(), HasSubstr("sort"));
}

}  // namespace
}  // namespace hone::space
