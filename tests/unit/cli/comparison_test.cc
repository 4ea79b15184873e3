// SPDX-License-Identifier: Apache-2.0
// The table of hone compare: marks, columns without values, devices without an answer, and shares of the roofline.
#include "cli/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

ComparedDevice Answered(const std::string& name, std::vector<double> medians) {
  ComparedDevice device;
  device.name = name;
  device.job.set_id("j-" + name);
  device.job.set_state(v1::JOB_STATE_SUCCEEDED);
  for (const double median : medians) {
    device.packages.push_back(device.packages.empty() ? "new.hone" : "old.hone");
    v1::PackageReport& report = *device.job.mutable_progress()->mutable_run()->add_packages();
    report.add_seconds(median);
    report.set_load_seconds(0.5);
    report.set_peak_memory_bytes(7'000'000);
  }
  return device;
}

ComparedDevice Missing(const std::string& name, v1::JobState state, const std::string& reason) {
  ComparedDevice device{.name = name, .packages = {"new.hone"}, .job = {}, .reason = reason};
  device.job.set_id("j-" + name);
  device.job.set_state(state);
  return device;
}

TEST(Comparison, TheFastestDeviceOfEachPackageIsMarked) {
  const std::string text = ComparisonToText({Answered("a/cpu", {0.002, 0.004}), Answered("b/cpu", {0.003, 0.001})});
  EXPECT_THAT(text, HasSubstr("\n* a/cpu   new.hone    2.00 ms"));
  EXPECT_THAT(text, HasSubstr("\n  a/cpu   old.hone    4.00 ms"));
  EXPECT_THAT(text, HasSubstr("\n  b/cpu   new.hone    3.00 ms"));
  EXPECT_THAT(text, HasSubstr("\n* b/cpu   old.hone    1.00 ms"));
  EXPECT_THAT(text, Not(HasSubstr("power"))) << "no device reports it";
  EXPECT_THAT(text, HasSubstr("no share of the roofline for new.hone: the device has no measured roofline\n"));
}

TEST(Comparison, DevicesWithoutAnAnswerAreRowsWithTheirReasons) {
  ComparedDevice uncompiled{.name = "d/cpu", .packages = {"new.hone"}, .job = {}, .reason = "no target"};
  const std::vector<ComparedDevice> devices = {
      Answered("a/cpu", {0.002}), Missing("b/cpu", v1::JOB_STATE_FAILED, "package 'new.hone': signal 11"),
      Missing("c/cpu", v1::JOB_STATE_CANCELLED, "c/cpu, which is offline"), uncompiled};
  const std::string text = ComparisonToText(devices);
  EXPECT_THAT(text, HasSubstr("b/cpu   new.hone  failed: package 'new.hone': signal 11\n"));
  EXPECT_THAT(text, HasSubstr("c/cpu   new.hone  waiting: c/cpu, which is offline\n"));
  EXPECT_THAT(text, HasSubstr("d/cpu   new.hone  failed: no target\n"));
  EXPECT_EQ(NamesOfMissing(devices), "b/cpu, c/cpu, d/cpu");
  const nlohmann::ordered_json rows = ComparisonToJson(devices).at("rows");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1].at("state"), "failed");
  EXPECT_EQ(rows[2].at("state"), "waiting");
  EXPECT_TRUE(rows[3].at("median_ms").is_null());
}

TEST(Comparison, TheShareOfTheRooflineIsTheBoundOfAllCallsByTheMedian) {
  ComparedDevice device = Answered("a/cpu", {0.010});
  v1::RunReport& run = *device.job.mutable_progress()->mutable_run();
  v1::KernelWork& bound_by_operations = *run.mutable_packages(0)->add_work();
  bound_by_operations.set_calls(2);
  bound_by_operations.set_flops(1e9);
  bound_by_operations.set_bytes(1000);
  v1::KernelWork& bound_by_memory = *run.mutable_packages(0)->add_work();
  bound_by_memory.set_calls(1);
  bound_by_memory.set_bytes(1e7);
  run.mutable_roofline()->set_flops_per_second(1e12);
  run.mutable_roofline()->add_levels()->set_bytes(1'000'000);
  run.mutable_roofline()->mutable_levels(0)->set_bytes_per_second(1e11);
  run.mutable_roofline()->add_levels()->set_bytes_per_second(1e10);
  run.set_power_watts(4.5);
  run.set_temperature_after_c(51);
  const nlohmann::ordered_json row = ComparisonToJson({device}).at("rows").at(0);
  EXPECT_NEAR(row.at("roofline_share").get<double>(), (2 * 1e-3 + 1e-3) / 0.010, 1e-12);
  const std::string text = ComparisonToText({device});
  EXPECT_THAT(text, HasSubstr("30.0%"));
  EXPECT_THAT(text, HasSubstr("4.5 W"));
  EXPECT_THAT(text, HasSubstr("51.0"));
  EXPECT_THAT(text, Not(HasSubstr("no share")));
  run.mutable_packages(0)->clear_work();
  run.mutable_packages(0)->set_work_unknown("open sizes");
  EXPECT_THAT(ComparisonToText({device}), HasSubstr("no share of the roofline for new.hone: open sizes\n"));
}

}  // namespace
}  // namespace hone::cli
