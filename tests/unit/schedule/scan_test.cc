// SPDX-License-Identifier: Apache-2.0
// The step scan: unchanged results in every direction and for every reduction, refusals, and what the sketch makes of
// it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/schedule/apply.h"
#include "compiler/space/space.h"
#include "tests/unit/space/compiled.h"
#include "tests/unit/space/lowered.h"

namespace hone::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Which values count at place i: those for which the condition on i and k holds.
ir::Workload Running(const std::string& condition, const std::string& reduction = "sum",
                     const std::string& identity = "0f32") {
  return ir::ParseWorkload(fmt::format(R"(workload "cum_sum"
input x: f32[3,29,19] in [0.5, 1.5]
t: f32[3,29,19] over b:3, i:29, j:19 = {1} k:29 of select({0}, x[b, k, j] + f32(j), {2})
output t
)",
                                       condition, reduction, identity))
      .value();
}

absl::Status Check(const ir::Workload& workload, const std::string& steps,
                   const std::vector<tests::SizeMap>& sizes = tests::kFixedSizes) {
  const absl::StatusOr<Schedule> schedule = ParseSchedule(steps);
  if (!schedule.ok()) return schedule.status();
  const target::Target target = target::ParseTarget("cpu -threads=2").value();
  const absl::Status lowered = tests::CheckLowered(workload, *schedule, target, {}, sizes);
  if (!lowered.ok()) return lowered;
  return tests::CheckCompiled(workload, *schedule, target, {}, 2, codegen::Effort::kKernel, sizes);
}

std::string Error(const std::string& steps, const ir::Workload& workload = Running("k <= i")) {
  return std::string(Replay(workload, ParseSchedule(steps).value()).status().message());
}

TEST(Scan, KeepsTheMeaning) {
  for (const char* condition : {"k <= i", "k < i", "i <= k", "i < k", "i >= k", "i > k", "k >= i", "k > i"}) {
    EXPECT_EQ(Check(Running(condition), "scan t\n"), absl::OkStatus()) << condition;
    EXPECT_EQ(Check(Running(condition),
                    "scan t\nsplit j 16 mask\nreorder b jo i ji\nvectorize ji\nfuse b jo\n"
                    "parallel b_jo\n"),
              absl::OkStatus())
        << condition;
  }
}

TEST(Scan, OfEveryReduction) {
  EXPECT_EQ(Check(Running("k <= i", "prod", "1f32"), "scan t\n"), absl::OkStatus());
  EXPECT_EQ(Check(Running("k < i", "max", "-inf_f32"), "scan t\n"), absl::OkStatus());
  EXPECT_EQ(Check(Running("i <= k", "min", "inf_f32"), "scan t\n"), absl::OkStatus());
}

TEST(Scan, SaysWhatDoesNotFit) {
  const char* const kNone = "stage t is not a reduction of the values up to each place of an axis";
  EXPECT_THAT(Error("scan t\n", Running("k <= b")), HasSubstr(kNone)) << "the extents differ";
  EXPECT_THAT(Error("scan t\n", Running("k <= i + 1")), HasSubstr(kNone));
  EXPECT_THAT(Error("scan t\n", Running("k <= i", "sum", "1f32")), HasSubstr(kNone));
  EXPECT_THAT(Error("scan t\n", Running("k == i")), HasSubstr(kNone));
  EXPECT_THAT(Error("scan q\n"), HasSubstr("there is no stage q"));
  EXPECT_THAT(Error("split j 4 mask\nscan t\n"), HasSubstr("scheduled already"));
}

TEST(Scan, PlacesFollowEachOther) {
  EXPECT_THAT(Error("scan t\nsplit i 4 mask\n"), HasSubstr("loop i goes over the places of a scan"));
  EXPECT_THAT(Error("scan t\nparallel i\n"), HasSubstr("loop i is a reduction: its iterations depend on each other"));
  EXPECT_THAT(Error("scan t\nvectorize i\n"), HasSubstr("loop i is a reduction"));
  EXPECT_THAT(Error("scan t\nfuse b i\n"), HasSubstr("one of b and i is a reduction"));
  EXPECT_THAT(Error("scan t\nbind i lane\n"), HasSubstr("loop i is a reduction"));
  EXPECT_THAT(Error("scan t\ncache_read t t\n"), HasSubstr("what it reads of itself cannot be copied"));
  EXPECT_THAT(Error("scan t\ncache_write t\n"), HasSubstr("scheduled already"));
}

TEST(Scan, IsNotInlined) {
  const ir::Workload workload = ir::ParseWorkload(R"(workload "cum_sum"
input x: f32[29] in [-1, 1]
t: f32[29] over i:29 = sum k:29 of select(k <= i, x[k], 0f32)
u: f32[29] over j:29 = t[j] * 2f32
output u
)")
                                    .value();
  EXPECT_THAT(Error("scan t\ninline t\n", workload), HasSubstr("stage t is a scan"));
  EXPECT_THAT(Error("scan t\ncompute_at t j\n", workload), HasSubstr("scheduled already"));
}

// `size`: a number or n. The sums run along the axis a or, with `last`, along the last one.
ir::Workload Sums(const std::string& size, bool last) {
  return ir::ParseWorkload(fmt::format(R"(workload "cum_sum"
{1}input x: f32[{0}] in [-1, 1]
t: f32[{0}] over {2} = sum k:{3} of select(k <= a, x[{4}], 0f32)
y: f32[{0}] over {5} = max(t[{6}], 0f32)
output y
)",
                                       last ? "40," + size : size + ",40", size == "n" ? "size n in [1, 3000]\n" : "",
                                       last ? "c:40, a:" + size : "a:" + size + ", c:40", size, last ? "c, k" : "k, c",
                                       last ? "d:40, e:" + size : "e:" + size + ", d:40", last ? "d, e" : "e, d"))
      .value();
}

TEST(Scan, IsTheDefaultForLongAxes) {
  const target::Target target = target::ParseTarget("cpu -threads=2").value();
  const std::vector<tests::SizeMap> lengths = {{{"n", 1}}, {{"n", 2}}, {{"n", 31}}, {{"n", 3000}}};
  for (const bool last : {false, true}) {
    for (const char* size : {"n", "3000"}) {
      const ir::Workload workload = Sums(size, last);
      const Schedule schedule = space::Default(workload, target).value().schedule;
      EXPECT_THAT(Print(schedule), HasSubstr("scan t\n")) << size << last;
      EXPECT_EQ(Check(workload, Print(schedule), workload.sizes.empty() ? tests::kFixedSizes : lengths),
                absl::OkStatus())
          << size << last;
    }
  }
  EXPECT_THAT(Print(space::Default(Sums("20", false), target).value().schedule), Not(HasSubstr("scan")));
}

TEST(Scan, OfOpenColumns) {
  const ir::Workload workload = ir::ParseWorkload(R"(workload "cum_sum"
size n in [1, 300]
input x: f32[100,n] in [-1, 1]
t: f32[100,n] over a:100, c:n = sum k:100 of select(k <= a, x[k, c], 0f32)
output t
)")
                                    .value();
  const target::Target target = target::ParseTarget("cpu -threads=2").value();
  const Schedule schedule = space::Default(workload, target).value().schedule;
  EXPECT_THAT(Print(schedule), HasSubstr("scan t\n"));
  EXPECT_EQ(Check(workload, Print(schedule), {{{"n", 1}}, {{"n", 7}}, {{"n", 16}}, {{"n", 150}}, {{"n", 300}}}),
            absl::OkStatus());
}

}  // namespace
}  // namespace hone::schedule
