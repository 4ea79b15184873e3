// SPDX-License-Identifier: Apache-2.0
#include "tests/farm/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tests/farm/builders.h"

namespace hone::tracker {
namespace {

constexpr absl::Duration kSimulatedTimeMax = absl::Hours(240);
constexpr int kTuners = 4;
constexpr int kOpenBatches = 3;

bool IsKiller(const std::string& candidate_id) { return candidate_id.find("killer") != std::string::npos; }

bool HasKiller(const v1::Batch& batch) {
  return std::any_of(batch.candidates().begin(), batch.candidates().end(),
                     [](const v1::Candidate& candidate) { return IsKiller(candidate.id()); });
}

}  // namespace

struct Simulation::FakeAgent {
  int boots = 0;
  std::string id, boot;
  uint64_t sequence = 0, epoch = 0;
  std::map<std::string, v1::Lease> running;
  std::map<std::string, v1::LeaseResult> finished;
  absl::Time last_answer;
  absl::Duration fence_after = absl::Seconds(15);
};

struct Simulation::FakeTuner {
  std::string id;
  v1::JobLease lease;
  std::map<std::string, std::string> open;            // batch id by client batch id
  std::map<std::string, v1::Batch> batches;           // by client batch id
  std::map<std::string, std::set<std::string>> done;  // finished client batch ids by job; stands in for the records
};

Simulation::Simulation(const SimulationOptions& options)
    : options_(options), random_(options.seed), lease_ids_(~options.seed) {}

Simulation::~Simulation() = default;

void Simulation::After(absl::Duration delay, Action action) {
  events_.push(Event{now_ + delay, ++next_order_, std::move(action)});
}

void Simulation::StartFarm() {
  const auto draw = [this] { return fmt::format("{:016x}{:016x}", lease_ids_.Next(), lease_ids_.Next()); };
  farm_ = std::make_unique<Farm>(FarmOptions{}, ++incarnation_, draw, "key");
  std::vector<v1::Job> jobs;
  for (const auto& [id, job] : stored_jobs_) jobs.push_back(job);
  farm_->Restore(std::move(jobs), {});
  leases_of_batch_.clear();
}

void Simulation::SubmitJobs() {
  for (int i = 0; i < options_.jobs; ++i) {
    v1::JobSpec spec = SpecOf(fmt::format("job{}", i), i % 3);
    if (options_.models) SetModel(spec);
    const v1::Job job = *farm_->SubmitJob(spec, TrackerNow());
    stored_jobs_[job.id()] = job;
  }
}

void Simulation::Run() {
  StartFarm();
  SubmitJobs();
  for (int i = 0; i < options_.agents; ++i) {
    agents_.push_back(std::make_unique<FakeAgent>());
    agents_.back()->id = fmt::format("agent{}", i);
    RestartAgent(i);
  }
  for (int i = 0; i < kTuners; ++i) {
    tuners_.push_back(std::make_unique<FakeTuner>());
    tuners_.back()->id = fmt::format("tuner{}", i);
    After(Delay(0, 5), [this, i] { TunerActs(i); });
  }
  Tick();
  const absl::Time end = now_ + kSimulatedTimeMax;
  while (!events_.empty() && now_ < end && violation.empty() && jobs_ended < options_.jobs) {
    const Event event = events_.top();
    events_.pop();
    now_ = std::max(now_, event.time);
    // The tracker stalls; at the end it handles everything that arrived meanwhile.
    if (Chance(options_.stall)) now_ += Delay(21, 120);
    if (Chance(options_.clock_jump)) clock_error_ += Delay(-3600, 3600);
    if (Chance(options_.restart_tracker)) {
      ++restarts;
      StartFarm();
    }
    event.action();
    for (const v1::Job* job : farm_->TakeChangedJobs()) stored_jobs_[job->id()] = *job;
    for (const Recordable& given_up : farm_->TakeGivenUp()) {
      for (const v1::CandidateOutcome& outcome : given_up.result.outcomes()) {
        recorded_[given_up.batch_id + "/" + outcome.candidate_id()] = "nobody";
      }
    }
    CheckInvariants();
    jobs_ended = static_cast<int>(std::count_if(stored_jobs_.begin(), stored_jobs_.end(),
                                                [](const auto& job) { return JobQueue::Ended(job.second); }));
  }
  counters = farm_->Counters(TrackerNow());
  for (const v1::Device& device : farm_->ListDevices(v1::ListDevicesRequest(), TrackerNow())) {
    quarantined += device.health() == v1::DEVICE_HEALTH_QUARANTINED;
  }
}

void Simulation::Tick() {
  farm_->Tick(TrackerNow());
  After(absl::Milliseconds(500), [this] { Tick(); });
}

void Simulation::RestartAgent(int index) {
  FakeAgent& agent = *agents_[index];
  agent.boot = fmt::format("boot{}", ++agent.boots);
  agent.sequence = agent.epoch = 0;
  agent.running.clear();
  agent.finished.clear();
  agent.last_answer = now_;
  After(Delay(0, 3), [this, index, boot = agent.boot] {
    if (agents_[index]->boot == boot) AgentCalls(index);
  });
}

// Records results durably before the farm accepts them, as the shell does.
std::optional<Farm::Answer> Simulation::Deliver(const v1::SynchronizeRequest& request) {
  for (const Recordable& record : farm_->AcceptableResults(request, TrackerNow())) {
    for (const v1::CandidateOutcome& outcome : record.result.outcomes()) {
      recorded_[record.batch_id + "/" + outcome.candidate_id()] = request.agent_id();
    }
  }
  absl::StatusOr<Farm::Answer> answer = farm_->Synchronize(request, TrackerNow());
  if (!answer.ok()) return std::nullopt;
  for (const v1::Lease& lease : answer->response.leases()) {
    if (!leases_seen_.insert(fmt::format("{}:{}", incarnation_, lease.reference().lease_id())).second) continue;
    const BatchQueue::Lease* live = farm_->batches().FindLease(lease.reference().lease_id());
    if (live == nullptr) {
      violation = "a lease was answered that is not live";
      continue;
    }
    batch_leases_max = std::max(batch_leases_max, ++leases_of_batch_[live->batch_id]);
  }
  return *std::move(answer);
}

void Simulation::AgentCalls(int index) {
  FakeAgent& agent = *agents_[index];
  if (now_ - agent.last_answer > agent.fence_after) agent.running.clear();
  v1::SynchronizeRequest request;
  request.set_protocol_version(v1::PROTOCOL_VERSION_1);
  request.set_agent_id(agent.id);
  request.set_boot_id(agent.boot);
  request.set_epoch(agent.epoch);
  request.set_sequence(++agent.sequence);
  *request.add_devices() = DeviceOf();
  for (const auto& [id, lease] : agent.running) *request.add_running() = lease.reference();
  for (const auto& [id, result] : agent.finished) *request.add_finished() = result;
  if (Chance(options_.double_call)) After(Delay(1, 60), [this, request] { Deliver(request); });
  const absl::Duration frozen = Chance(options_.freeze_agent) ? Delay(10, 300) : absl::ZeroDuration();
  const bool lost = Chance(options_.lose_call), answer_lost = Chance(options_.lose_call);
  After(Delay(0.001, 0.1), [this, index, request, lost, answer_lost, frozen] {
    const std::string boot = request.boot_id();
    const std::optional<Farm::Answer> answer = lost ? std::nullopt : Deliver(request);
    const bool heard = answer && !answer_lost;
    // Without an answer the agent's deadline passes; an agent without work polls again after a while.
    After((heard ? Delay(0.001, 0.1) : Delay(2, 10)) + frozen, [this, index, boot, heard, answer] {
      if (agents_[index]->boot != boot) return;
      if (heard) AgentHears(index, boot, answer->response);
      const bool busy = !agents_[index]->running.empty();
      After(busy ? absl::Seconds(4) : Delay(0.2, 1), [this, index, boot] {
        if (agents_[index]->boot == boot) AgentCalls(index);
      });
    });
  });
}

void Simulation::AgentHears(int index, const std::string& boot, const v1::SynchronizeResponse& response) {
  FakeAgent& agent = *agents_[index];
  agent.last_answer = now_;
  if (agent.epoch != response.epoch()) agent.running.clear();
  agent.epoch = response.epoch();
  for (const std::string& id : response.acked_lease_ids()) agent.finished.erase(id);
  for (const std::string& id : response.cancelled_lease_ids()) agent.running.erase(id);
  for (const v1::Lease& lease : response.leases()) {
    const std::string& id = lease.reference().lease_id();
    if (agent.finished.contains(id) || !agent.running.emplace(id, lease).second) continue;
    After(index < options_.holes ? absl::Milliseconds(1) : Delay(0.1, 10),
          [this, index, boot, lease] { AgentMeasures(index, boot, lease); });
  }
}

void Simulation::AgentMeasures(int index, const std::string& boot, const v1::Lease& lease) {
  FakeAgent& agent = *agents_[index];
  if (agent.boot != boot || !agent.running.contains(lease.reference().lease_id())) return;
  const bool hole = index < options_.holes;
  if (!hole && (HasKiller(lease.batch()) || Chance(options_.kill_agent))) return RestartAgent(index);
  agent.running.erase(lease.reference().lease_id());
  v1::LeaseResult& result = agent.finished[lease.reference().lease_id()];
  *result.mutable_lease() = lease.reference();
  if (hole) {
    result.mutable_result()->set_error("no space");
    result.mutable_result()->set_trouble(v1::TROUBLE_KIND_BATCH);
    return;
  }
  *result.mutable_result() = lease.batch().has_run() ? ReportOf(lease.batch().run()) : TimedResult(lease.batch());
}

void Simulation::TunerActs(int index) {
  FakeTuner& tuner = *tuners_[index];
  After(Delay(0.5, 2), [this, index] { TunerActs(index); });
  if (tuner.lease.lease_id().empty()) {
    v1::LeaseJobRequest request;
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_tuner_id(tuner.id);
    const v1::LeaseJobResponse response = *farm_->LeaseJob(request, TrackerNow());
    tuner.lease = response.lease();
    tuner.open.clear();
    return;
  }
  if (Chance(options_.kill_tuner)) {  // the new tuner has no memory, but reads the records
    tuner.lease.Clear();
    tuner.open.clear();
    return;
  }
  v1::WaitBatchRequest request;
  *request.mutable_lease() = tuner.lease;
  for (const auto& [client_id, batch_id] : tuner.open) request.add_batch_ids(batch_id);
  const absl::StatusOr<v1::WaitBatchResponse> response = farm_->WaitBatch(request, TrackerNow());
  if (!response.ok()) {
    if (response.status().code() == absl::StatusCode::kAborted) tuner.lease.Clear();
    tuner.open.clear();  // kNotFound: the tracker lost the batches, so submit them again
    return;
  }
  for (const v1::FinishedBatch& finished : response->finished()) {
    const auto open = std::find_if(tuner.open.begin(), tuner.open.end(),
                                   [&](const auto& entry) { return entry.second == finished.batch_id(); });
    TunerReads(tuner, open->first, finished.result());
    tuner.open.erase(open);
  }
  TunerSubmits(tuner);
}

void Simulation::TunerSubmits(FakeTuner& tuner) {
  std::set<std::string>& done = tuner.done[tuner.lease.job_id()];
  for (int i = 0; i < options_.batches_per_job && static_cast<int>(tuner.open.size()) < kOpenBatches; ++i) {
    const std::string client_id = fmt::format("{}/{}", tuner.lease.job_id(), i);
    if (done.contains(client_id) || tuner.open.contains(client_id)) continue;
    if (!tuner.batches.contains(client_id)) {
      v1::Batch batch = BatchOf(options_.candidates, client_id + "/");
      for (v1::Candidate& candidate : *batch.mutable_candidates()) {
        if (Chance(options_.killer_candidate)) candidate.set_id(candidate.id() + "killer");
      }
      tuner.batches[client_id] = std::move(batch);
    }
    if (!SubmitBatch(tuner, client_id)) return;
  }
  const std::string run_id = tuner.lease.job_id() + "/model";
  if (options_.models && tuner.open.empty() && !done.contains(run_id)) {
    tuner.batches[run_id] = ModelBatch();
    SubmitBatch(tuner, run_id);
    return;
  }
  if (!tuner.open.empty()) return;
  v1::CompleteJobRequest complete;
  *complete.mutable_lease() = tuner.lease;
  (void)farm_->CompleteJob(complete, TrackerNow());
  tuner.lease.Clear();
}

bool Simulation::SubmitBatch(FakeTuner& tuner, const std::string& client_id) {
  v1::SubmitBatchRequest request;
  *request.mutable_lease() = tuner.lease;
  request.set_client_batch_id(client_id);
  *request.mutable_batch() = tuner.batches.at(client_id);
  const absl::StatusOr<v1::SubmitBatchResponse> response = farm_->SubmitBatch(std::move(request), TrackerNow());
  if (!response.ok()) return false;
  tuner.open[client_id] = response->batch_id();
  return true;
}

void Simulation::TunerReads(FakeTuner& tuner, const std::string& client_id, const v1::BatchResult& result) {
  const std::string& batch_id = tuner.open.at(client_id);
  const v1::Batch& batch = tuner.batches.at(client_id);
  if (!tuner.done[tuner.lease.job_id()].insert(client_id).second)
    violation = "a batch was finished twice: " + client_id;
  if (!result.error().empty()) violation = "a batch failed: " + result.error();
  if (batch.has_run()) {
    const bool given_up = result.outcomes_size() == 1 && result.outcomes(0).outcome().has_failure();
    if (!given_up && result.run().packages_size() != 2) violation = "a model has no report: " + client_id;
    models_run += result.has_run();
    return;
  }
  if (result.outcomes_size() != batch.candidates_size()) {
    violation = fmt::format("batch {} has {} outcomes for {} candidates", client_id, result.outcomes_size(),
                            batch.candidates_size());
    return;
  }
  for (int i = 0; i < result.outcomes_size(); ++i) {
    const v1::CandidateOutcome& outcome = result.outcomes(i);
    ++accepted;
    if (outcome.candidate_id() != batch.candidates(i).id()) violation = "outcomes are out of order in " + client_id;
    if (!recorded_.contains(batch_id + "/" + outcome.candidate_id())) violation = "not recorded: " + batch_id;
    const bool lost = outcome.outcome().has_failure();
    if (!lost && IsKiller(outcome.candidate_id())) violation = "a killer was timed: " + outcome.candidate_id();
    lost_candidates += lost;
    wrongly_lost += lost && !IsKiller(outcome.candidate_id());
  }
}

void Simulation::CheckInvariants() {
  std::set<std::pair<std::string, int64_t>> pieces;
  std::map<std::string, std::string> device_of_lease;
  for (const auto& [agent_id, agent] : farm_->devices().agents()) {
    for (const auto& [id, device] : agent.devices) {
      if (!device.lease_id.empty()) device_of_lease[device.lease_id] = agent_id;
    }
  }
  for (const auto& [id, lease] : farm_->batches().leases()) {
    if (!pieces.emplace(lease.batch_id, lease.piece).second) violation = "two live leases of one piece: " + id;
    if (device_of_lease[id] != lease.agent_id) violation = "live lease without its device: " + id;
  }
  for (const auto& [lease_id, agent_id] : device_of_lease) {
    if (!farm_->batches().leases().contains(lease_id)) violation = "device holds a dead lease: " + lease_id;
  }
}

}  // namespace hone::tracker
