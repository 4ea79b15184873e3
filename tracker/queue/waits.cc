// Who waits for what, in words, and what follows: no tuner is held by a job whose device is not there.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tracker/queue/farm.h"

namespace hone::tracker {
namespace {

bool AsksForDevices(const v1::Job& job) {
  return job.has_needs() || !job.spec().labels().empty() || !job.spec().devices().empty() ||
         !job.spec().device_kind().empty();
}

// All that is known before a tuner has looked at the job, or what a tuner said.
v1::Requirements NeedsOf(const v1::Job& job) {
  v1::Requirements needs = job.needs();
  if (job.has_needs()) return needs;
  *needs.mutable_labels() = job.spec().labels();
  *needs.mutable_devices() = job.spec().devices();
  needs.set_fingerprint_digest(job.spec().device_kind());
  return needs;
}

}  // namespace

JobBook::Used Farm::Used() const {
  return [this](const std::string& user) { return batches_.turns().UsedBy(user); };
}

// "" when a device that serves is so, else what is missed and why.
std::string Farm::Absent(const v1::Requirements& requirements, absl::Time now) const {
  std::string problem;
  for (const auto& [agent_id, agent] : devices_.agents()) {
    for (const auto& [id, device] : agent.devices) {
      if (!Matches(requirements, agent_id, device.state)) continue;
      if (devices_.Serves(agent, device, now)) return "";
      const std::string health = devices_.Problem(agent, device, now);
      problem = fmt::format("{} is {}", NameOf(agent_id, id),
                            !devices_.Online(agent, now) ? "offline"
                            : devices_.drained(agent_id) ? "drained"
                            : agent.leaving              ? "leaving"
                                                         : fmt::format("out of work: {}", health));
    }
  }
  return fmt::format("a device for {}{}", Describe(requirements), problem.empty() ? "" : "; " + problem);
}

// What no device is that serves, of the batches of a running job that wait; null where there is no such batch.
const v1::Requirements* Farm::AbsentFor(const v1::Job& job, absl::Time now) const {
  for (const v1::Requirements* requirements : batches_.Waiting(job.id())) {
    if (!Absent(*requirements, now).empty()) return requirements;
  }
  return nullptr;
}

std::string Farm::WaitingFor(const v1::Job& job, absl::Time now) const {
  if (!trouble_.empty() && !JobBook::Ended(job)) return fmt::format("the tracker's disk: {}", trouble_);
  if (job.state() == v1::JOB_STATE_QUEUED) {
    const std::string& blocked = jobs_.blocked(job.id());
    if (!blocked.empty()) return blocked;
    const int before = jobs_.Before(job.id(), Used());
    return before == 0 ? "a tuner" : fmt::format("a tuner; {} other{} first", before, before == 1 ? " goes" : "s go");
  }
  if (job.state() != v1::JOB_STATE_RUNNING) return "";
  const v1::Requirements* absent = AbsentFor(job, now);
  return absent != nullptr ? Absent(*absent, now) : TurnOf(job, now);
}

// Of a job that waits for others to leave a device.
std::string Farm::TurnOf(const v1::Job& job, absl::Time now) const {
  if (!batches_.turns().Waits(job.id())) return "";
  const v1::Requirements& requirements = *batches_.Waiting(job.id()).front();
  for (const auto& [lease_id, lease] : batches_.leases()) {
    const auto agent = devices_.agents().find(lease.agent_id);
    if (agent == devices_.agents().end()) continue;
    const auto device = agent->second.devices.find(lease.device_id);
    if (device == agent->second.devices.end() || device->second.lease_id != lease_id) continue;
    if (!Matches(requirements, lease.agent_id, device->second.state)) continue;
    if (!devices_.Serves(agent->second, device->second, now)) continue;
    const v1::Job* other = jobs_.Find(batches_.JobOf(lease));
    return fmt::format("its turn on {}, which measures for job {} of {}", NameOf(lease.agent_id, lease.device_id),
                       other->id(), other->spec().submitted_by());
  }
  return "";
}

// Which queued jobs may be leased. Not asked at every lease: there may be many devices.
void Farm::CheckQueued(absl::Time now) {
  for (const v1::Job* job : jobs_.InState(v1::JOB_STATE_QUEUED)) {
    jobs_.SetBlocked(job->id(), AsksForDevices(*job) ? Absent(NeedsOf(*job), now) : "", now);
  }
}

JobBook::Absent Farm::AbsentForLong(absl::Time now) {
  JobBook::Absent absent;
  std::map<std::string, absl::Time> since;
  for (const v1::Job* job : jobs_.InState(v1::JOB_STATE_RUNNING)) {
    const v1::Requirements* needs = batches_.turns().Waits(job->id()) ? AbsentFor(*job, now) : nullptr;
    if (needs == nullptr) continue;
    const auto known = absent_since_.find(job->id());
    since[job->id()] = known == absent_since_.end() ? now : known->second;
    if (now - since[job->id()] > options_.jobs.park_after) absent[job->id()] = *needs;
  }
  absent_since_ = std::move(since);
  return absent;
}

}  // namespace hone::tracker
