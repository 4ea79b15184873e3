// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/tuner_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/identity.h"
#include "tests/farm/builders.h"
#include "tests/simulation/agent_machine.h"

namespace hone::simulation {
namespace {

constexpr int kOpenBatches = 3;
constexpr absl::Duration kDeadline = absl::Seconds(15);

}  // namespace

TunerMachine::TunerMachine(World* world, TrackerMachine* tracker, Checker* checker, std::string id,
                           const Workload& workload)
    : world_(world),
      tracker_(tracker),
      checker_(checker),
      id_(std::move(id)),
      workload_(workload),
      machine_(std::make_shared<Process>(Process{.name = id_})) {}

bool TunerMachine::Gone() const { return over_ || world_->process()->dead; }

void TunerMachine::Start() {
  if (over_) return;
  ++alive_;
  world_->Spawn(machine_, [this] {
    RunLoop();
    --alive_;
  });
}

void TunerMachine::Kill() {
  if (over_) return;
  world_->Note(id_ + " is killed");
  machine_->dead = true;
  machine_ = std::make_shared<Process>(*machine_);
  machine_->dead = false;
  world_->Spawn(
      machine_,
      [this] {
        if (world_->process()->dead) return;  // killed again before it began
        open_.clear();
        acked_.clear();
        Start();
      },
      world_->Between(0.5, 30));
}

void TunerMachine::StopForGood() {
  over_ = true;
  while (alive_ > 0) world_->Sleep(absl::Milliseconds(100));
}

void TunerMachine::RunLoop() {
  const std::string boot = RandomId();
  while (!Gone()) {
    v1::LeaseJobRequest request;
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_tuner_id(id_);
    request.set_boot_id(boot);
    request.mutable_max_wait()->set_seconds(10);
    const absl::Duration asked = world_->now();
    const auto lease = tracker_->Call<v1::LeaseJobRequest, v1::LeaseJobResponse>(
        line, request, absl::Seconds(25), {},
        [](tracker::Shell& shell, const v1::LeaseJobRequest& arrived, tracker::Present present,
           tracker::Done<v1::LeaseJobResponse> done) { shell.LeaseJob(arrived, std::move(present), std::move(done)); });
    if (Gone()) return;
    if (lease.ok() && lease->has_lease()) {
      checker_->JobSeen(lease->job(), asked);
      WorkOn(*lease);
    } else {
      world_->Sleep(world_->Between(0.2, 3));
    }
  }
}

void TunerMachine::WorkOn(const v1::LeaseJobResponse& lease) {
  open_.clear();
  acked_.clear();
  while (!Gone()) {
    if (!Submit(lease)) return;
    if (Gone()) return;
    if (open_.empty() && static_cast<int>(done_[lease.job().id()].size()) == workload_.batches) {
      return Complete(lease.lease(), false);
    }
    if (!Await(lease)) return;
    if (world_->Chance(gives_back) && !Gone()) return Complete(lease.lease(), true);
  }
}

TunerMachine::Open TunerMachine::NewBatch(const v1::Job& job, int number) {
  Open open;
  open.client_id = fmt::format("{}:{}", job.id(), number);
  open.batch = tracker::BatchOf(workload_.candidates, fmt::format("{}:{}:", job.id(), number));
  open.batch.mutable_policy()->set_reference_timeout_seconds(1);
  open.batch.mutable_policy()->set_timeout_seconds(0.1);
  open.batch.set_priority(job.spec().priority());
  const auto kind = job.spec().labels().find("kind");
  if (kind != job.spec().labels().end()) (*open.batch.mutable_requirements()->mutable_labels())["kind"] = kind->second;
  open.may_fail = world_->Chance(workload_.poison);
  for (v1::Candidate& candidate : *open.batch.mutable_candidates()) {
    const char* does = open.may_fail                     ? kPoison
                       : world_->Chance(workload_.kills) ? kKills
                       : world_->Chance(workload_.fails) ? kFails
                                                         : "";
    candidate.set_id(candidate.id() + does);
    candidate.set_schedule("parallel");
  }
  return open;
}

bool TunerMachine::Submit(const v1::LeaseJobResponse& lease) {
  const std::string& job_id = lease.job().id();
  for (int i = 0; i < workload_.batches && static_cast<int>(open_.size()) < kOpenBatches; ++i) {
    if (done_[job_id].contains(i)) continue;
    open_.try_emplace(fmt::format("{}:{}", job_id, i), NewBatch(lease.job(), i));
  }
  for (auto& [client_id, open] : open_) {
    if (!open.batch_id.empty()) continue;
    v1::SubmitBatchRequest request;
    *request.mutable_lease() = lease.lease();
    request.set_client_batch_id(client_id);
    *request.mutable_batch() = open.batch;
    const auto answer = tracker_->Call<v1::SubmitBatchRequest, v1::SubmitBatchResponse>(
        line, request, kDeadline, {},
        [](tracker::Shell& shell, const v1::SubmitBatchRequest& arrived, const tracker::Present&,
           tracker::Done<v1::SubmitBatchResponse> done) { shell.SubmitBatch(arrived, std::move(done)); });
    if (Gone()) return false;
    if (absl::IsAborted(answer.status())) return false;
    if (answer.ok()) {
      open.batch_id = answer->batch_id();
    } else {
      world_->Sleep(world_->Between(0.2, 2));
      if (Gone()) return false;
    }
  }
  return true;
}

bool TunerMachine::Await(const v1::LeaseJobResponse& lease) {
  v1::WaitBatchRequest request;
  *request.mutable_lease() = lease.lease();
  for (const auto& [client_id, open] : open_) {
    if (!open.batch_id.empty()) request.add_batch_ids(open.batch_id);
  }
  for (const std::string& id : acked_) request.add_acked_batch_ids(id);
  request.mutable_max_wait()->set_seconds(5);
  const auto answer = tracker_->Call<v1::WaitBatchRequest, v1::WaitBatchResponse>(
      line, request, absl::Seconds(5) + kDeadline, {},
      [](tracker::Shell& shell, const v1::WaitBatchRequest& arrived, tracker::Present present,
         tracker::Done<v1::WaitBatchResponse> done) { shell.WaitBatch(arrived, std::move(present), std::move(done)); });
  if (Gone()) return false;
  if (absl::IsAborted(answer.status())) return false;
  if (absl::IsNotFound(answer.status())) {  // the tracker lost the batches: submit them again
    for (auto& [client_id, open] : open_) open.batch_id.clear();
  }
  if (!answer.ok()) {
    world_->Sleep(world_->Between(0.2, 2));
    return true;
  }
  if (answer->cancelled()) return false;
  acked_.clear();
  for (const v1::FinishedBatch& finished : answer->finished()) {
    const auto open = std::find_if(open_.begin(), open_.end(),
                                   [&](const auto& entry) { return entry.second.batch_id == finished.batch_id(); });
    if (open == open_.end()) continue;
    checker_->BatchResultReceived(finished.batch_id(), open->second.batch, finished.result(), open->second.may_fail);
    const std::string number = open->first.substr(open->first.find(':') + 1);
    done_[lease.job().id()].insert(std::stoi(number));
    acked_.insert(finished.batch_id());
    open_.erase(open);
  }
  if (answer->finished_size() > 0) Report(lease);
  return true;
}

// Reports that trials were made. Without progress a job ends after several of its tuners were lost.
void TunerMachine::Report(const v1::LeaseJobResponse& lease) {
  v1::ReportProgressRequest request;
  *request.mutable_lease() = lease.lease();
  request.mutable_progress()->set_trials(++trials_);
  (void)tracker_->Call<v1::ReportProgressRequest, v1::ReportProgressResponse>(
      line, request, kDeadline, {},
      [](tracker::Shell& shell, const v1::ReportProgressRequest& arrived, const tracker::Present&,
         tracker::Done<v1::ReportProgressResponse> done) { shell.ReportProgress(arrived, std::move(done)); });
}

void TunerMachine::Complete(const v1::JobLease& lease, bool returned) {
  v1::CompleteJobRequest request;
  *request.mutable_lease() = lease;
  request.set_returned(returned);
  for (int i = 0; i < 1000 && !Gone(); ++i) {
    const auto answer = tracker_->Call<v1::CompleteJobRequest, v1::CompleteJobResponse>(
        line, request, kDeadline, {},
        [](tracker::Shell& shell, const v1::CompleteJobRequest& arrived, const tracker::Present&,
           tracker::Done<v1::CompleteJobResponse> done) { shell.CompleteJob(arrived, std::move(done)); });
    if (answer.ok() || absl::IsAborted(answer.status()) || absl::IsNotFound(answer.status())) return;
    world_->Sleep(world_->Between(0.5, 2));
  }
}

}  // namespace hone::simulation
