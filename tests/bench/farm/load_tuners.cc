// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/farm/load_tuners.h"

#include <fmt/format.h>
#include <unistd.h>

#include <deque>
#include <set>

#include "base/digest.h"
#include "base/status.h"
#include "hone/v1/job.grpc.pb.h"
#include "hone/v1/tuner.grpc.pb.h"
#include "tests/farm/builders.h"
#include "transport/transport.h"

namespace hone::farm {
namespace {

constexpr size_t kOpenBatchesMax = 60;
constexpr size_t kScheduleBytes = 600, kDecisionsBytes = 120, kWorkloadBytes = 2000;

v1::JobLease LeaseNewJob(const Entrance& entrance, const std::shared_ptr<grpc::Channel>& channel,
                         const std::string& name) {
  v1::SubmitJobRequest submit;
  *submit.mutable_spec() = tracker::SpecOf(name);
  tracker::SetWorkload(*submit.mutable_spec()->mutable_workloads(0), std::string(kWorkloadBytes, 'w'));
  v1::Job job;
  grpc::ClientContext submit_context, lease_context;
  HONE_CHECK(v1::JobService::NewStub(entrance.Open(Role::kClient, name))->Submit(&submit_context, submit, &job).ok());
  v1::LeaseJobRequest lease;
  lease.set_protocol_version(v1::PROTOCOL_VERSION_1);
  lease.set_tuner_id(name);
  lease.mutable_max_wait()->set_seconds(10);
  v1::LeaseJobResponse response;
  HONE_CHECK(v1::TunerService::NewStub(channel)->LeaseJob(&lease_context, lease, &response).ok());
  HONE_CHECK(response.has_lease());
  return response.lease();
}

// One tuner: a thread that submits on schedule and fetches results in between.
class Tuner {
 public:
  Tuner(const Entrance& entrance, const std::string& name, int candidates, Tally* tally)
      : channel_(entrance.Open(Role::kTuner, name)),
        stub_(v1::TunerService::NewStub(channel_)),
        name_(name),
        lease_(LeaseNewJob(entrance, channel_, name)),
        tally_(tally),
        batch_(tracker::BatchOf(candidates)) {
    batch_.set_workload(std::string(kWorkloadBytes, 'w'));
    batch_.set_workload_digest(Sha256Hex(batch_.workload()));
    for (v1::Candidate& candidate : *batch_.mutable_candidates()) {
      candidate.set_schedule(std::string(kScheduleBytes, 's'));
      candidate.set_decisions(std::string(kDecisionsBytes, 'd'));
    }
  }

  bool Full() const { return open_.size() >= kOpenBatchesMax; }

  void Submit() {
    v1::SubmitBatchRequest request;
    *request.mutable_lease() = lease_;
    request.set_client_batch_id(fmt::format("{}-{}", name_, ++submitted_));
    *request.mutable_batch() = batch_;
    request.mutable_batch()->set_search_seed(tally_->Begin());
    v1::SubmitBatchResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub_->SubmitBatch(&context, request, &response);
    if (!status.ok()) return tally_->Failed(status);
    open_.insert(response.batch_id());
  }

  // Fetches finished batches. If there are none, waits for some until `until`.
  void Fetch(Clock::time_point until) {
    v1::WaitBatchRequest request;
    *request.mutable_lease() = lease_;
    for (const std::string& id : open_) request.add_batch_ids(id);
    for (const std::string& id : fetched_) request.add_acked_batch_ids(id);
    const auto wait = std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now()).count();
    request.mutable_max_wait()->set_nanos(static_cast<int32_t>(std::clamp<int64_t>(wait, 0, 900'000'000)));
    v1::WaitBatchResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub_->WaitBatch(&context, request, &response);
    if (!status.ok()) return tally_->Failed(status);
    fetched_.clear();
    for (const v1::FinishedBatch& finished : response.finished()) {
      open_.erase(finished.batch_id());
      fetched_.push_back(finished.batch_id());
    }
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::TunerService::Stub> stub_;
  const std::string name_;
  const v1::JobLease lease_;
  Tally* const tally_;
  v1::Batch batch_;
  int64_t submitted_ = 0;
  std::set<std::string> open_;
  std::vector<std::string> fetched_;
};

}  // namespace

LoadTuners::LoadTuners(const Entrance& entrance, int tuners, double outcomes_per_second, int candidates, Tally* tally)
    : tally_(tally) {
  for (int i = 0; i < tuners; ++i) {
    threads_.emplace_back([=, this] { Run(entrance, i, outcomes_per_second / candidates / tuners, candidates); });
  }
}

LoadTuners::~LoadTuners() {
  stopping_ = true;
  for (std::thread& thread : threads_) thread.join();
}

void LoadTuners::Run(const Entrance& entrance, int number, double batches_per_second, int candidates) {
  Tuner tuner(entrance, fmt::format("tuner{}-{}", getpid(), number), candidates, tally_);
  const auto pause = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / batches_per_second));
  Clock::time_point next = Clock::now();
  while (!stopping_) {
    if (Clock::now() >= next) {
      next += pause;
      tuner.Full() ? void(++behind_) : tuner.Submit();
    } else {
      tuner.Fetch(next);
      std::this_thread::sleep_until(std::min(next, Clock::now() + std::chrono::milliseconds(20)));
    }
    if (tuner.Full()) tuner.Fetch(Clock::now() + std::chrono::milliseconds(50));
  }
}

}  // namespace hone::farm
