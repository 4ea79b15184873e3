// SPDX-License-Identifier: Apache-2.0
#include "tracker/job_json.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/median.h"
#include "base/paired_ratio.h"
#include "base/quantile.h"
#include "base/roofline.h"
#include "proto/convert.h"

namespace hone::tracker {
namespace {

using Json = nlohmann::ordered_json;

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

Json RooflineToJson(const v1::RunReport& report) {
  if (!report.has_roofline()) return nullptr;
  Json levels = Json::array();
  for (const v1::DeviceRoofline::Level& level : report.roofline().levels()) {
    levels.push_back({{"bytes", ValueOrNull(level.bytes() > 0, static_cast<double>(level.bytes()))},
                      {"gbytes_per_second", level.bytes_per_second() * 1e-9}});
  }
  return {{"peak_gflops", report.roofline().flops_per_second() * 1e-9}, {"levels", levels}};
}

// The operations and bytes of a run, and how near its median is to what the device can do.
void AddWork(const v1::PackageReport& package, const v1::RunReport& report, Json& json) {
  double flops = 0, bytes = 0;
  for (const v1::KernelWork& kernel : package.work()) {
    flops += static_cast<double>(kernel.calls()) * kernel.flops();
    bytes += static_cast<double>(kernel.calls()) * kernel.bytes();
  }
  const std::optional<double> bound = RooflineSeconds(package, report);
  const std::vector<double> seconds(package.seconds().begin(), package.seconds().end());
  json["flops"] = ValueOrNull(!package.work().empty(), flops);
  json["bytes_touched"] = ValueOrNull(!package.work().empty(), bytes);
  json["work_unknown"] = package.work_unknown();
  json["roofline_ms"] = ValueOrNull(bound.has_value(), bound.value_or(0) * kMillisecondsPerSecond);
  json["roofline_share"] =
      ValueOrNull(bound.has_value() && !seconds.empty(), seconds.empty() ? 0 : bound.value_or(0) / Median(seconds));
}

// report: null while there is none. run: of all packages.
Json PackageToJson(const v1::FileName& package, const v1::PackageReport* report, const v1::RunReport& run) {
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
  AddWork(*report, run, json);
  json["kernels"] = KernelsToJson(*report);
  json["minutes"] = MinutesToJson(*report);
  json["outputs"] = report->has_outputs() ? FileToJson(report->outputs()) : Json();
  json["passed_over"] = report->passed_over();
  return json;
}

// The ratio of kernels disagrees beyond this part of the measured one.
constexpr double kDisagreementMin = 0.05;

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

nlohmann::ordered_json TimeToJson(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

nlohmann::ordered_json FileToJson(const v1::FileName& file) {
  return {{"name", file.name()}, {"digest", file.digest()}, {"bytes", file.bytes()}};
}

std::vector<std::string> ModelsOf(const v1::JobSpec& spec) {
  std::vector<std::string> models;
  const auto add = [&models](std::string_view file) {
    for (const std::string_view ending : {".onnx", ".hone"}) {
      if (file.ends_with(ending)) file.remove_suffix(ending.size());
    }
    if (!file.empty() && std::ranges::find(models, file) == models.end()) models.emplace_back(file);
  };
  for (const v1::FileName& package : spec.run().packages()) add(package.name());
  if (!spec.has_run()) add(spec.name());
  return models;
}

std::optional<absl::Duration> TimeLeft(const v1::Job& job, absl::Time now) {
  if (job.state() != v1::JOB_STATE_RUNNING) return std::nullopt;
  const v1::JobProgress& progress = job.progress();
  const bool stands_still = !job.waiting_for().empty() && progress.trials_per_second() == 0;
  const bool searches = !progress.search_ended();  // else only `until` limits the run of the model
  std::optional<absl::Duration> left;
  const auto at_most = [&left](absl::Duration other) { left = std::min(left.value_or(other), other); };
  if (searches && job.spec().has_time_budget() && !stands_still) {
    at_most(FromProto(job.spec().time_budget()) - absl::Seconds(progress.seconds()));
  }
  if (searches && job.spec().trials() > 0 && progress.trials_per_second() > 0) {
    at_most(absl::Seconds(static_cast<double>(job.spec().trials() - progress.trials()) / progress.trials_per_second()));
  }
  if (job.spec().has_until()) at_most(FromProto(job.spec().until()) - now);
  return left.has_value() ? std::optional(std::max(*left, absl::ZeroDuration())) : std::nullopt;
}

bool KernelsDisagree(const v1::ModelConfirmation& confirmation) {
  const double kernels = confirmation.kernels_ratio(), ratio = confirmation.ratio();
  if (kernels <= 0 || ratio <= 0) return false;
  const bool inside = confirmation.ratio_low() <= kernels && kernels <= confirmation.ratio_high();
  return !inside && std::abs(kernels - ratio) > kDisagreementMin * ratio;
}

nlohmann::ordered_json ConfirmationToJson(const v1::Job& job) {
  if (!job.progress().has_confirmation()) return nullptr;
  const v1::ModelConfirmation& confirmation = job.progress().confirmation();
  const bool is_made = confirmation.ratio() > 0;
  const bool is_sure = confirmation.ratio_low() > 0;
  Json packages = Json::array();
  for (int i = 0; i < confirmation.run().packages_size(); ++i) {
    v1::FileName name;
    name.set_name(i == 0 ? "untuned" : "tuned");
    Json package = PackageToJson(name, &confirmation.run().packages(i), confirmation.run());
    for (const char* file : {"digest", "bytes"}) package.erase(file);  // the packages are not kept
    packages.push_back(std::move(package));
  }
  return {{"device", confirmation.device()},
          {"before_ms", ValueOrNull(is_made, confirmation.before_seconds() * kMillisecondsPerSecond)},
          {"after_ms", ValueOrNull(is_made, confirmation.after_seconds() * kMillisecondsPerSecond)},
          {"ratio", ValueOrNull(is_made, confirmation.ratio())},
          {"ratio_low", ValueOrNull(is_sure, confirmation.ratio_low())},
          {"ratio_high", ValueOrNull(is_sure, confirmation.ratio_high())},
          {"kernels_ratio", ValueOrNull(confirmation.kernels_ratio() > 0, confirmation.kernels_ratio())},
          {"kernels_disagree", KernelsDisagree(confirmation)},
          {"problem", confirmation.problem()},
          {"packages", packages}};
}

std::optional<double> RooflineSeconds(const v1::PackageReport& package, const v1::RunReport& report) {
  if (package.work().empty() || !report.has_roofline()) return std::nullopt;
  Roofline roofline{.flops_per_second = report.roofline().flops_per_second(), .levels = {}};
  for (const v1::DeviceRoofline::Level& level : report.roofline().levels()) {
    const uint64_t bytes = level.bytes() > 0 ? static_cast<uint64_t>(level.bytes()) : UINT64_MAX;
    roofline.levels.push_back({bytes, level.bytes_per_second()});
  }
  double seconds = 0;
  for (const v1::KernelWork& kernel : package.work()) {
    seconds += static_cast<double>(kernel.calls()) * roofline.LowerBoundSeconds(kernel.flops(), kernel.bytes());
  }
  return seconds;
}

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

nlohmann::ordered_json EnvironmentToJson(const v1::RunEnvironment& environment) {
  return {{"kernel", environment.kernel()},         {"governor", environment.governor()},
          {"boost", environment.boost()},           {"smt", environment.smt()},
          {"huge_pages", environment.huge_pages()}, {"driver", environment.driver()},
          {"agent", environment.agent_version()},   {"device", environment.device()}};
}

nlohmann::ordered_json RunToJson(const v1::Job& job) {
  if (!job.spec().has_run()) return nullptr;
  const v1::RunTask& task = job.spec().run();
  const v1::RunReport& report = job.progress().run();
  Json packages = Json::array();
  for (int i = 0; i < task.packages_size(); ++i) {
    packages.push_back(
        PackageToJson(task.packages(i), i < report.packages_size() ? &report.packages(i) : nullptr, report));
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
          {"keep_values", task.keep_values()},
          {"allow_onnx_runtime", task.allow_onnx_runtime()},
          {"temperature_before_c", ValueOrNull(report.has_temperature_before_c(), report.temperature_before_c())},
          {"temperature_after_c", ValueOrNull(report.has_temperature_after_c(), report.temperature_after_c())},
          {"clock_before_mhz", ValueOrNull(report.has_clock_before_mhz(), report.clock_before_mhz())},
          {"clock_after_mhz", ValueOrNull(report.has_clock_after_mhz(), report.clock_after_mhz())},
          {"power_watts", ValueOrNull(report.has_power_watts(), report.power_watts())},
          {"power_source", report.power_source()},
          {"throttled", report.throttled()},
          {"environment", report.has_environment() ? EnvironmentToJson(report.environment()) : Json()},
          {"roofline", RooflineToJson(report)}};
}

}  // namespace hone::tracker
