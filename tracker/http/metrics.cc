// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/metrics.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cmath>
#include <filesystem>

#include "tracker/http/names.h"

namespace hone::tracker {
namespace {

std::string Escaped(std::string_view text, bool quotes) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\\\";
    else if (c == '\n')
      escaped += "\\n";
    else if (quotes && c == '"')
      escaped += "\\\"";
    else
      escaped += c;
  }
  return escaped;
}

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

template <typename Count>
void Samples(Exposition& text, std::string_view label, const std::map<std::string, Count>& counts) {
  for (const auto& [name, count] : counts) text.Sample(static_cast<double>(count), {{label, name}});
}

void PrintJobsAndDevices(const FarmMetrics& figures, Exposition& text) {
  text.Family("hone_jobs", "gauge", "Jobs that the tracker keeps, by state.");
  Samples(text, "state", figures.jobs);
  text.Family("hone_devices", "gauge", "Devices that the tracker knows, by activity.");
  Samples(text, "activity", figures.activity);
  text.Family("hone_devices_health", "gauge", "Devices that the tracker knows, by health: only good ones get work.");
  Samples(text, "health", figures.health);
  text.Family("hone_devices_drained", "gauge", "Devices whose agent is drained.");
  text.Sample(figures.drained);
  text.Family("hone_pieces_queued", "gauge", "Batches, or parts of them, that wait for a device.");
  text.Sample(figures.farm.batches_queued());
  text.Family("hone_pieces_running", "gauge", "Batches, or parts of them, that devices are measuring.");
  text.Sample(figures.farm.batches_running());
}

void PrintWork(const FarmMetrics& figures, Exposition& text) {
  text.Family("hone_outcomes_total", "counter",
              "Candidates whose outcome was accepted, by kind; timed: the candidate ran correctly.");
  Samples(text, "kind", figures.outcomes);
  text.Family("hone_results_accepted_total", "counter", "Results of leases that were accepted.");
  text.Sample(static_cast<double>(figures.farm.results_accepted()));
  text.Family("hone_results_stale_total", "counter", "Results that were refused because their lease had ended.");
  text.Sample(static_cast<double>(figures.farm.results_stale()));
  text.Family("hone_results_recovered_total", "counter",
              "Results of forgotten leases that were accepted by their receipt.");
  text.Sample(static_cast<double>(figures.farm.results_recovered()));
  text.Family("hone_leases_lost_total", "counter", "Leases that ended because a device was lost or too slow.");
  text.Sample(static_cast<double>(figures.farm.leases_lost()));
  text.Family("hone_batches_given_up_total", "counter", "Batches that ended without a result for every candidate.");
  text.Sample(static_cast<double>(figures.farm.batches_given_up()));
  text.Family("hone_lease_wait_seconds", "histogram", "From a batch's submission until a device has its first piece.");
  text.Samples(figures.lease_waits);
}

void PrintStorage(const FarmMetrics& figures, Exposition& text) {
  text.Family("hone_commit_seconds", "histogram", "How long one commit of records and state took.");
  text.Samples(figures.commits);
  text.Family("hone_storing", "gauge", "1 while the tracker can store results and state, 0 while it cannot.");
  text.Sample(figures.storing ? 1 : 0);
  text.Family("hone_records_bytes", "gauge", "Size of the records file, with its -wal.");
  text.Sample(static_cast<double>(figures.records_bytes));
  text.Family("hone_disk_free_bytes", "gauge", "Free space on the file system of the records file.");
  text.Sample(static_cast<double>(figures.disk_free_bytes));
  text.Family("hone_start_time_seconds", "gauge", "When the tracker started, seconds since 1970 UTC.");
  text.Sample(absl::ToDoubleSeconds(figures.started - absl::UnixEpoch()));
}

}  // namespace

void Exposition::Family(std::string_view name, std::string_view type, std::string_view help) {
  family_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, Escaped(help, false), name, type);
}

void Exposition::Line(std::string_view suffix, const Labels& labels, double value) {
  text_ += fmt::format("{}{}", family_, suffix);
  char before = '{';
  for (const auto& [name, text] : labels) {
    text_ += fmt::format("{}{}=\"{}\"", before, name, Escaped(text, true));
    before = ',';
  }
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", Number(value));
}

void Exposition::Sample(double value, const Labels& labels) { Line("", labels, value); }

void Exposition::Samples(const Histogram& histogram) {
  int64_t below = 0;
  for (size_t i = 0; i < histogram.counts().size(); ++i) {
    below += histogram.counts()[i];
    const bool last = i == histogram.bounds().size();
    Line("_bucket", {{"le", last ? "+Inf" : Number(histogram.bounds()[i])}}, static_cast<double>(below));
  }
  Line("_sum", {}, histogram.sum());
  Line("_count", {}, static_cast<double>(below));
}

std::string PrintMetrics(const FarmMetrics& figures) {
  Exposition text;
  PrintJobsAndDevices(figures, text);
  PrintWork(figures, text);
  PrintStorage(figures, text);
  return text.text();
}

DiskUse DiskUseOf(const std::filesystem::path& records) {
  DiskUse use;
  for (const char* suffix : {"", "-wal"}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(records.string() + suffix, error);
    if (!error) use.records_bytes += static_cast<int64_t>(size);
  }
  struct statvfs facts{};
  if (statvfs(records.c_str(), &facts) == 0) use.free_bytes = static_cast<int64_t>(facts.f_bavail * facts.f_frsize);
  return use;
}

FarmMetrics CollectMetrics(Shell& shell, const std::filesystem::path& records) {
  FarmMetrics figures;
  for (int state = v1::JOB_STATE_QUEUED; state <= v1::JobState_MAX; ++state) {
    figures.jobs[StateName(static_cast<v1::JobState>(state))] = 0;
  }
  for (int activity = v1::DEVICE_ACTIVITY_OFFLINE; activity <= v1::DeviceActivity_MAX; ++activity) {
    figures.activity[ActivityName(static_cast<v1::DeviceActivity>(activity))] = 0;
  }
  figures.health[std::string(kWaitingHealth)] = 0;
  for (int health = v1::DEVICE_HEALTH_GOOD; health <= v1::DeviceHealth_MAX; ++health) {
    figures.health[HealthName(static_cast<v1::DeviceHealth>(health))] = 0;
  }
  for (int kind = 0; kind <= v1::FailureKind_MAX; ++kind)
    figures.outcomes[OutcomeName(static_cast<v1::FailureKind>(kind))] = 0;
  const v1::ListDevicesResponse devices = shell.ListDevices({});
  for (const v1::Device& device : devices.devices()) {
    ++figures.activity[ActivityName(device.activity())];
    ++figures.health[HealthName(device)];
    if (device.drained()) ++figures.drained;
  }
  figures.storing = devices.trouble().empty();
  figures.farm = shell.Counters();
  shell.WithFarm([&figures](const Farm& farm, absl::Time) {
    for (int state = v1::JOB_STATE_QUEUED; state <= v1::JobState_MAX; ++state) {
      const auto which = static_cast<v1::JobState>(state);
      figures.jobs[StateName(which)] = static_cast<int>(farm.jobs().InState(which).size());
    }
    figures.lease_waits = farm.lease_waits();
    for (const auto& [kind, count] : farm.outcomes()) figures.outcomes[OutcomeName(kind)] = count;
  });
  figures.commits = shell.CommitTimes();
  figures.started = shell.started();
  const DiskUse use = DiskUseOf(records);
  figures.records_bytes = use.records_bytes;
  figures.disk_free_bytes = use.free_bytes;
  return figures;
}

}  // namespace hone::tracker
