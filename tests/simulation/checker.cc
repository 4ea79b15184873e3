// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "proto/convert.h"
#include "tracker/queue/health.h"

namespace hone::simulation {
namespace {

// After this time a change of the farm's state is on disk, unless the disk fails.
constexpr absl::Duration kSurelyStored = absl::Seconds(20);

// Half-life of the fair share, as in tracker/queue/limits.h.
constexpr absl::Duration kHalfLife = absl::Minutes(10);
// The queue adds up shares at every call and the checker at every lease; their sums may differ by this many seconds.
constexpr double kSlack = 3;
constexpr absl::Duration kClockSlack = absl::Milliseconds(1);

bool Lasting(const v1::LeaseResult& result) { return result.result().error().empty(); }

}  // namespace

void Checker::TrackerStarts() {
  here_.clear();
  live_.clear();
  accepted_ = lost_ = 0;
  quarantines_.clear();
  used_time_.clear();
  waited_.clear();
  undraining_.clear();
}

void Checker::Look(const tracker::Farm& farm, absl::Time now) {
  stood_still_ = farm.time_stalled();
  for (const std::string& agent : undraining_) ForgetDrain(agent);
  std::set<std::string> ended = live_;
  std::vector<const tracker::BatchQueue::Lease*> granted;
  for (const auto& [id, lease] : farm.batches().leases()) {
    if (ended.erase(id) == 0) granted.push_back(&lease);
  }
  if (!ended.empty()) End(farm, ended, now);
  for (const auto* lease : granted) Grant(farm, *lease, now);
  for (const auto* lease : granted) CheckTurn(farm, *lease, now);
  const v1::GetFarmResponse counters = farm.Counters(now);
  accepted_ = counters.results_accepted();
  lost_ = counters.leases_lost();
  CheckLeases(farm);
  CheckWaits(farm, now);
  CheckWaited(farm, now);
  NoteHealth(farm, now);
}

// A piece of a batch and a device each have at most one live lease, and batches and leases refer to each other.
void Checker::CheckLeases(const tracker::Farm& farm) {
  std::set<std::pair<std::string, int64_t>> pieces;
  std::set<std::string> devices;
  for (const auto& [id, lease] : farm.batches().leases()) {
    const std::string name = tracker::NameOf(lease.agent_id, lease.device_id);
    if (!pieces.emplace(lease.batch_id, lease.piece).second) world_->Violate("two live leases of one piece: " + id);
    if (!devices.insert(name).second) world_->Violate("two live leases of device " + name);
  }
  size_t held = 0;
  for (const auto& [agent_id, agent] : farm.devices().agents()) {
    for (const auto& [id, device] : agent.devices) {
      if (device.lease_id.empty()) continue;
      ++held;
      const auto* lease = farm.batches().FindLease(device.lease_id);
      if (lease == nullptr) world_->Violate(fmt::format("{}/{} holds a dead lease", agent_id, id));
      if (lease != nullptr && (lease->agent_id != agent_id || lease->device_id != id)) {
        world_->Violate(fmt::format("{}/{} holds the lease of {}/{}", agent_id, id, lease->agent_id, lease->device_id));
      }
    }
  }
  if (held != farm.batches().leases().size()) world_->Violate("a live lease is no device's");
}

void Checker::Grant(const tracker::Farm& farm, const tracker::BatchQueue::Lease& lease, absl::Time now) {
  const std::string name = tracker::NameOf(lease.agent_id, lease.device_id);
  const std::string job_id = farm.batches().JobOf(lease);
  world_->Note(fmt::format("lease {:.8} of {}.{} to {}", lease.id, lease.batch_id, lease.piece, name));
  ++leases_;
  if (!here_
           .emplace(lease.id, Lease{lease.batch_id, job_id, name, lease.agent_id, lease.piece, true,
                                    lease.fingerprint.digest() + " " + farm.jobs().Find(job_id)->spec().submitted_by(),
                                    now - stood_still_})
           .second) {
    world_->Violate("a lease came back to life: " + lease.id);
  }
  live_.insert(lease.id);
  // No work goes to a device with a problem, to an agent that is drained or leaves, or for a job whose cancellation was
  // confirmed.
  const tracker::Agent& agent = farm.devices().agents().at(lease.agent_id);
  const tracker::Device& device = agent.devices.at(lease.device_id);
  const std::string problem = farm.devices().Problem(agent, device, now);
  if (!problem.empty()) world_->Violate(fmt::format("work went to {}, which is ill: {}", name, problem));
  if (drained_.contains(lease.agent_id)) world_->Violate(fmt::format("work went to {}, which is drained", name));
  if (agent.leaving) world_->Violate(fmt::format("work went to {}, which is leaving", name));
  if (cancelled_.contains(job_id)) world_->Violate(fmt::format("work went out for {}, which was cancelled", job_id));
  if (!farm.storage_failure().empty()) world_->Violate("work went out while nothing can be stored");
  // A quarantine survives a restart of the tracker.
  if (const auto stored = stored_quarantines_.find(name); stored != stored_quarantines_.end()) {
    if (now < stored->second.retry_at) {
      world_->Violate(fmt::format("work went to {} before its quarantine ended: {}", name, stored->second.reason));
    }
    stored_quarantines_.erase(stored);
  }
  // A device that fell silent has stopped a candidate before another device begins it.
  const v1::Batch batch = farm.batches().BatchOf(lease, now);
  for (const auto& [other, candidates] : running_) {
    if (other == name || !candidates.contains(batch.candidates(0).id())) continue;
    const auto silent = farm.devices().agents().find(other.substr(0, other.find('/')));
    if (silent == farm.devices().agents().end() || !farm.devices().IsSilent(silent->second, now)) continue;
    const auto had = std::any_of(here_.begin(), here_.end(), [&](const auto& entry) {
      return entry.second.batch_id == lease.batch_id && entry.second.device == other;
    });
    if (had) world_->Violate(fmt::format("{} still measures what it lost by silence, and {} has it now", other, name));
  }
}

double Checker::UsedSecondsOf(const std::string& kind_and_user, absl::Time now) const {
  now -= stood_still_;
  const auto decayed = [now](const UsedTime& had) {
    return had.seconds * std::exp2(-absl::FDivDuration(now - had.at, kHalfLife));
  };
  const auto found = used_time_.find(kind_and_user);
  double seconds = found == used_time_.end() ? 0 : decayed(found->second);
  for (const std::string& id : live_) {
    const Lease& lease = here_.at(id);
    if (lease.kind_and_user == kind_and_user) seconds += absl::ToDoubleSeconds(now - lease.begun);
  }
  return seconds;
}

// Users of one priority who wait for the same device take turns: the one who had less of its kind is next. While both
// wait, their device seconds differ by at most one visit per device.
void Checker::CheckTurn(const tracker::Farm& farm, const tracker::BatchQueue::Lease& lease, absl::Time now) {
  const v1::Job& own = *farm.jobs().Find(farm.batches().JobOf(lease));
  const tracker::Agent& agent = farm.devices().agents().at(lease.agent_id);
  const v1::DeviceState& device = agent.devices.at(lease.device_id).state;
  const std::string kind = device.fingerprint().digest() + " ";
  for (const v1::Job* job : farm.jobs().InState(v1::JOB_STATE_RUNNING)) {
    const std::string& other = job->spec().submitted_by();
    if (job->spec().priority() != own.spec().priority() || other == own.spec().submitted_by()) continue;
    const std::vector<tracker::BatchQueue::Queued> pieces = farm.batches().Waiting(job->id());
    const bool wants = std::any_of(pieces.begin(), pieces.end(), [&](const tracker::BatchQueue::Queued& piece) {
      return piece.avoid->agents.empty() && piece.avoid->devices.empty() &&
             tracker::Matches(piece.batch->requirements(), lease.agent_id, device);
    });
    const double less = UsedSecondsOf(kind + other, now), more = UsedSecondsOf(kind + own.spec().submitted_by(), now);
    if (!wants || more <= less * 1.1 + kSlack) continue;
    world_->Violate(fmt::format("{} had {:.1f} s of {}, {} had {:.1f} s, and the first has its turn on {}/{}",
                                own.spec().submitted_by(), more, kind, other, less, lease.agent_id, lease.device_id));
  }
}

// Every job that waits has a reason for waiting.
void Checker::CheckWaits(const tracker::Farm& farm, absl::Time now) {
  for (const v1::JobState state : {v1::JOB_STATE_QUEUED, v1::JOB_STATE_RUNNING}) {
    for (const v1::Job* job : farm.jobs().InState(state)) {
      if (state == v1::JOB_STATE_RUNNING && !farm.batches().fair_share().IsWaiting(job->id())) continue;
      const std::string what = farm.GetJob(job->id(), now)->waiting_for();
      if (what.empty() || what.ends_with(' ')) world_->Violate(fmt::format("{} waits for '{}'", job->id(), what));
    }
  }
}

// The waiting time of a job grows no faster than time itself, and not at all while the tracker is stalled.
void Checker::CheckWaited(const tracker::Farm& farm, absl::Time now) {
  std::map<std::string, Waited> waited;
  for (const v1::Job* job : farm.jobs().InState(v1::JOB_STATE_RUNNING)) {
    const Waited is = {farm.batches().fair_share().Waited(job->id()), now - stood_still_};
    const Waited was = waited_.try_emplace(job->id(), is).first->second;
    if (is.time > was.time + (is.since - was.since) + kClockSlack) {
      world_->Violate(fmt::format("{} waited for {} within {}", job->id(), absl::FormatDuration(is.time - was.time),
                                  absl::FormatDuration(is.since - was.since)));
    }
    waited[job->id()] = is.time == was.time ? was : is;
  }
  waited_ = std::move(waited);
}

void Checker::End(const tracker::Farm& farm, const std::set<std::string>& ended, absl::Time now) {
  const v1::GetFarmResponse counters = farm.Counters(absl::InfinitePast());
  const int64_t accepted = counters.results_accepted() - accepted_;
  const bool by_results = counters.leases_lost() == lost_ && accepted == static_cast<int64_t>(ended.size());
  for (const std::string& id : ended) {
    Lease& lease = here_.at(id);
    const double seconds = UsedSecondsOf(lease.kind_and_user, now);
    lease.live = false;
    live_.erase(id);
    used_time_[lease.kind_and_user] = {};
    used_time_[lease.kind_and_user] = {seconds - UsedSecondsOf(lease.kind_and_user, now), now - stood_still_};
    world_->Note(fmt::format("lease {:.8} of {} ends{}", id, lease.device, by_results ? " with a result" : ""));
    // Every accepted result is recorded.
    const auto result = reported_.find(id);
    if (by_results && result != reported_.end() && Lasting(result->second)) {
      MustBeRecorded(result->second, lease.batch_id, "it was accepted");
    }
  }
}

void Checker::NoteHealth(const tracker::Farm& farm, absl::Time now) {
  for (const v1::Device& device : farm.devices().List({}, now)) {
    const std::string name = tracker::NameOf(device.agent_id(), device.state().device_id());
    // A check of the golden kernel counts once. The checker gives every check a different duration, so equal durations
    // reveal a repeat.
    const auto& seconds = device.record().golden_seconds();
    if (std::set<double>(seconds.begin(), seconds.end()).size() != static_cast<size_t>(seconds.size())) {
      world_->Violate(fmt::format("one check of the golden kernel of {} was counted twice", name));
    }
    if (!tracker::IsQuarantined(device.record())) {
      quarantines_.erase(name);
      const auto stored = stored_quarantines_.find(name);
      if (stored == stored_quarantines_.end()) continue;
      // A device's health survives restarts of the tracker and of the agent.
      if (now < stored->second.retry_at) {
        world_->Violate(fmt::format("{} left its quarantine before its time: {}", name, stored->second.reason));
      }
      stored_quarantines_.erase(stored);
      continue;
    }
    const absl::Time begun = hone::FromProto(device.record().quarantined_since());
    const absl::Time retry_at = hone::FromProto(device.record().retry_at());
    auto [seen, first] = quarantines_.try_emplace(name);
    if (first || seen->second.retry_at != retry_at) {
      seen->second = {device.record().quarantine_reason(), begun, retry_at, world_->now() - stood_still_};
      world_->Note(fmt::format("{} is in quarantine: {}", name, seen->second.reason));
    }
    if (!farm.storage_failure().empty()) seen->second.since = world_->now() - stood_still_;
    // If the tracker's clock is set back, a quarantine restarts with it.
    const auto stored = stored_quarantines_.find(name);
    if (stored != stored_quarantines_.end() && begun < stored->second.begun) stored_quarantines_.erase(stored);
    const absl::Duration running = world_->now() - stood_still_ - seen->second.since;
    if (running >= kSurelyStored) stored_quarantines_[name] = seen->second;
  }
}

void Checker::UndrainEnds(const std::string& agent) {
  ForgetDrain(agent);
  if (const auto begun = undraining_.find(agent); begun != undraining_.end()) undraining_.erase(begun);
}

// The end of a drain also ends the quarantines of the agent's devices.
void Checker::ForgetDrain(const std::string& agent) {
  drained_.erase(agent);
  std::erase_if(stored_quarantines_, [&](const auto& entry) { return entry.first.starts_with(agent + "/"); });
  std::erase_if(quarantines_, [&](const auto& entry) { return entry.first.starts_with(agent + "/"); });
}

void Checker::ResultsReported(const v1::SynchronizeRequest& request) {
  for (const v1::LeaseResult& result : request.finished()) reported_[result.lease().lease_id()] = result;
}

// Results that an agent may delete are recorded, unless this run of the tracker had ended the lease itself.
void Checker::Answered(const v1::SynchronizeRequest& request, const v1::SynchronizeResponse& response) {
  for (const v1::LeaseResult& result : request.finished()) {
    const std::string& id = result.lease().lease_id();
    const auto& acked = response.acked_lease_ids();
    if (!Lasting(result) || here_.contains(id) || std::find(acked.begin(), acked.end(), id) == acked.end()) continue;
    MustBeRecorded(result, tracker::BatchOfVisit(result.receipt().batch_id()), "its agent may forget it");
  }
}

void Checker::MustBeRecorded(const v1::LeaseResult& result, const std::string& batch_id, const std::string& why) {
  for (const v1::CandidateOutcome& outcome : result.result().outcomes()) {
    must_be_recorded_[batch_id + "/" + outcome.candidate_id()] = fmt::format(
        "{} (lease {:.8}, at {:.3f})", why, result.lease().lease_id(), absl::ToDoubleSeconds(world_->now()));
  }
}

double Checker::NewTime(const std::string& candidate_id) {
  const double time = 1e-3 * (1 + 1e-9 * static_cast<double>(++next_time_));
  times_[candidate_id].insert(time);
  return time;
}

// A device measures one batch at a time.
void Checker::Begins(const std::string& device, const v1::Batch& batch) {
  std::set<std::string>& hands = running_[device];
  if (!hands.empty()) world_->Violate(device + " measures two things at once");
  for (const v1::Candidate& candidate : batch.candidates()) hands.insert(candidate.id());
}

void Checker::Ends(const std::string& device, const v1::Batch& /*batch*/) { running_.erase(device); }

void Checker::AgentDied(const std::string& agent) {
  std::erase_if(running_, [&](const auto& entry) { return entry.first.starts_with(agent + "/"); });
}

// A batch is finished once, with one outcome for each candidate, in order. Everything that a tuner is told is recorded.
void Checker::BatchResultReceived(const std::string& batch_id, const v1::Batch& batch, const v1::BatchResult& result,
                                  bool may_fail) {
  if (!told_batches_.insert(batch_id).second) world_->Violate("a batch was finished twice: " + batch_id);
  if (!result.error().empty()) {
    if (!may_fail) world_->Violate(fmt::format("batch {} failed: {}", batch_id, result.error()));
    return;
  }
  if (result.outcomes_size() != batch.candidates_size()) {
    return world_->Violate(fmt::format("batch {} has {} outcomes for {} candidates", batch_id, result.outcomes_size(),
                                       batch.candidates_size()));
  }
  for (int i = 0; i < result.outcomes_size(); ++i) {
    const std::string& candidate = batch.candidates(i).id();
    if (result.outcomes(i).candidate_id() != candidate) world_->Violate("outcomes are out of order in " + batch_id);
    must_be_recorded_[batch_id + "/" + candidate] = "a tuner was told";
    const v1::Outcome& outcome = result.outcomes(i).outcome();
    if (outcome.has_timing() && !times_[candidate].contains(outcome.timing().seconds(0))) {
      world_->Violate("a time that nobody measured: " + candidate);
    }
    ++told_count_;
  }
}

// A job that a user was told of stays known, and a job that has ended never changes its state again.
void Checker::JobSeen(const v1::Job& job, absl::Duration asked) {
  const auto known = ends_.find(job.id());
  if (!tracker::JobQueue::Ended(job)) {
    if (known != ends_.end() && asked > known->second.told) {
      world_->Violate(fmt::format("job {} had ended, and goes on", job.id()));
    }
    return;
  }
  if (known == ends_.end()) {
    ends_[job.id()] = {job.state(), world_->now()};
  } else if (known->second.state != job.state()) {
    world_->Violate(fmt::format("job {} ended twice, differently", job.id()));
  }
}

// Every outcome is recorded exactly once and was measured by a device. Every result that had to be recorded is there.
void Checker::AtEnd(const records::Store& store, const std::string& farm_id) {
  if (const absl::Status sound = store.CheckIntegrity(); !sound.ok()) world_->Violate("records: " + sound.ToString());
  std::set<std::string> ids;
  const auto page = store.Query({.limit = 100'000, .byte_limit = SIZE_MAX});
  if (!page.ok()) return world_->Violate("records: " + page.status().ToString());
  for (const records::StoredRecord& row : page->rows) {
    const std::string id = row.record.measurement_id.substr(farm_id.size() + 1);
    if (!ids.insert(id).second) world_->Violate("recorded twice: " + id);
    const auto* timing = std::get_if<records::Timing>(&row.record.outcome);
    const std::string candidate = id.substr(id.find('/') + 1);
    if (timing != nullptr && !times_[candidate].contains(timing->seconds.at(0))) {
      world_->Violate("recorded, and nobody measured it: " + id);
    }
  }
  for (const auto& [id, why] : must_be_recorded_) {
    if (!ids.contains(id)) world_->Violate(fmt::format("not recorded, though {}: {}", why, id));
  }
}

}  // namespace hone::simulation
