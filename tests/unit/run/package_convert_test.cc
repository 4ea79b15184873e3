// SPDX-License-Identifier: Apache-2.0
// A child that runs packages may lie about everything: findings that cannot be true are refused.
#include "device_agent/launcher/package_convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

#include "base/random.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;

PackageTask Task(int packages) {
  PackageTask task;
  task.purpose = PackageTask::Purpose::kMeasure;
  task.names.assign(static_cast<size_t>(packages), "a.hone");
  task.seconds = 1;
  return task;
}

PackageRun Good() {
  PackageRun run;
  run.target = "cpu";
  run.threads = 2;
  run.load_seconds = 0.1;
  run.seconds = {0.2, 0.3, 0.2};
  run.runs = 3;
  run.kernels = {{"conv", "cpu", 0.01}};
  run.minutes = {{3, 0.2}};
  return run;
}

std::string ErrorOf(const std::function<void(PackageRun&)>& change) {
  PackageFindings findings;
  findings.packages = {Good(), Good()};
  change(findings.packages[1]);
  return std::string(CheckFindings(findings, Task(2), 10).message());
}

TEST(CheckFindingsTest, WhatCanBeTrueIsTaken) {
  EXPECT_EQ(ErrorOf([](PackageRun&) {}), "");
}

TEST(CheckFindingsTest, WhatCannotBeTrueIsRefused) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  for (const double wrong : {-1.0, 11.0, kNan, kInf}) {
    EXPECT_THAT(ErrorOf([&](PackageRun& run) { run.seconds[1] = wrong; }), HasSubstr("time of a run")) << wrong;
    EXPECT_THAT(ErrorOf([&](PackageRun& run) { run.load_seconds = wrong; }), HasSubstr("time")) << wrong;
    EXPECT_THAT(ErrorOf([&](PackageRun& run) { run.first_run_seconds = wrong; }), HasSubstr("time")) << wrong;
    EXPECT_THAT(ErrorOf([&](PackageRun& run) { run.kernels[0].median_seconds = wrong; }), HasSubstr("kernel"));
    EXPECT_THAT(ErrorOf([&](PackageRun& run) { run.minutes[0].median_seconds = wrong; }), HasSubstr("minute"));
  }
  EXPECT_THAT(ErrorOf([](PackageRun& run) { run.seconds = {4, 4, 4}; }), HasSubstr("sum of times"));
  EXPECT_THAT(ErrorOf([](PackageRun& run) { run.seconds = {}; }), HasSubstr("number of runs"));
  EXPECT_THAT(ErrorOf([](PackageRun& run) { run.seconds.pop_back(); }), HasSubstr("number of pairs"));
  EXPECT_THAT(ErrorOf([](PackageRun& run) { run.runs = 2; }), HasSubstr("number of runs"));
  EXPECT_THAT(ErrorOf([](PackageRun& run) { run.seconds.assign(20'001, 1e-6), run.runs = 20'001; }),
              HasSubstr("number of runs"));
  EXPECT_THAT(ErrorOf([](PackageRun& run) { run.threads = 100'000; }), HasSubstr("threads"));
  EXPECT_THAT(ErrorOf([](PackageRun& run) { run.peak_memory_bytes = -1; }), HasSubstr("memory"));
  EXPECT_THAT(ErrorOf([](PackageRun& run) { run.output_bytes = 5; }), HasSubstr("outputs"));
  EXPECT_THAT(ErrorOf([](PackageRun& run) { run.kernels.resize(100'001); }), HasSubstr("kernels"));
  EXPECT_THAT(ErrorOf([](PackageRun& run) { run.passed_over.resize(65); }), HasSubstr("kernels"));
  EXPECT_THAT(ErrorOf([](PackageRun& run) { run.minutes = {{3, 0.1}, {1, 0.1}}; }), HasSubstr("minute"));
  EXPECT_THAT(ErrorOf([](PackageRun& run) { run.minutes.resize(3); }), HasSubstr("number of minutes"));
  PackageFindings one;
  one.packages = {Good()};
  EXPECT_THAT(std::string(CheckFindings(one, Task(2), 10).message()), HasSubstr("number of packages"));
}

TEST(CheckFindingsTest, TextsOfAReportAreOneLineOfAscii) {
  PackageRun run = Good();
  run.target = "cpu\n\x1b[31m\xff" + std::string(5000, 'x');
  run.passed_over = {"a\nb"};
  v1::PackageReport report;
  AddFirstRun(run, report);
  EXPECT_THAT(report.target(), testing::StartsWith("cpu??[31m?xxx"));
  EXPECT_EQ(report.target().size(), 2000u);
  EXPECT_EQ(report.passed_over(0), "a?b");
}

TEST(ReportMemoryTest, FindingsSurviveTheWay) {
  ReportMemory memory = ReportMemory::Create().value();
  EXPECT_FALSE(memory.findings().ok()) << "nothing was stored";
  PackageFindings findings;
  findings.packages = {Good(), Good()};
  ASSERT_TRUE(memory.Store(findings));
  const PackageFindings found = memory.findings().value();
  ASSERT_EQ(found.packages.size(), 2u);
  EXPECT_EQ(found.packages[1].seconds, findings.packages[1].seconds);
  EXPECT_EQ(found.packages[1].kernels[0].symbol, "conv");
  EXPECT_EQ(found.packages[0].minutes[0].runs, 3);
  findings.packages[0].target.assign(17 << 20, 'x');
  EXPECT_FALSE(memory.Store(findings)) << "there is no room";
}

TEST(ReportMemoryTest, ChangedBytesNeverCrash) {
  ReportMemory memory = ReportMemory::Create().value();
  PackageFindings findings;
  findings.packages = {Good(), Good()};
  ASSERT_TRUE(memory.Store(findings));
  const Mapping bytes = memory.file().Map(MemoryFile::Access::kReadAndWrite).value();
  const std::string good(bytes.view().substr(0, 600));
  Random random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::memcpy(bytes.data(), good.data(), good.size());
    for (int i = 0; i < 3; ++i) bytes.data()[random.Below(600)] = static_cast<char>(random.Next());
    const absl::StatusOr<PackageFindings> found = memory.findings();
    if (found.ok()) CheckFindings(*found, Task(2), 10).IgnoreError();
  }
}

}  // namespace
}  // namespace hone::agent
