// SPDX-License-Identifier: Apache-2.0
#include "cli/job_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/median.h"
#include "base/one_line.h"
#include "base/quantile.h"
#include "cli/output.h"
#include "cli/quantity_text.h"
#include "tracker/end_reason.h"
#include "tracker/enum_name.h"
#include "tracker/job_json.h"
#include "tracker/queue/matches.h"

namespace hone::cli {
namespace {

std::string KindName(v1::FailureKind kind) {
  return tracker::EnumName(v1::FailureKind_Name(kind), "FAILURE_KIND_", kind);
}

double Milliseconds(double seconds) { return seconds * 1e3; }

// One line for each workload that could not be measured, with the reason.
std::string FailuresToText(const v1::Job& job) {
  std::string text;
  for (int i = 0; i < std::min(job.spec().workloads_size(), job.progress().workloads_size()); ++i) {
    const std::string& trouble = job.progress().workloads(i).trouble();
    if (trouble.empty()) continue;
    text += fmt::format("not measured: {}: {}\n", TitleOf(job.spec().workloads(i)), OneLine(trouble));
  }
  return text;
}

// Two lines: how the time of the search was spent, and the outcomes of the candidates that it considered. "" before the
// first trial.
std::string SpentToText(const v1::JobProgress& progress) {
  const v1::TimeSpent& spent = progress.spent();
  if (progress.trials() == 0 || spent.drawn() == 0) return "";
  const auto each = [&](double seconds) {
    return fmt::format("{:.1f} s ({:.1f} ms a trial)", seconds, seconds * 1e3 / static_cast<double>(progress.trials()));
  };
  const auto share = [&](int64_t count) {
    return 100.0 * static_cast<double>(count) / static_cast<double>(spent.drawn());
  };
  return fmt::format(
      "time spent, partly at the same time: proposing {}, learning {}, building {}, waiting for a device {}, measuring "
      "{}\n"
      "{} candidates drawn, {:.0f}% illegal, {:.0f}% drawn before\n",
      each(spent.proposing_seconds()), each(spent.learning_seconds()), each(spent.building_seconds()),
      each(spent.waiting_seconds()), each(spent.measuring_seconds()), spent.drawn(), share(spent.illegal()),
      share(spent.repeated()));
}

// The report of a run of packages: a line for each package, with its device.
std::string RunToText(const v1::Job& job) {
  const v1::RunReport& report = job.progress().run();
  std::string text;
  for (int i = 0; i < report.packages_size(); ++i) {
    text += RunLine(job.spec().run().packages(i).name(), job.progress().run_device(), report.packages(i));
  }
  return text;
}

// The measured gain of the whole model, or why there is none, and the sums of kernel times, each on a line.
std::string LatencyToText(const v1::Job& job) {
  const v1::JobProgress& p = job.progress();
  const v1::ModelConfirmation& whole = p.confirmation();
  std::string text = p.has_confirmation() ? MeasuredGain(whole) + "\n" : "";
  if (!p.has_latency_before_seconds() || !p.has_latency_after_seconds()) return text;
  text += fmt::format("kernels together: {} untuned, {} tuned ({:.2f}x{})\n", Latency(p.latency_before_seconds()),
                      Latency(p.latency_after_seconds()), p.latency_before_seconds() / p.latency_after_seconds(),
                      whole.ratio() > 0 ? "" : "; a sum, not measured as a whole");
  if (tracker::KernelsDisagree(whole)) {
    text += fmt::format(
        "the sum of the kernels disagrees with the whole model by {:.0f}%: {:.2f}x is what the kernels gained alone, "
        "{:.2f}x is what the model gained\n",
        100 * std::abs(whole.kernels_ratio() / whole.ratio() - 1), whole.kernels_ratio(), whole.ratio());
  }
  return text;
}

std::string JobToText(const v1::Job& job) {
  if (job.spec().has_run()) {
    return fmt::format("{}: {}{}\n", TitleOf(job.spec()), StateName(job.state()),
                       job.error().empty() ? "" : ": " + OneLine(job.error())) +
           RunToText(job);
  }
  const v1::JobProgress& p = job.progress();
  std::string text =
      fmt::format("{}: {}, {} trials in {} ({:.1f}/s), {}\n", TitleOf(job.spec()), StateName(job.state()), p.trials(),
                  Clock(p.seconds()), p.trials_per_second(), Failures(p));
  text += LatencyToText(job);
  if (job.state() == v1::JOB_STATE_SUCCEEDED) text += tracker::EndReason(job) + "\n";
  text += SpentToText(p) + FailuresToText(job);
  if (job.state() == v1::JOB_STATE_SUCCEEDED && p.trials() == 0 && job.spec().workloads_size() > 0) {
    text +=
        "hone records best shows the known results, hone records why what they were compared with (for a farm, both "
        "with --tracker)\n";
  }
  if (!job.error().empty()) text += job.error() + "\n";
  return text;
}

}  // namespace

std::string Clock(double seconds) {
  const auto s = static_cast<int64_t>(std::max(0.0, seconds));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string Failures(const v1::JobProgress& progress) {
  int64_t total = 0;
  std::string kinds;
  for (const v1::FailureCount& f : progress.failed()) {
    if (f.count() == 0) continue;
    total += f.count();
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", f.count(), KindName(f.kind()));
  }
  if (total == 0) return "none failed";
  const double share =
      progress.trials() > 0 ? 100.0 * static_cast<double>(total) / static_cast<double>(progress.trials()) : 0;
  return fmt::format("{:.0f}% failed ({})", share, kinds);
}

std::string MeasuredGain(const v1::ModelConfirmation& confirmation) {
  if (confirmation.ratio() <= 0) return "the whole model was not measured: " + OneLine(confirmation.problem());
  const std::string spread = confirmation.ratio_low() > 0 ? fmt::format(" ({:.2f} to {:.2f})", confirmation.ratio_low(),
                                                                        confirmation.ratio_high())
                                                          : " (too few runs for a spread)";
  return fmt::format("{:.2f}x{} measured on {}: {} -> {}", confirmation.ratio(), spread, OneLine(confirmation.device()),
                     Latency(confirmation.before_seconds()), Latency(confirmation.after_seconds()));
}

bool HasEnded(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED || state == v1::JOB_STATE_CANCELLED;
}

std::string TitleOf(const v1::JobSpec& spec) {
  // The title shows the parts of the target that name a kind of machine. The other parts are numbers.
  std::string title = spec.has_run() ? "run of " + spec.name() : spec.name() + " for";
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(spec.target(), ' '))) {
    if (word.empty() || (word.starts_with("-") && !word.starts_with("-mcpu=") && !word.starts_with("-device=")))
      continue;
    title += fmt::format(" {}", word);
  }
  std::vector<std::string> asked(spec.devices().begin(), spec.devices().end());
  for (const auto& [name, value] : std::map(spec.labels().begin(), spec.labels().end())) {
    asked.push_back(tracker::LabelText(name, value));
  }
  return OneLine(asked.empty() ? title : fmt::format("{} on {}", title, fmt::join(asked, ", ")));
}

std::string TitleOf(const v1::WorkloadSpec& spec) { return OneLine(spec.title().empty() ? spec.op() : spec.title()); }

absl::Status FirstJobFailure(const std::vector<v1::Job>& jobs, bool cancelled_here) {
  for (const v1::Job& job : jobs) {
    const std::string what = (job.spec().has_run() ? "the " : "tuning ") + TitleOf(job.spec());
    if (job.state() == v1::JOB_STATE_CANCELLED && !cancelled_here) {
      return absl::CancelledError(what + " was cancelled");
    }
    if (job.state() == v1::JOB_STATE_FAILED) {
      return absl::InternalError(fmt::format("{} failed: {}", what, job.error()));
    }
  }
  return absl::OkStatus();
}

std::string RunLine(const std::string& package, const std::string& device, const v1::PackageReport& report) {
  const std::vector<double> seconds(report.seconds().begin(), report.seconds().end());
  if (seconds.empty()) return Row("{} on {}: no run", package, device);
  const auto quantile = [&](double share) { return Latency(Quantile(seconds, share)); };
  const std::string memory =
      report.peak_memory_bytes() > 0
          ? fmt::format(", peak memory {}", BytesText(static_cast<double>(report.peak_memory_bytes())))
          : "";
  return Row("{} on {}: min {}, median {}, p90 {}, p99 {} ({} runs, {} threads, target {}); load {}, first run {}{}",
             package, device, quantile(0), Latency(Median(seconds)), quantile(0.9), quantile(0.99), report.runs(),
             report.threads(), report.target(), Latency(report.load_seconds()), Latency(report.first_run_seconds()),
             memory);
}

std::string StateName(v1::JobState state) { return tracker::EnumName(v1::JobState_Name(state), "JOB_STATE_", state); }

nlohmann::ordered_json JobToJson(const v1::Job& job) {
  const v1::JobProgress& p = job.progress();
  const auto optional_ms = [](bool has, double seconds) {
    return has ? nlohmann::ordered_json(Milliseconds(seconds)) : nullptr;
  };
  const auto optional_time = [](bool has, const google::protobuf::Timestamp& time) {
    const absl::Time instant = absl::FromUnixSeconds(time.seconds());
    return has ? nlohmann::ordered_json(absl::FormatTime(instant, absl::UTCTimeZone())) : nullptr;
  };
  nlohmann::ordered_json failed = nlohmann::ordered_json::object();
  for (const v1::FailureCount& f : p.failed()) failed[KindName(f.kind())] = f.count();
  nlohmann::ordered_json workloads = nlohmann::ordered_json::array();
  for (int i = 0; i < job.spec().workloads_size(); ++i) {
    const v1::WorkloadSpec& spec = job.spec().workloads(i);
    const v1::WorkloadProgress progress = i < p.workloads_size() ? p.workloads(i) : v1::WorkloadProgress();
    const double best = progress.best_seconds();
    workloads.push_back({{"digest", spec.digest()},
                         {"operator", spec.op()},
                         {"title", spec.title()},
                         {"count", spec.count()},
                         {"trials", progress.trials()},
                         {"default_ms", optional_ms(progress.has_default_seconds(), progress.default_seconds())},
                         {"best_ms", optional_ms(progress.has_best_seconds(), best)},
                         {"gflops", progress.has_best_seconds() && best > 0 ? spec.flops() / best * 1e-9 : 0.0},
                         {"roofline_share", progress.roofline_share()},
                         {"schedule", progress.best_schedule()},
                         {"trouble", progress.trouble()}});
  }
  return {{"model", job.spec().name()},
          {"target", job.spec().target()},
          {"job", job.id()},
          {"group", job.spec().group()},
          {"devices", job.spec().devices()},
          {"run", tracker::RunToJson(job)},
          {"state", StateName(job.state())},
          {"submitted_by", job.spec().submitted_by()},
          {"priority", job.spec().priority()},
          {"created", optional_time(job.has_created(), job.created())},
          {"started", optional_time(job.has_started(), job.started())},
          {"ended", optional_time(job.has_ended(), job.ended())},
          {"until", optional_time(job.spec().has_until(), job.spec().until())},
          {"waiting_for", job.waiting_for()},
          {"error", job.error()},
          {"notice", tracker::NoticeToJson(job)},
          {"trials", p.trials()},
          {"failed", failed},
          {"seconds", p.seconds()},
          {"trials_per_second", p.trials_per_second()},
          {"spent", tracker::SpentToJson(p.spent())},
          {"latency_ms_before", optional_ms(p.has_latency_before_seconds(), p.latency_before_seconds())},
          {"latency_ms_after", optional_ms(p.has_latency_after_seconds(), p.latency_after_seconds())},
          {"confirmation", tracker::ConfirmationToJson(job)},
          {"workloads", workloads}};
}

nlohmann::ordered_json JobsToJson(const std::vector<v1::Job>& jobs) {
  if (jobs.size() == 1) return JobToJson(jobs.front());
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const v1::Job& job : jobs) list.push_back(JobToJson(job));
  return {{"group", jobs.empty() ? "" : jobs.front().spec().group()}, {"jobs", list}};
}

std::string JobsToText(const std::vector<v1::Job>& jobs) {
  std::string text;
  for (const v1::Job& job : jobs) text += JobToText(job);
  return text;
}

std::string JobsTable(const std::vector<v1::Job>& jobs) {
  std::string text = fmt::format("{:<10} {:<10} {:<10} {:>8} {:>8}  {:<12}  {}\n", "job", "group", "state", "priority",
                                 "trials", "by", "model");
  for (const v1::Job& job : jobs) {
    text += Row("{:<10} {:<10} {:<10} {:>8} {:>8}  {:<12}  {}{}{}{}", job.id(),
                job.spec().group().empty() ? "-" : job.spec().group(), StateName(job.state()), job.spec().priority(),
                job.progress().trials(), job.spec().submitted_by(), TitleOf(job.spec()),
                job.progress().confirmation().ratio() > 0 ? ", " + MeasuredGain(job.progress().confirmation()) : "",
                job.waiting_for().empty() ? "" : ", waiting for " + job.waiting_for(),
                job.error().empty() ? "" : ": " + job.error());
  }
  return text;
}

}  // namespace hone::cli
