// SPDX-License-Identifier: Apache-2.0
#include "tracker/job_json.h"

#include <optional>
#include <string_view>
#include <vector>

#include "base/median.h"
#include "base/paired_ratio.h"
#include "base/quantile.h"

namespace hone::tracker {
namespace {

using Json = nlohmann::ordered_json;

Json FileToJson(const v1::FileName& file) {
  return {{"name", file.name()}, {"digest", file.digest()}, {"bytes", file.bytes()}};
}

Json KernelsToJson(const v1::PackageReport& report) {
  Json kernels = Json::array();
  for (const v1::KernelTime& kernel : report.kernels()) {
    kernels.push_back({{"symbol", kernel.symbol()},
                       {"nodes", kernel.nodes()},
                       {"target", kernel.target()},
                       {"time_ms", kernel.median_seconds() * kMillisecondsPerSecond}});
  }
  return kernels;
}

Json MinutesToJson(const v1::PackageReport& report) {
  Json minutes = Json::array();
  for (const v1::RunMinute& minute : report.minutes()) {
    minutes.push_back({{"runs", minute.runs()},
                       {"median_ms", minute.median_seconds() * kMillisecondsPerSecond},
                       {"temperature_c", ValueOrNull(minute.has_temperature_c(), minute.temperature_c())},
                       {"clock_mhz", ValueOrNull(minute.has_clock_mhz(), minute.clock_mhz())}});
  }
  return minutes;
}

// report: null while there is none.
Json PackageToJson(const v1::FileName& package, const v1::PackageReport* report) {
  Json json = FileToJson(package);
  if (report == nullptr) return json;
  const std::vector<double> seconds(report->seconds().begin(), report->seconds().end());
  const auto quantile = [&](double share) {
    return ValueOrNull(!seconds.empty(), seconds.empty() ? 0 : Quantile(seconds, share) * kMillisecondsPerSecond);
  };
  json["target"] = report->target();
  json["threads"] = report->threads();
  json["load_ms"] = report->load_seconds() * kMillisecondsPerSecond;
  json["first_run_ms"] = report->first_run_seconds() * kMillisecondsPerSecond;
  json["min_ms"] = quantile(0);
  json["median_ms"] = ValueOrNull(!seconds.empty(), seconds.empty() ? 0 : Median(seconds) * kMillisecondsPerSecond);
  json["p90_ms"] = quantile(0.9);
  json["p99_ms"] = quantile(0.99);
  json["runs"] = report->runs();
  json["peak_memory_bytes"] =
      ValueOrNull(report->peak_memory_bytes() > 0, static_cast<double>(report->peak_memory_bytes()));
  json["kernels"] = KernelsToJson(*report);
  json["minutes"] = MinutesToJson(*report);
  json["outputs"] = report->has_outputs() ? FileToJson(report->outputs()) : Json();
  json["passed_over"] = report->passed_over();
  return json;
}

// What was asked for, in one word.
std::string_view KindOf(const v1::RunTask& task) {
  if (task.packages_size() > 1) return "comparison";
  if (task.profile()) return "profile";
  return task.seconds() > 0 ? "bench" : "run";
}

// The time of the second of two packages beside that of the first; null for other numbers of packages and few runs.
Json RatioToJson(const v1::RunReport& report) {
  if (report.packages_size() != 2) return nullptr;
  const auto times = [&](int i) {
    return std::vector<double>(report.packages(i).seconds().begin(), report.packages(i).seconds().end());
  };
  const std::optional<PairedRatio> ratio = ComparePaired(times(0), times(1));
  if (!ratio.has_value()) return nullptr;
  return {{"ratio", ratio->ratio}, {"low", ratio->low}, {"high", ratio->high}, {"pairs", ratio->pairs}};
}

}  // namespace

nlohmann::ordered_json NoticeToJson(const v1::Job& job) {
  if (job.spec().notify_url().empty()) return nullptr;
  const v1::JobNotice& notice = job.notice();
  return {{"url", job.spec().notify_url()},
          {"delivered", notice.closed() && notice.problem().empty()},
          {"given_up", notice.closed() && !notice.problem().empty()},
          {"attempts", notice.attempts()},
          {"problem", notice.problem()}};
}

nlohmann::ordered_json SpentToJson(const v1::TimeSpent& spent) {
  return {{"proposing_seconds", spent.proposing_seconds()},
          {"learning_seconds", spent.learning_seconds()},
          {"building_seconds", spent.building_seconds()},
          {"waiting_seconds", spent.waiting_seconds()},
          {"measuring_seconds", spent.measuring_seconds()},
          {"drawn", spent.drawn()},
          {"illegal", spent.illegal()},
          {"repeated", spent.repeated()}};
}

nlohmann::ordered_json RunToJson(const v1::Job& job) {
  if (!job.spec().has_run()) return nullptr;
  const v1::RunTask& task = job.spec().run();
  const v1::RunReport& report = job.progress().run();
  Json packages = Json::array();
  for (int i = 0; i < task.packages_size(); ++i) {
    packages.push_back(PackageToJson(task.packages(i), i < report.packages_size() ? &report.packages(i) : nullptr));
  }
  return {{"kind", KindOf(task)},
          {"device", job.progress().run_device()},
          {"packages", packages},
          {"ratio", RatioToJson(report)},
          {"inputs", task.has_inputs() ? FileToJson(task.inputs()) : Json()},
          {"shapes", task.shapes()},
          {"seconds", task.seconds()},
          {"threads", task.threads()},
          {"profile", task.profile()},
          {"keep_outputs", task.keep_outputs()},
          {"allow_onnx_runtime", task.allow_onnx_runtime()},
          {"temperature_before_c", ValueOrNull(report.has_temperature_before_c(), report.temperature_before_c())},
          {"temperature_after_c", ValueOrNull(report.has_temperature_after_c(), report.temperature_after_c())},
          {"clock_before_mhz", ValueOrNull(report.has_clock_before_mhz(), report.clock_before_mhz())},
          {"clock_after_mhz", ValueOrNull(report.has_clock_after_mhz(), report.clock_after_mhz())}};
}

}  // namespace hone::tracker
