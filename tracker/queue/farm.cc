// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/farm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/protocol_version.h"
#include "base/status.h"
#include "proto/convert.h"
#include "tracker/queue/receipt.h"
#include "tracker/queue/submitter.h"
#include "tracker/queue/text_limits.h"

namespace hone::tracker {
namespace {

// The size of a list of jobs: less than the largest message (transport/transport.h), and more than a user reads.
constexpr size_t kListBytesMax = size_t{64} << 20;

bool CouldTake(const std::string& agent_id, const Device& device, const v1::Batch& batch) {
  return Matches(batch.requirements(), agent_id, device.state) && batch.threads() <= device.state.threads();
}

// Adds the state of the device that its agent reported last. It helps to explain an unusual time in the records.
void SetDevice(const v1::DeviceState& device, v1::BatchResult& result) {
  *result.mutable_device() = device.fingerprint();
  auto& environment = *result.mutable_environment();
  if (const std::string level = NameOf(device.sandbox().level()); !level.empty()) environment["sandbox"] = level;
  if (!device.golden().passed()) return;
  environment["golden_us"] = fmt::format("{:.3g}", device.golden().median_seconds() * 1e6);
  if (device.golden().throttled()) environment["throttled"] = "yes";
}

std::optional<double> HottestOf(const v1::BatchResult& result) {
  std::optional<double> hottest;
  for (const v1::CandidateOutcome& outcome : result.outcomes()) {
    const v1::Timing& timing = outcome.outcome().timing();
    if (timing.has_temperature_c())
      hottest = std::max(hottest.value_or(timing.temperature_c()), timing.temperature_c());
  }
  return hottest;
}

// Converts kinds of failure that only a newer agent knows. Such a candidate counts and is recorded as crashed, with a
// text that names the unknown kind.
v1::BatchResult WithKnownFailures(v1::BatchResult result) {
  for (v1::CandidateOutcome& outcome : *result.mutable_outcomes()) {
    if (!outcome.outcome().has_failure()) continue;
    v1::Failure& failure = *outcome.mutable_outcome()->mutable_failure();
    const int kind = failure.kind();
    if (kind != v1::FAILURE_KIND_UNSPECIFIED && v1::FailureKind_IsValid(kind)) continue;
    failure.set_kind(v1::FAILURE_KIND_CRASHED);
    failure.set_text(fmt::format("failed with kind {}, which this tracker does not know{}{}; update the tracker", kind,
                                 failure.text().empty() ? "" : ": ", failure.text()));
  }
  return result;
}

// The part of an agent's answer that is accepted: one outcome for each of these candidates, and the length of the
// visit. The tracker fills in everything else, such as names and versions.
v1::BatchResult Taken(const v1::BatchResult& answer, std::set<std::string> candidates) {
  v1::BatchResult taken;
  taken.set_visit_seconds(answer.visit_seconds());
  if (answer.has_run()) *taken.mutable_run() = answer.run();
  for (const v1::CandidateOutcome& outcome : answer.outcomes()) {
    if (candidates.erase(outcome.candidate_id()) == 0) continue;
    v1::CandidateOutcome& kept = *taken.add_outcomes();
    kept = outcome;
    if (!kept.outcome().has_failure()) continue;
    v1::Failure& failure = *kept.mutable_outcome()->mutable_failure();
    failure.set_text(TruncateUtf8(failure.text()));
  }
  return WithKnownFailures(std::move(taken));
}

absl::Status CheckBatchIds(const v1::WaitBatchRequest& request, int most) {
  for (const auto* ids : {&request.batch_ids(), &request.acked_batch_ids()}) {
    if (ids->size() > most) {
      return absl::InvalidArgumentError(
          fmt::format("the call names {} batches; the limit is {}; make several calls", ids->size(), most));
    }
    if (std::set<std::string>(ids->begin(), ids->end()).size() < static_cast<size_t>(ids->size())) {
      return absl::InvalidArgumentError("a batch is named twice in one call");
    }
  }
  return absl::OkStatus();
}

// A tuner may measure only workloads of its job, so that it cannot add records of others. It may run packages if the
// job has a model.
absl::Status CheckWorkload(const v1::JobSpec& spec, const v1::Batch& batch) {
  if (batch.has_run()) {
    if (spec.has_model()) return absl::OkStatus();
    return absl::InvalidArgumentError("the batch runs packages, and its job has no model to run");
  }
  const auto asked = [&](const v1::WorkloadSpec& workload) {
    return workload.digest() == batch.workload_digest() && workload.text() == batch.workload() &&
           workload.sizes() == batch.sizes();
  };
  if (std::any_of(spec.workloads().begin(), spec.workloads().end(), asked)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the batch's workload '{}', at the sizes '{}', is not among the workloads of its job",
                  batch.workload_digest(), batch.sizes()));
}

}  // namespace

Farm::Farm(FarmOptions options, uint64_t incarnation, const DrawId& draw_id, std::string receipt_key)
    : options_(options),
      draw_id_(draw_id),
      receipt_key_(std::move(receipt_key)),
      jobs_(options.jobs, incarnation, draw_id),
      devices_(options.devices, incarnation),
      batches_(options.batches, draw_id),
      watches_(options.watches, options.jobs.notify_allowed) {
  HONE_CHECK(incarnation >= 1);
}

void Farm::Restore(std::vector<v1::Job> jobs, const std::vector<std::pair<std::string, std::string>>& drained,
                   std::map<std::string, v1::HealthRecord> health, std::vector<v1::FleetWatch> watches) {
  for (v1::Job& job : jobs) jobs_.Restore(std::move(job));
  watches_.Restore(std::move(watches));
  for (auto& [name, record] : health) devices_.RestoreHealth(name, std::move(record));
  for (const auto& [agent_id, reason] : drained) devices_.Drain(agent_id, reason);
  CheckQueued(absl::InfinitePast());  // no agent has registered yet
}

// Every call goes through here first. The shell calls at least twice a second. A longer gap means that the tracker
// stood still (stopped, swapped out or waiting for its disk) and received no calls, so the gap counts against no limit.
absl::Time Farm::AdvanceClock(absl::Time now) {
  const absl::Duration gap = now - last_now_;
  const bool stalled = last_now_ != absl::InfinitePast() && gap > options_.stall;
  if (stalled) {
    jobs_.ExcludeStall(gap, now);
    devices_.ExcludeStall(gap, now);
    batches_.ExcludeStall(gap);
    time_stalled_ += gap;
    for (auto& [job_id, since] : absent_since_) since += gap;
    for (auto& [job_id, since] : watched_since_) since += gap;
  }
  last_now_ = std::max(last_now_, now);
  batches_.AdvanceTo(last_now_);
  return last_now_;
}

// The live lease that the agent may answer, or nullptr. An agent may answer the leases of its current epoch. In the
// first call of a new epoch it may also answer those of the epoch before, because a restarted agent keeps its results.
// All other answers are stale.
const BatchQueue::Lease* Farm::LiveLease(const Agent& agent, const v1::LeaseReference& reference) const {
  const BatchQueue::Lease* lease = batches_.FindLease(reference.lease_id());
  if (lease == nullptr || lease->agent_id != agent.id || lease->epoch != reference.epoch()) return nullptr;
  const auto& orphans = agent.orphaned_leases;
  const bool orphaned = std::find(orphans.begin(), orphans.end(), lease->id) != orphans.end();
  return lease->epoch == agent.epoch || orphaned ? lease : nullptr;
}

// A result whose lease is unknown, in the form in which it is recorded; nullopt: it has no valid receipt.
std::optional<Recordable> Farm::ResultUnderReceipt(const v1::SynchronizeRequest& request,
                                                   const v1::LeaseResult& finished) const {
  if (finished.batch().has_run()) return std::nullopt;  // its job waits in the queue again
  if (!finished.has_batch() || !IsReceiptValid(receipt_key_, request.agent_id(), finished)) return std::nullopt;
  std::set<std::string> candidates;
  for (const v1::Candidate& candidate : finished.batch().candidates()) candidates.insert(candidate.id());
  if (finished.result().outcomes_size() > static_cast<int>(candidates.size())) return std::nullopt;
  const v1::Receipt& receipt = finished.receipt();
  Recordable recordable{BatchOfVisit(receipt.batch_id()), receipt.job_id(),
                        std::make_shared<const v1::Batch>(Description(finished.batch())),
                        Taken(finished.result(), std::move(candidates)), receipt.batch_id()};
  recordable.result.set_device_name(NameOf(request.agent_id(), receipt.device_id()));
  recordable.result.set_agent_version(request.agent_version());
  for (const v1::DeviceState& device : request.devices()) {
    if (device.device_id() == receipt.device_id()) SetDevice(device, recordable.result);
  }
  return recordable;
}

v1::BatchResult Farm::Completed(const Agent& agent, const BatchQueue::Lease& lease,
                                const v1::BatchResult& answer) const {
  v1::BatchResult result = Taken(answer, batches_.CandidatesOf(lease));
  auto device = agent.devices.find(lease.device_id);
  if (device != agent.devices.end()) SetDevice(device->second.state, result);
  result.set_device_name(fmt::format("{}/{}", agent.id, lease.device_id));
  result.set_agent_version(agent.version);
  return result;
}

absl::Status Farm::CheckStorage() const {
  if (storage_failure_.empty()) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("the tracker cannot store anything now: {}; call again later; nothing is lost", storage_failure_));
}

void Farm::AddNames(Recordable& recordable) const {
  const v1::Job* job = jobs_.Find(recordable.job_id);
  if (job == nullptr) return;
  recordable.model = job->spec().name();
  const std::string& digest = recordable.batch->workload_digest();
  const auto workload = std::ranges::find(job->spec().workloads(), digest, &v1::WorkloadSpec::digest);
  if (workload == job->spec().workloads().end()) return;
  recordable.title = workload->title();
  recordable.nodes = fmt::format("{}", fmt::join(workload->nodes(), ", "));
}

std::vector<Recordable> Farm::AcceptableResults(const v1::SynchronizeRequest& request, absl::Time now) {
  AdvanceClock(now);
  std::vector<Recordable> acceptable;
  if (!Validate(request).ok() || devices_.IsSuperseded(request) || devices_.IsFirstClaim(request)) return acceptable;
  const Agent* agent = devices_.Find(request.agent_id());
  for (const v1::LeaseResult& finished : request.finished()) {
    if (!finished.result().error().empty()) continue;
    const BatchQueue::Lease* lease = agent == nullptr ? nullptr : LiveLease(*agent, finished.lease());
    if (lease == nullptr) {
      if (std::optional<Recordable> result = ResultUnderReceipt(request, finished)) {
        acceptable.push_back(*std::move(result));
      }
      continue;
    }
    if (batches_.WholeBatch(*lease).has_run()) continue;  // stored with its job
    if (!batches_.IncompleteReason(*lease, finished.result()).empty()) continue;
    acceptable.push_back(batches_.ToRecord(*lease, Completed(*agent, *lease, finished.result())));
  }
  for (Recordable& result : acceptable) AddNames(result);
  return acceptable;
}

v1::SynchronizeRequest Farm::DeferResults(v1::SynchronizeRequest request) {
  const Agent* agent = devices_.Find(request.agent_id());
  for (const v1::LeaseResult& result : request.finished()) {
    if (agent == nullptr || agent->boot_id != request.boot_id() || LiveLease(*agent, result.lease()) == nullptr)
      continue;
    batches_.NoteAnswered(result.lease().lease_id());
    *request.add_running() = result.lease();
  }
  request.clear_finished();
  return request;
}

absl::StatusOr<Farm::Answer> Farm::Synchronize(const v1::SynchronizeRequest& request, absl::Time now) {
  now = AdvanceClock(now);
  const Agent* known = devices_.Find(request.agent_id());
  if (const std::optional<uint64_t> epoch = devices_.Claim(request)) {
    Answer answer{.news = true};
    answer.response.set_epoch(*epoch);
    return answer;
  }
  const bool was_there = known != nullptr && devices_.IsOnline(*known, now) && known->boot_id == request.boot_id();
  HONE_ASSIGN_OR_RETURN(Agent * agent, devices_.Register(request, now));
  if (!was_there) CheckQueued(now);  // a queued job may have waited for its devices
  Answer answer;
  answer.response.set_epoch(agent->epoch);
  TakeResults(*agent, request, answer.response, now);
  LoseOrphans(*agent, now);
  if (request.leaving()) ReturnLeases(*agent, request, now);
  CompareLeases(*agent, request, answer.response);
  LeaseWork(*agent, answer.response, now);
  const bool drained = devices_.drained(agent->id);
  answer.news = request.epoch() != agent->epoch || answer.response.leases_size() > 0 ||
                answer.response.acked_lease_ids_size() > 0 || answer.response.cancelled_lease_ids_size() > 0 ||
                answer.response.check_device_ids_size() > 0 || drained != agent->reported_drained;
  answer.hold = request.leaving() ? absl::ZeroDuration() : Hold(*agent);
  FillTimes(*agent, answer.response);
  return answer;
}

void Farm::TakeResults(Agent& agent, const v1::SynchronizeRequest& request, v1::SynchronizeResponse& response,
                       absl::Time now) {
  for (const v1::LeaseResult& finished : request.finished()) {
    const BatchQueue::Lease* lease = LiveLease(agent, finished.lease());
    // The agent does not know its new epoch yet and sent no receipt. It sends the result again, with the receipt, in
    // its next call.
    if (lease == nullptr && request.epoch() != agent.epoch && !finished.has_batch()) continue;
    response.add_acked_lease_ids(finished.lease().lease_id());
    if (lease == nullptr) {
      ResultUnderReceipt(request, finished).has_value() ? ++recovered_ : ++stale_;
      continue;
    }
    accepted_ += 1;
    TakeResult(agent, *lease, finished.result(), now);
  }
  if (!request.finished().empty()) EndRuns(now);
  // When a batch failed as a whole, leases of its other pieces ended too.
  DropReleasedJobs();
}

// Takes a result: outcomes, a failure of the batch, or a failure of the device.
void Farm::TakeResult(Agent& agent, const BatchQueue::Lease& live, const v1::BatchResult& result, absl::Time now) {
  const BatchQueue::Lease lease = live;  // a copy, because the live one ends below
  const std::string name = NameOf(agent.id, lease.device_id);
  const std::string missing = result.error().empty() ? batches_.IncompleteReason(lease, result) : "";
  const std::string error = TruncateUtf8(result.error());
  if (!missing.empty() || result.trouble() == v1::TROUBLE_KIND_DEVICE) {
    return LoseLease(lease.id, missing.empty() ? error : missing, now);
  }
  FreeDevice(lease);
  std::erase(agent.orphaned_leases, lease.id);
  if (!error.empty()) {
    Avoid avoid = batches_.AvoidedBy(lease);
    avoid.devices[name] = error;
    return batches_.RejectLease(lease, error, AnotherCouldTake(batches_.WholeBatch(lease), avoid, now), now);
  }
  v1::BatchResult completed = Completed(agent, lease, result);
  if (auto device = agent.devices.find(lease.device_id); device != agent.devices.end()) {
    devices_.CountDone(agent, device->second, completed.outcomes_size(), HottestOf(completed));
  }
  CountOutcomes(completed);
  trials_by_minute_.Add(completed.outcomes_size(), ToWallTime(now));
  for (const auto& [other, why] : batches_.Finish(lease, std::move(completed))) {
    const std::string could = other == name ? "it measured later" : name + " could";
    devices_.CountFailure(other, fmt::format("it could not measure a batch that {}: {}", could, why), now);
  }
}

void Farm::CountOutcomes(const v1::BatchResult& result) {
  for (const v1::CandidateOutcome& outcome : result.outcomes()) {
    ++outcomes_[outcome.outcome().has_failure() ? outcome.outcome().failure().kind() : v1::FAILURE_KIND_UNSPECIFIED];
  }
}

std::vector<Recordable> Farm::TakeGivenUp() {
  std::vector<Recordable> given_up = batches_.TakeGivenUp();
  for (Recordable& candidates : given_up) {
    CountOutcomes(candidates.result);
    AddNames(candidates);
  }
  return given_up;
}

void Farm::FreeDevice(const BatchQueue::Lease& lease) {
  Agent* agent = devices_.Find(lease.agent_id);
  if (agent == nullptr) return;
  const auto device = agent->devices.find(lease.device_id);
  if (device != agent->devices.end() && device->second.lease_id == lease.id) device->second.lease_id.clear();
}

void Farm::ReturnLeases(Agent& agent, const v1::SynchronizeRequest& request, absl::Time now) {
  for (auto& [id, device] : agent.devices) {
    const auto is_leased = [&](const v1::LeaseReference& running) { return running.lease_id() == device.lease_id; };
    if (std::any_of(request.running().begin(), request.running().end(), is_leased)) continue;
    const std::string lease_id = std::exchange(device.lease_id, "");
    const std::string job_id = JobOfLease(lease_id);
    batches_.Return(lease_id, now);
    if (!job_id.empty() && jobs_.Find(job_id)->spec().has_run()) jobs_.ReturnRun(job_id, now);
  }
  DropReleasedJobs();
}

void Farm::CompareLeases(Agent& agent, const v1::SynchronizeRequest& request, v1::SynchronizeResponse& response) {
  std::set<std::string> running;
  for (const v1::LeaseReference& reference : request.running()) {
    running.insert(reference.lease_id());
    if (LiveLease(agent, reference) == nullptr) response.add_cancelled_lease_ids(reference.lease_id());
  }
  // The agent does not mention a lease if the response that gave it was lost, or if the agent stopped its work after a
  // long silence. The lease is sent again.
  for (const auto& [id, device] : agent.devices) {
    if (device.lease_id.empty() || running.contains(device.lease_id)) continue;
    AddLease(*batches_.FindLease(device.lease_id), response);
  }
}

void Farm::LeaseWork(Agent& agent, v1::SynchronizeResponse& response, absl::Time now) {
  for (std::string& id : devices_.AskForChecks(agent, now)) *response.add_check_device_ids() = std::move(id);
  if (!storage_failure_.empty()) return;  // the results could not be stored
  for (auto& [id, device] : agent.devices) {
    if (!device.lease_id.empty() || !devices_.CanServe(agent, device, now)) continue;
    const auto fits = [&](const v1::Batch& batch, const Avoid& avoid) {
      return CanTake(agent, device, batch, avoid, now);
    };
    const BatchQueue::Lease* lease = batches_.Pick(
        {.agent_id = agent.id, .device_id = id, .fingerprint = device.state.fingerprint(), .epoch = agent.epoch}, fits,
        now);
    if (lease == nullptr) continue;
    device.lease_id = lease->id;
    if (const std::string& job_id = batches_.JobOf(*lease); jobs_.Find(job_id)->spec().has_run()) {
      jobs_.StartRun(job_id, now);
    }
    if (lease->attempt == 1) lease_waits_.Add(absl::ToDoubleSeconds(lease->waited));
    AddLease(*lease, response);
  }
}

bool Farm::CanTake(const Agent& agent, const Device& device, const v1::Batch& batch, const Avoid& avoid,
                   absl::Time now) const {
  if (!CouldTake(agent.id, device, batch)) return false;
  const std::string name = NameOf(agent.id, device.state.device_id());
  const bool avoided = avoid.agents.contains(agent.id) || avoid.devices.contains(name);
  return !avoided || !AnotherCouldTake(batch, avoid, now);
}

std::string Farm::JobOfLease(const std::string& lease_id) const {
  const BatchQueue::Lease* lease = batches_.FindLease(lease_id);
  return lease == nullptr ? "" : batches_.JobOf(*lease);
}

void Farm::NoteAlive(const std::string& agent_id, absl::Time now) {
  if (Agent* agent = devices_.Find(agent_id)) agent->last_seen = AdvanceClock(now);
}

void Farm::NoteBrokenOff(const std::string& agent_id, absl::Time now) {
  if (Agent* agent = devices_.Find(agent_id)) agent->broke_off = AdvanceClock(now);
}

std::optional<std::string> Farm::NextAgentForNewWork(const std::function<bool(const std::string&)>& held,
                                                     absl::Time now) {
  now = AdvanceClock(now);
  const std::map<std::string, Agent>& agents = devices_.agents();
  while (const std::optional<BatchQueue::Queued> piece = batches_.NewlyQueued()) {
    auto next = agents.upper_bound(last_agent_offered_);
    for (size_t seen = 0; seen < agents.size(); ++seen, ++next) {
      if (next == agents.end()) next = agents.begin();
      const auto& [id, agent] = *next;
      const auto idle = [&](const auto& entry) {
        return entry.second.lease_id.empty() && CanTake(agent, entry.second, *piece->batch, *piece->avoid, now) &&
               devices_.CanServe(agent, entry.second, now);
      };
      if (!held(id) || !std::any_of(agent.devices.begin(), agent.devices.end(), idle)) continue;
      last_agent_offered_ = id;
      return last_agent_offered_;
    }
    SkipNewlyQueued();
  }
  return std::nullopt;
}

bool Farm::AnotherCouldTake(const v1::Batch& batch, const Avoid& avoid, absl::Time now) const {
  for (const auto& [agent_id, agent] : devices_.agents()) {
    if (avoid.agents.contains(agent_id)) continue;
    for (const auto& [id, device] : agent.devices) {
      if (avoid.devices.contains(NameOf(agent_id, id))) continue;
      if (devices_.CanServe(agent, device, now) && CouldTake(agent_id, device, batch)) return true;
    }
  }
  return false;
}

void Farm::AddLease(const BatchQueue::Lease& lease, v1::SynchronizeResponse& response) const {
  v1::Lease* proto = response.add_leases();
  proto->mutable_reference()->set_lease_id(lease.id);
  proto->mutable_reference()->set_epoch(lease.epoch);
  proto->set_device_id(lease.device_id);
  proto->set_attempt(lease.attempt);
  *proto->mutable_run_limit() = ToProto(lease.run_limit);
  *proto->mutable_batch() = batches_.BatchOf(lease, last_now_);
  v1::Receipt receipt;
  receipt.set_batch_id(VisitId(lease.batch_id, lease.visit));
  receipt.set_job_id(batches_.JobOf(lease));
  receipt.set_device_id(lease.device_id);
  *proto->mutable_receipt() = MakeReceipt(receipt_key_, lease.id, lease.agent_id, std::move(receipt), proto->batch());
}

void Farm::FillTimes(Agent& agent, v1::SynchronizeResponse& response) {
  const bool busy = std::any_of(agent.devices.begin(), agent.devices.end(),
                                [](const auto& device) { return !device.second.lease_id.empty(); });
  *response.mutable_next_sync() = ToProto(busy ? options_.heartbeat : absl::ZeroDuration());
  *response.mutable_fence_after() = ToProto(options_.devices.lease_ttl - options_.fence_margin);
  agent.reported_drained = devices_.drained(agent.id);
  response.set_drained(agent.reported_drained);
  for (const auto& [id, device] : agent.devices) {
    if (std::string why = devices_.ExclusionReason(agent, device, last_now_); !why.empty()) {
      (*response.mutable_barred())[id] = std::move(why);
    }
  }
}

// An agent whose other devices measure must call once per heartbeat, so its call is held for no longer.
absl::Duration Farm::Hold(const Agent& agent) const {
  const auto busy = std::count_if(agent.devices.begin(), agent.devices.end(),
                                  [](const auto& device) { return !device.second.lease_id.empty(); });
  if (busy == 0) return options_.idle_hold;
  return busy < static_cast<int64_t>(agent.devices.size()) ? options_.heartbeat : absl::ZeroDuration();
}

absl::StatusOr<std::optional<v1::SynchronizeResponse>> Farm::Offer(const v1::SynchronizeRequest& held, absl::Time now) {
  now = AdvanceClock(now);
  Agent* agent = devices_.Find(held.agent_id());
  if (agent != nullptr && agent->boot_id != held.boot_id()) return DeviceRegistry::Superseded(held.agent_id());
  if (agent == nullptr || agent->sequence != held.sequence()) {
    return absl::AbortedError(
        fmt::format("call {} of agent '{}' was replaced by a newer call", held.sequence(), held.agent_id()));
  }
  agent->last_seen = now;  // its call is open
  std::optional<v1::SynchronizeResponse> response(std::in_place);
  LeaseWork(*agent, *response, now);
  const bool same_drain = devices_.drained(agent->id) == agent->reported_drained;
  if (response->leases().empty() && response->check_device_ids().empty() && same_drain) response.reset();
  if (!response) return response;
  response->set_epoch(agent->epoch);
  FillTimes(*agent, *response);
  *response->mutable_held() = ToProto(now - agent->called);
  return response;
}

absl::StatusOr<v1::LeaseJobResponse> Farm::LeaseJob(const v1::LeaseJobRequest& request, absl::Time now) {
  now = AdvanceClock(now);
  HONE_RETURN_IF_ERROR(CheckProtocol(request.protocol_version(), fmt::format("tuner '{}'", request.tuner_id())));
  if (request.tuner_id().empty()) return absl::InvalidArgumentError("tuner has no tuner_id");
  HONE_RETURN_IF_ERROR(CheckNameLength("tuner_id", request.tuner_id()));
  HONE_RETURN_IF_ERROR(CheckNameLength("boot_id", request.boot_id()));
  HONE_RETURN_IF_ERROR(CheckStorage());
  if (request.leaving()) {
    jobs_.RemoveTuner(request.tuner_id(), request.boot_id(), now);
    tuners_.Remove(request.tuner_id());
    DropReleasedJobs();
    CheckQueued(now);
    return v1::LeaseJobResponse();
  }
  tuners_.Note(request.tuner_id(), now);
  HONE_RETURN_IF_ERROR(jobs_.CheckQuota(request.tuner_id()));
  const std::optional<JobQueue::Grant> grant = jobs_.Lease(request.tuner_id(), request.boot_id(), now, UseByUser());
  DropReleasedJobs();
  v1::LeaseJobResponse response;
  *response.mutable_lease_ttl() = ToProto(options_.jobs.lease_ttl);
  if (!grant) return response;
  *response.mutable_lease() = grant->lease;
  *response.mutable_job() = *grant->job;
  if (grant->job->spec().has_until()) {
    *response.mutable_until_left() =
        ToProto(std::max(absl::ZeroDuration(), FromProto(grant->job->spec().until()) - ToWallTime(now)));
  }
  return response;
}

absl::StatusOr<v1::ReportProgressResponse> Farm::ReportProgress(const v1::ReportProgressRequest& request,
                                                                absl::Time now) {
  now = AdvanceClock(now);
  HONE_ASSIGN_OR_RETURN(bool cancelled, jobs_.RenewLease(request.lease(), now));
  tuners_.Note(jobs_.TunerIdOf(request.lease().job_id()), now);
  HONE_RETURN_IF_ERROR(CheckStorage());
  if (request.has_progress()) {
    HONE_ASSIGN_OR_RETURN(cancelled, jobs_.Report(request.lease(), request.progress(), now));
  }
  v1::ReportProgressResponse response;
  response.set_cancelled(cancelled);
  *response.mutable_waited() = ToProto(batches_.fair_share().Waited(request.lease().job_id()));
  return response;
}

std::vector<v1::Tuner> Farm::ListTuners(absl::Time now) {
  now = AdvanceClock(now);
  std::map<std::string, std::vector<std::string>> jobs;  // by tuner
  for (const v1::Job* job : jobs_.InState(v1::JOB_STATE_RUNNING)) jobs[jobs_.TunerIdOf(job->id())].push_back(job->id());
  std::vector<v1::Tuner> tuners;
  for (const KnownTuner& known : tuners_.List(now)) {
    v1::Tuner& tuner = tuners.emplace_back();
    tuner.set_tuner_id(known.id);
    tuner.set_online(known.is_online);
    *tuner.mutable_last_seen() = ToProto(ToWallTime(known.last_heard));
    tuner.mutable_job_ids()->Assign(jobs[known.id].begin(), jobs[known.id].end());
  }
  return tuners;
}

absl::StatusOr<v1::SubmitBatchResponse> Farm::SubmitBatch(v1::SubmitBatchRequest request, absl::Time now) {
  now = AdvanceClock(now);
  HONE_ASSIGN_OR_RETURN(const bool cancelled, jobs_.RenewLease(request.lease(), now));
  if (cancelled) return absl::AbortedError(fmt::format("job '{}' was cancelled", request.lease().job_id()));
  const std::string& job_id = request.lease().job_id();
  const v1::JobSpec& spec = jobs_.Find(job_id)->spec();
  HONE_RETURN_IF_ERROR(CheckWorkload(spec, request.batch()));
  const v1::Requirements needs = request.batch().requirements();
  std::set<std::string> packages = FilesOf(request.batch().run());
  request.mutable_batch()->set_priority(spec.priority());  // the tuner's value is ignored
  v1::SubmitBatchResponse response;
  HONE_ASSIGN_OR_RETURN(*response.mutable_batch_id(),
                        batches_.Submit({job_id, SubmitterOf(spec), jobs_.TunerOf(job_id)}, request.client_batch_id(),
                                        std::move(*request.mutable_batch()), now));
  jobs_.Pin(job_id, needs);
  if (!packages.empty()) model_packages_[job_id].merge(packages);
  return response;
}

absl::StatusOr<v1::WaitBatchResponse> Farm::WaitBatch(const v1::WaitBatchRequest& request, absl::Time now) {
  now = AdvanceClock(now);
  HONE_RETURN_IF_ERROR(CheckBatchIds(request, options_.batches.open_per_job_max));
  v1::WaitBatchResponse response;
  HONE_ASSIGN_OR_RETURN(const bool cancelled, jobs_.RenewLease(request.lease(), now));
  response.set_cancelled(cancelled);
  if (cancelled) return response;
  const std::string& job_id = request.lease().job_id();
  *response.mutable_waited() = ToProto(batches_.fair_share().Waited(job_id));
  for (const std::string& batch_id : request.acked_batch_ids()) batches_.Acknowledge(job_id, batch_id);
  for (const std::string& batch_id : request.batch_ids()) {
    HONE_ASSIGN_OR_RETURN(std::optional<v1::BatchResult> result, batches_.Result(job_id, batch_id));
    if (!result) continue;
    v1::FinishedBatch* finished = response.add_finished();
    finished->set_batch_id(batch_id);
    *finished->mutable_result() = *std::move(result);
  }
  return response;
}

absl::Status Farm::CompleteJob(const v1::CompleteJobRequest& request, absl::Time now) {
  now = AdvanceClock(now);
  if (!storage_failure_.empty()) {
    HONE_RETURN_IF_ERROR(jobs_.RenewLease(request.lease(), now).status());
    return CheckStorage();
  }
  HONE_RETURN_IF_ERROR(jobs_.Complete(request, now));
  DropReleasedJobs();
  if (request.returned()) CheckQueued(now);
  return absl::OkStatus();
}

absl::StatusOr<v1::Job> Farm::SubmitJob(const v1::JobSpec& spec, absl::Time now) {
  now = AdvanceClock(now);
  HONE_RETURN_IF_ERROR(CheckStorage());
  HONE_ASSIGN_OR_RETURN(const v1::Job* job, jobs_.Submit(spec, now));
  CheckQueued(now);
  return Described(*job, now);
}

absl::StatusOr<v1::Job> Farm::GetJob(const std::string& job_id, absl::Time now) const {
  const v1::Job* job = jobs_.Find(job_id);
  if (job == nullptr) {
    return absl::NotFoundError(fmt::format("there is no job '{}'; list the jobs to see their ids", job_id));
  }
  return Described(*job, now);
}

std::vector<v1::Job> Farm::GetJobSummaries(const std::vector<std::string>& ids, absl::Time now) const {
  std::vector<v1::Job> lines;
  const Place place = JobsAhead();
  for (const std::string& id : ids) {
    const v1::Job* job = jobs_.Find(id);
    if (job == nullptr) continue;
    lines.push_back(JobQueue::SummaryOf(*job));
    SetPresent(*job, now, place, lines.back());
  }
  return lines;
}

std::vector<v1::Job> Farm::ListJobs(const v1::ListJobsRequest& request, absl::Time now) {
  std::vector<v1::Job> list;
  const Place place = JobsAhead();
  size_t bytes = 0;
  for (const v1::Job* job : jobs_.List(request)) {
    list.push_back(request.for_people() ? jobs_.WithoutWorkloadTexts(job->id()) : *job);
    SetPresent(*job, now, place, list.back());
    bytes += list.back().ByteSizeLong();
    if (bytes <= kListBytesMax) continue;
    list.pop_back();
    break;
  }
  return list;
}

absl::StatusOr<v1::WatchJobResponse> Farm::WatchJob(const v1::WatchJobRequest& request, absl::Time now) const {
  v1::WatchJobResponse response;
  HONE_ASSIGN_OR_RETURN(*response.mutable_job(), GetJob(request.job_id(), now));
  for (v1::JobEvent& event : jobs_.Events(request.job_id(), request.after_sequence())) {
    *response.add_events() = std::move(event);
  }
  return response;
}

absl::StatusOr<v1::Job> Farm::CancelJob(const std::string& job_id, absl::Time now) {
  now = AdvanceClock(now);
  HONE_RETURN_IF_ERROR(CheckStorage());
  HONE_ASSIGN_OR_RETURN(const v1::Job* job, jobs_.Cancel(job_id, now));
  DropReleasedJobs();
  return Described(*job, now);
}

void Farm::SetPresent(const v1::Job& job, absl::Time now, const Place& place, v1::Job& shown) const {
  shown.set_waiting_for(WaitingFor(job, now, place));
  if (LacksDevice(job.id())) shown.mutable_progress()->set_trials_per_second(0);
}

v1::Job Farm::Described(const v1::Job& job, absl::Time now) const {
  v1::Job shown = job;
  SetPresent(job, now, JobsAhead(), shown);
  return shown;
}

v1::GetFarmResponse Farm::Counters(absl::Time now) const {
  v1::GetFarmResponse response;
  int online = 0;
  for (const auto& [id, agent] : devices_.agents()) {
    if (devices_.IsOnline(agent, now)) online += static_cast<int>(agent.devices.size());
  }
  response.set_devices_online(online);
  response.set_batches_queued(batches_.queued());
  response.set_batches_running(batches_.running());
  response.set_jobs_open(jobs_.open());
  response.set_results_accepted(accepted_);
  response.set_results_stale(stale_);
  response.set_results_recovered(recovered_);
  response.set_leases_lost(lost_);
  response.set_batches_given_up(batches_.given_up());
  return response;
}

void Farm::LoseLease(const std::string& lease_id, const std::string& why, absl::Time now) {
  const BatchQueue::Lease* lease = batches_.FindLease(lease_id);
  if (lease == nullptr) return;
  lost_ += 1;
  FreeDevice(*lease);
  if (Agent* agent = devices_.Find(lease->agent_id)) {
    if (auto device = agent->devices.find(lease->device_id); device != agent->devices.end()) device->second.losses += 1;
  }
  devices_.CountFailure(NameOf(lease->agent_id, lease->device_id), why, now);
  const std::string job_id = batches_.JobOf(*lease), device = NameOf(lease->agent_id, lease->device_id);
  batches_.Lose(lease_id, why, now);
  if (jobs_.Find(job_id)->spec().has_run()) LoseRun(job_id, device, why, now);
  for (const std::string& name : batches_.TakeForgivenDevices()) devices_.Forgive(name);
}

void Farm::LoseOrphans(Agent& agent, absl::Time now) {
  for (const std::string& lease_id : std::exchange(agent.orphaned_leases, {})) {
    LoseLease(lease_id, fmt::format("agent '{}' was restarted or took the device away", agent.id), now);
  }
}

// Drops the batches of jobs whose lease ended, and frees the devices that measured them.
void Farm::DropReleasedJobs() {
  for (const std::string& job_id : jobs_.TakeReleased()) batches_.DropJob(job_id);
  for (const BatchQueue::Lease& lease : batches_.TakeCancelled()) FreeDevice(lease);
}

void Farm::Tick(absl::Time now) {
  now = AdvanceClock(now);
  jobs_.Expire(now);
  for (auto& [id, agent] : devices_.agents()) {
    if (!devices_.IsSilent(agent, now)) continue;
    for (auto& [device_id, device] : agent.devices) {
      // A copy: losing the lease clears the device's.
      if (const std::string lease_id = device.lease_id; !lease_id.empty()) {
        LoseLease(lease_id, fmt::format("agent '{}' fell silent", id), now);
      }
    }
  }
  for (const std::string& lease_id : batches_.Expire(now, Served(now)))
    LoseLease(lease_id, "the visit took longer than its limit", now);
  EndRuns(now);
  RunWatches(now);
  if (storage_failure_.empty()) jobs_.Preempt(now, JobsUnservedForLong(now), UseByUser());  // it changes stored jobs
  CheckQueued(now);
  DropReleasedJobs();
  devices_.Expire(now);
}

}  // namespace hone::tracker
