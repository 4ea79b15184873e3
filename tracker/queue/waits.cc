// SPDX-License-Identifier: Apache-2.0
// Who waits for what, in words, and what follows: no tuner is held by a job whose device is not there.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "proto/convert.h"
#include "tracker/queue/farm.h"
#include "tracker/queue/health.h"

namespace hone::tracker {
namespace {

bool AsksForDevices(const v1::Job& job) {
  return job.has_needs() || !job.spec().labels().empty() || !job.spec().devices().empty() ||
         !job.spec().device_kind().empty();
}

// The conditions that a tuner stated for the job; before that, those in the job's specification.
v1::Requirements NeedsOf(const v1::Job& job) {
  v1::Requirements needs = job.needs();
  if (job.has_needs()) return needs;
  *needs.mutable_labels() = job.spec().labels();
  *needs.mutable_devices() = job.spec().devices();
  needs.set_fingerprint_digest(job.spec().device_kind());
  return needs;
}

// A hint for conditions that fail only by the number of threads: names the matching device with the most threads. ""
// where there is none.
std::string TooFewThreads(v1::Requirements requirements, const std::map<std::string, Agent>& agents) {
  requirements.clear_threads();
  std::string nearest;
  int threads = 0;
  for (const auto& [agent_id, agent] : agents) {
    for (const auto& [id, device] : agent.devices) {
      if (device.state.threads() <= threads || !Matches(requirements, agent_id, device.state)) continue;
      nearest = NameOf(agent_id, id);
      threads = device.state.threads();
    }
  }
  return nearest.empty() ? "" : fmt::format(" ({0} has {1}; for it, submit with --threads {1})", nearest, threads);
}

// A hint for conditions that fail only by CPU features: the features that the nearest device lacks, with its name. ""
// where there is none.
std::string LackingFeatures(v1::Requirements requirements, const std::map<std::string, Agent>& agents) {
  const auto wanted = requirements.cpu_features();
  requirements.clear_cpu_features();
  std::vector<std::string> fewest;
  std::string nearest;
  for (const auto& [agent_id, agent] : agents) {
    for (const auto& [id, device] : agent.devices) {
      if (!Matches(requirements, agent_id, device.state)) continue;
      std::vector<std::string> lacking;
      const auto& has = device.state.fingerprint().cpu_features();
      std::ranges::copy_if(wanted, std::back_inserter(lacking),
                           [&](const std::string& feature) { return std::ranges::find(has, feature) == has.end(); });
      if (lacking.empty() || (!nearest.empty() && lacking.size() >= fewest.size())) continue;
      nearest = NameOf(agent_id, id);
      fewest = std::move(lacking);
    }
  }
  return nearest.empty() ? "" : fmt::format(" ({} lacks {})", nearest, fmt::join(fewest, ", "));
}

}  // namespace

JobQueue::UseByUser Farm::UseByUser() const {
  return [this](const std::string& user) { return batches_.fair_share().UsedBy(user); };
}

// "" when a usable device fulfils the conditions. Else the device that fulfils them but gets no work, with the reason,
// or what no device fulfils (matches.h).
std::string Farm::DescribeAbsence(const v1::Requirements& requirements, absl::Time now) const {
  std::string problem;
  for (const auto& [agent_id, agent] : devices_.agents()) {
    for (const auto& [id, device] : agent.devices) {
      if (!Matches(requirements, agent_id, device.state)) continue;
      if (devices_.CanServe(agent, device, now)) return "";
      const std::string health = devices_.Problem(agent, device, now);
      problem = fmt::format("{}, which is {}", NameOf(agent_id, id),
                            !devices_.IsOnline(agent, now) ? "offline"
                            : devices_.drained(agent_id)   ? "drained"
                            : agent.leaving                ? "shutting down"
                                                           : fmt::format("unhealthy: {}", health));
    }
  }
  if (!problem.empty()) return fmt::format("{}; wanted: {}", problem, Describe(requirements));
  return fmt::format("{}{}{}{}", kNoDevicePrefix, Describe(requirements),
                     TooFewThreads(requirements, devices_.agents()), LackingFeatures(requirements, devices_.agents()));
}

// The conditions of a queued batch of the running job that no usable device fulfils; null: every batch has a device.
const v1::Requirements* Farm::UnmetRequirements(const v1::Job& job, absl::Time now) const {
  for (const BatchQueue::Queued& piece : batches_.Waiting(job.id())) {
    if (!DescribeAbsence(piece.batch->requirements(), now).empty()) return &piece.batch->requirements();
  }
  return nullptr;
}

Farm::Place Farm::JobsAhead() const {
  return [this, places = std::optional<std::map<std::string, int>>()](const std::string& job_id) mutable {
    if (!places.has_value()) places = jobs_.JobsAhead(UseByUser());
    return places->at(job_id);
  };
}

std::string Farm::WaitingFor(const v1::Job& job, absl::Time now, const Place& place) const {
  if (!storage_failure_.empty() && !JobQueue::Ended(job))
    return fmt::format("the tracker's disk: {}", storage_failure_);
  if (job.state() == v1::JOB_STATE_QUEUED) {
    const std::string& blocked = jobs_.blocked(job.id());
    if (!blocked.empty()) return blocked;
    if (job.spec().has_run()) return DescribeTurn(job, now);
    if (!jobs_.HasTuner(now)) return "a tuner, and none is connected: start hone-tuner";
    const int before = place(job.id());
    return before == 0 ? "a tuner" : fmt::format("a tuner; {} other{} first", before, before == 1 ? " goes" : "s go");
  }
  if (job.state() != v1::JOB_STATE_RUNNING) return "";
  const v1::Requirements* absent = UnmetRequirements(job, now);
  return absent != nullptr ? DescribeAbsence(*absent, now) : DescribeTurn(job, now);
}

// For a running job whose batches wait while devices exist: the job that occupies a device, or the idle device whose
// agent must call first. "" where the job does not wait.
std::string Farm::DescribeTurn(const v1::Job& job, absl::Time now) const {
  if (!batches_.fair_share().IsWaiting(job.id())) return "";
  const v1::Requirements& requirements = batches_.Waiting(job.id()).front().batch->requirements();
  std::string free;
  for (const auto& [agent_id, agent] : devices_.agents()) {
    for (const auto& [id, device] : agent.devices) {
      if (!Matches(requirements, agent_id, device.state) || !devices_.CanServe(agent, device, now)) continue;
      const BatchQueue::Lease* lease = batches_.FindLease(device.lease_id);
      if (lease == nullptr) {
        free = NameOf(agent_id, id);
        continue;
      }
      const v1::Job* other = jobs_.Find(batches_.JobOf(*lease));
      return fmt::format("its turn on {}, which measures for job {} of {}", NameOf(agent_id, id), other->id(),
                         other->spec().submitted_by());
    }
  }
  return fmt::format("the next call of {}", free);
}

// The returned function remembers its answers, because most batches have the same conditions.
BatchQueue::Served Farm::Served(absl::Time now) const {
  return [this, now, known = std::map<std::string, bool>()](const v1::Batch& batch) mutable {
    if (!storage_failure_.empty()) return true;  // no work is given out, so batches wait for the tracker
    v1::Requirements needs = batch.requirements();
    needs.set_threads(std::max(needs.threads(), batch.threads()));
    const auto [answer, first] = known.try_emplace(needs.SerializeAsString());
    if (first) answer->second = DescribeAbsence(needs, now).empty();
    return answer->second;
  };
}

// With for_work, devices are sorted: first the kind that the job already uses, then kinds with the fewest running jobs
// per device. Jobs that fit any kind are spread over the kinds in this way.
std::vector<v1::Device> Farm::ListDevices(const v1::ListDevicesRequest& request, absl::Time now) {
  std::vector<v1::Device> list = devices_.List(request, now);
  for (v1::Device& device : list) {
    *device.mutable_last_seen() = ToProto(ToWallTime(FromProto(device.last_seen())));
    if (device.has_record()) ShiftTimes(*device.mutable_record(), jobs_.wall_offset());
  }
  if (!request.has_for_work()) return list;
  std::map<std::string, double> devices, jobs;
  for (const v1::Device& device : list) ++devices[device.state().fingerprint().digest()];
  for (const v1::Job* job : jobs_.InState(v1::JOB_STATE_RUNNING)) {
    if (job->id() != request.for_job_id()) ++jobs[jobs_.KindOf(job->id())];
  }
  const std::string own = request.for_job_id().empty() ? "" : jobs_.KindOf(request.for_job_id());
  const auto rank = [&](const v1::Device& device) {
    const std::string& kind = device.state().fingerprint().digest();
    return std::pair(kind != own, jobs[kind] / devices[kind]);
  };
  std::stable_sort(list.begin(), list.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  if (!list.empty()) jobs_.NoteKind(request.for_job_id(), list.front().state().fingerprint().digest());
  return list;
}

// Decides for each queued job whether it may be leased. Not done at every lease, because there may be many devices.
void Farm::CheckQueued(absl::Time now) {
  for (const v1::Job* job : jobs_.InState(v1::JOB_STATE_QUEUED)) {
    if (job->spec().has_run()) {
      CheckQueuedRun(*job, now);
      continue;
    }
    jobs_.SetBlocked(job->id(), AsksForDevices(*job) ? DescribeAbsence(NeedsOf(*job), now) : "", now);
  }
}

JobQueue::UnservedJobs Farm::JobsUnservedForLong(absl::Time now) {
  JobQueue::UnservedJobs absent;
  std::map<std::string, absl::Time> since;
  for (const v1::Job* job : jobs_.InState(v1::JOB_STATE_RUNNING)) {
    if (job->spec().has_run()) continue;  // it holds no tuner
    const v1::Requirements* needs = batches_.fair_share().IsWaiting(job->id()) ? UnmetRequirements(*job, now) : nullptr;
    if (needs == nullptr) continue;
    const auto known = absent_since_.find(job->id());
    since[job->id()] = known == absent_since_.end() ? now : known->second;
    if (now - since[job->id()] > options_.jobs.preempt_absent_after) absent[job->id()] = *needs;
  }
  absent_since_ = std::move(since);
  return absent;
}

}  // namespace hone::tracker
