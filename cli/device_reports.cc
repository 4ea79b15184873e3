// SPDX-License-Identifier: Apache-2.0
#include "cli/device_reports.h"

#include <fmt/format.h>

#include <utility>

#include "cli/job_text.h"
#include "cli/kernel_sums.h"
#include "cli/output.h"
#include "cli/quantity_text.h"
#include "tracker/job_json.h"

namespace hone::cli {
namespace {

std::string KernelsToText(const v1::PackageReport& report) {
  std::vector<KernelCall> calls;
  for (const v1::KernelTime& kernel : report.kernels()) {
    calls.push_back({kernel.symbol(), {kernel.nodes().begin(), kernel.nodes().end()}, kernel.median_seconds()});
  }
  double all = 0;
  const std::vector<KernelSum> sums = SumByKernel(calls, &all);
  std::string text = fmt::format("{:>10} {:>6} {:>6}  {}\n", "time", "share", "calls", "kernel");
  for (const KernelSum& sum : sums) {
    text += Row("{:>10} {:>5.1f}% {:>6}  {}{}", Latency(sum.seconds), all > 0 ? 100 * sum.seconds / all : 0, sum.calls,
                sum.symbol, sum.nodes.empty() ? "" : ": " + NodesText(sum.nodes));
  }
  return text;
}

std::string MinutesToText(const v1::PackageReport& report) {
  std::string text = fmt::format("{:>6} {:>8} {:>10} {:>8} {:>8}\n", "minute", "runs", "median", "C", "MHz");
  for (int i = 0; i < report.minutes_size(); ++i) {
    const v1::RunMinute& minute = report.minutes(i);
    text += Row("{:>6} {:>8} {:>10} {:>8} {:>8}", i + 1, minute.runs(), Latency(minute.median_seconds()),
                minute.has_temperature_c() ? fmt::format("{:.1f}", minute.temperature_c()) : "-",
                minute.has_clock_mhz() ? fmt::format("{:.0f}", minute.clock_mhz()) : "-");
  }
  return text;
}

// "45.0 C to 52.0 C, 1500 MHz to 1400 MHz"; "" where the device has no sensors.
std::string SensorsToText(const v1::RunReport& report) {
  std::string text;
  if (report.has_temperature_before_c() && report.has_temperature_after_c()) {
    text = fmt::format("{:.1f} C to {:.1f} C", report.temperature_before_c(), report.temperature_after_c());
  }
  if (report.has_clock_before_mhz() && report.has_clock_after_mhz()) {
    text += fmt::format("{}{:.0f} MHz to {:.0f} MHz", text.empty() ? "" : ", ", report.clock_before_mhz(),
                        report.clock_after_mhz());
  }
  return text;
}

}  // namespace

nlohmann::ordered_json RunsToJson(const std::vector<v1::Job>& jobs) {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (const v1::Job& job : jobs) {
    nlohmann::ordered_json run = tracker::RunToJson(job);
    run["job"] = job.id();
    runs.push_back(std::move(run));
  }
  return {{"runs", std::move(runs)}};
}

std::string RunsToText(const std::vector<v1::Job>& jobs) {
  std::string text;
  for (const v1::Job& job : jobs) {
    const v1::RunReport& report = job.progress().run();
    for (int i = 0; i < report.packages_size(); ++i) {
      const v1::PackageReport& package = report.packages(i);
      text += RunLine(job.spec().run().packages(i).name(), job.progress().run_device(), package);
      if (!package.minutes().empty()) text += MinutesToText(package);
      if (!package.kernels().empty()) text += KernelsToText(package);
    }
    const std::string sensors = SensorsToText(report);
    if (!sensors.empty()) text += Row("{}: {}", job.progress().run_device(), sensors);
  }
  return text;
}

}  // namespace hone::cli
