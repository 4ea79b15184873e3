// SPDX-License-Identifier: Apache-2.0
// The jobs that measure fleet watches: submitted when a watch is due, ended when they wait too long, and turned into
// nights when they have ended.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/median.h"
#include "base/status.h"
#include "proto/convert.h"
#include "tracker/queue/farm.h"
#include "tracker/queue/matches.h"
#include "tracker/queue/text_limits.h"

namespace hone::tracker {
namespace {

constexpr int kListedNights = 30;  // of each device in a list: enough for a chart

// A night that was not measured.
v1::FleetNight NightWithout(const std::string& problem, const std::string& job_id, absl::Time due, absl::Time wall) {
  v1::FleetNight night;
  *night.mutable_due() = ToProto(due);
  *night.mutable_ended() = ToProto(wall);
  night.set_job_id(job_id);
  night.set_problem(problem);
  return night;
}

// The spread of the runs: their median absolute deviation as a fraction of their median.
double SpreadOf(const std::vector<double>& seconds, double median) {
  std::vector<double> deviations;
  deviations.reserve(seconds.size());
  for (const double one : seconds) deviations.push_back(std::abs(one - median));
  return Median(std::move(deviations)) / median;
}

std::string ProblemOf(const v1::Job& job) {
  if (job.state() == v1::JOB_STATE_CANCELLED) return "its job was cancelled";
  return job.error().empty() ? "its job ended without a report" : job.error();
}

v1::FleetNight NightOf(const v1::Job& job, absl::Time due) {
  const v1::RunReport& report = job.progress().run();
  const bool has_times = report.packages_size() == 1 && !report.packages(0).seconds().empty();
  if (job.state() != v1::JOB_STATE_SUCCEEDED || !has_times) {
    return NightWithout(ProblemOf(job), job.id(), due, FromProto(job.ended()));
  }
  const auto& times = report.packages(0).seconds();
  const std::vector<double> seconds(times.begin(), times.end());
  v1::FleetNight night = NightWithout("", job.id(), due, FromProto(job.ended()));
  night.set_median_seconds(Median(seconds));
  night.set_spread(SpreadOf(seconds, night.median_seconds()));
  night.set_target(report.packages(0).target());
  *night.mutable_environment() = report.environment();
  if (report.has_temperature_after_c()) night.set_temperature_c(report.temperature_after_c());
  if (report.has_clock_after_mhz()) night.set_clock_mhz(report.clock_after_mhz());
  night.set_throttled(report.throttled());
  return night;
}

}  // namespace

absl::StatusOr<v1::FleetWatch> Farm::AddWatch(v1::FleetWatchSpec spec, absl::Time now) {
  now = AdvanceClock(now);
  HONE_RETURN_IF_ERROR(CheckStorage());
  if (spec.devices().empty()) {
    return absl::InvalidArgumentError("the watch has no device; name one or several (hone devices lists them)");
  }
  std::vector<std::string> names;
  for (const std::string& words : spec.devices()) {
    bool found = false;
    for (const auto& [agent_id, agent] : devices_.agents()) {
      for (const auto& [id, device] : agent.devices) {
        if (!MatchesWords(words, agent_id, device.state)) continue;
        found = true;
        const std::string name = NameOf(agent_id, id);
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      }
    }
    if (found) continue;
    return absl::NotFoundError(fmt::format(
        "the farm has no device with the name or label '{}'; hone devices lists them", TruncateUtf8(words, 80)));
  }
  spec.mutable_devices()->Assign(names.begin(), names.end());
  HONE_ASSIGN_OR_RETURN(const v1::FleetWatch* watch, watches_.Add(std::move(spec), ToWallTime(now)));
  return Described(*watch, now, JobsAhead());
}

absl::StatusOr<v1::FleetWatch> Farm::RunWatch(const std::string& name, const std::optional<std::string>& submitter,
                                              absl::Time now) {
  now = AdvanceClock(now);
  HONE_RETURN_IF_ERROR(CheckStorage());
  HONE_ASSIGN_OR_RETURN(const v1::FleetWatch* watch, watches_.FindFor(name, submitter));
  for (const std::string& device : watch->spec().devices()) StartNight(name, device, ToWallTime(now), now);
  CheckQueued(now);
  return Described(*watch, now, JobsAhead());
}

absl::StatusOr<v1::FleetWatch> Farm::AcceptNight(const std::string& name, const std::string& device,
                                                 const std::optional<std::string>& submitter, absl::Time now) {
  now = AdvanceClock(now);
  HONE_RETURN_IF_ERROR(CheckStorage());
  HONE_ASSIGN_OR_RETURN(const v1::FleetWatch* watch, watches_.FindFor(name, submitter));
  HONE_RETURN_IF_ERROR(watches_.Accept(name, device));
  return Described(*watch, now, JobsAhead());
}

absl::Status Farm::RemoveWatch(const std::string& name, const std::optional<std::string>& submitter, absl::Time now) {
  now = AdvanceClock(now);
  HONE_RETURN_IF_ERROR(CheckStorage());
  HONE_ASSIGN_OR_RETURN(const v1::FleetWatch* watch, watches_.FindFor(name, submitter));
  for (const v1::FleetWatchDevice& device : watch->devices()) {
    if (jobs_.Find(device.open_job()) != nullptr) HONE_RETURN_IF_ERROR(jobs_.Cancel(device.open_job(), now).status());
  }
  watches_.Remove(name);
  DropReleasedJobs();
  return absl::OkStatus();
}

v1::FleetWatch Farm::Described(v1::FleetWatch watch, absl::Time now, const Place& place) const {
  for (v1::FleetWatchDevice& device : *watch.mutable_devices()) {
    const v1::Job* job = jobs_.Find(device.open_job());
    if (job != nullptr) device.set_waiting_for(WaitingFor(*job, now, place));
  }
  return watch;
}

absl::StatusOr<v1::FleetWatch> Farm::GetWatch(const std::string& name, absl::Time now) const {
  HONE_ASSIGN_OR_RETURN(const v1::FleetWatch* watch, watches_.FindFor(name, std::nullopt));
  return Described(*watch, now, JobsAhead());
}

std::vector<v1::FleetWatch> Farm::ListWatches(absl::Time now) const {
  std::vector<v1::FleetWatch> listed;
  const Place place = JobsAhead();
  for (const auto& [name, watch] : watches_.watches()) {
    listed.push_back(Described(WithNewestNights(watch, kListedNights), now, place));
  }
  return listed;
}

// The job and the watch's note of it are stored in one transaction, so a night is submitted once.
void Farm::StartNight(const std::string& name, const std::string& device, absl::Time due, absl::Time now) {
  const v1::FleetWatch& watch = *watches_.Find(name);
  const auto& rows = watch.devices();
  // A job that is still open measures this night, too.
  if (!std::ranges::find(rows, device, &v1::FleetWatchDevice::device)->open_job().empty()) return;
  v1::JobSpec spec;
  spec.set_request_id("watch " + draw_id_());
  spec.set_name(watch.spec().run().packages(0).name());
  spec.set_submitted_by(watch.spec().submitted_by());
  spec.set_submitter(watch.spec().submitter());
  spec.add_devices(device);
  *spec.mutable_run() = watch.spec().run();
  const absl::StatusOr<const v1::Job*> job = jobs_.Submit(spec, now);
  if (job.ok()) {
    watched_since_[(*job)->id()] = now;
    watches_.NoteOpen(name, device, (*job)->id(), due);
  } else {
    watches_.EndNight(name, device, NightWithout(std::string(job.status().message()), "", due, ToWallTime(now)));
  }
}

// Turns ended jobs into nights, and ends those that have waited for their device for too long.
void Farm::EndNights(absl::Time now) {
  struct Ended {
    std::string watch, device;
    v1::FleetNight night;
  };
  std::vector<Ended> ended;
  std::set<std::string> open;
  for (const auto& [name, watch] : watches_.watches()) {
    for (const v1::FleetWatchDevice& device : watch.devices()) {
      const std::string& id = device.open_job();
      if (id.empty()) continue;
      const absl::Time due = FromProto(device.open_due());
      const v1::Job* job = jobs_.Find(id);
      const absl::Time since = watched_since_.try_emplace(id, now).first->second;
      if (job == nullptr) {
        ended.push_back({name, device.device(), NightWithout("its job is lost", id, due, ToWallTime(now))});
      } else if (JobQueue::Ended(*job)) {
        ended.push_back({name, device.device(), NightOf(*job, due)});
      } else if (storage_failure_.empty() && job->state() == v1::JOB_STATE_QUEUED &&
                 now - since > options_.watches.wait_max) {
        const std::string problem = fmt::format("waited {} for {}", absl::FormatDuration(options_.watches.wait_max),
                                                WaitingFor(*job, now, JobsAhead()));
        ended.push_back({name, device.device(), NightWithout(problem, id, due, ToWallTime(now))});
        HONE_CHECK(jobs_.Cancel(id, now).ok());
      } else {
        open.insert(id);
      }
    }
  }
  for (Ended& one : ended) watches_.EndNight(one.watch, one.device, std::move(one.night));
  std::erase_if(watched_since_, [&](const auto& job) { return !open.contains(job.first); });
}

void Farm::RunWatches(absl::Time now) {
  EndNights(now);
  if (!storage_failure_.empty()) return;  // the watches stay due
  for (const auto& [name, due] : watches_.TakeDue(ToWallTime(now))) {
    const std::vector<std::string> devices(watches_.Find(name)->spec().devices().begin(),
                                           watches_.Find(name)->spec().devices().end());
    for (const std::string& device : devices) StartNight(name, device, due, now);
  }
}

}  // namespace hone::tracker
