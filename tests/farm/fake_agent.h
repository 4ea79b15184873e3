// SPDX-License-Identifier: Apache-2.0
// A scripted agent, and a fixture with a farm in which a tuner has leased a job, for tests of the tracker's queue.
#ifndef HONE_TESTS_FARM_FAKE_AGENT_H_
#define HONE_TESTS_FARM_FAKE_AGENT_H_

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/farm/builders.h"
#include "tracker/queue/farm.h"

namespace hone::tracker {

// An agent without a process: it reports the devices and results that the test writes into `state`.
struct FakeAgent {
  v1::SynchronizeRequest state;
  // The offer that the shell looks for while it holds back the answer to this agent's call. nullopt: there is no work
  // yet.
  std::optional<v1::SynchronizeResponse> Offer(Farm& farm, absl::Time now) { return farm.Offer(state, now).value(); }
  FakeAgent(const std::string& id, const std::string& boot) {
    state.set_protocol_version(v1::PROTOCOL_VERSION_1);
    state.set_agent_id(id);
    state.set_boot_id(boot);
    *state.add_devices() = DeviceOf();
  }
  // Makes the agent's next call. After an answer its finished results are taken as delivered.
  absl::StatusOr<Farm::Answer> Sync(Farm& farm, absl::Time now) {
    state.set_sequence(state.sequence() + 1);
    absl::StatusOr<Farm::Answer> answer = farm.Synchronize(state, now);
    // If another process had claimed the agent's id, the agent repeats the call with its new epoch.
    if (answer.ok() && farm.devices().IsFirstClaim(state)) {
      state.set_epoch(answer->response.epoch());
      state.set_sequence(state.sequence() + 1);
      answer = farm.Synchronize(state, now);
    }
    if (answer.ok()) {
      state.set_epoch(answer->response.epoch());
      state.clear_finished();
    }
    return answer;
  }
  v1::GoldenCheck& Golden() { return *state.mutable_devices(0)->mutable_golden(); }
  // Reports one more passed check of the golden kernel, with a median of `seconds`.
  void Check(double seconds = 100e-6) {
    v1::GoldenCheck& golden = Golden();
    golden.set_number(golden.number() + 1);
    golden.set_passed(true);
    golden.set_kernel("golden");
    golden.set_median_seconds(seconds);
    golden.clear_temperature_c();
  }
  // Adds an error as the result of the lease's whole batch, for the next call.
  void Fail(const v1::Lease& lease, const std::string& error, v1::TroubleKind kind) {
    Finish(lease);
    v1::BatchResult& result = *state.mutable_finished(state.finished_size() - 1)->mutable_result();
    result.clear_outcomes();
    result.set_error(error);
    result.set_trouble(kind);
  }
  // Adds a result with a time for every candidate of the lease, for the next call.
  void Finish(const v1::Lease& lease) { Finish(lease, TimedResult(lease.batch())); }
  // Adds this result of the lease, for the next call.
  void Finish(const v1::Lease& lease, const v1::BatchResult& result) {
    state.clear_running();
    v1::LeaseResult* finished = state.add_finished();
    *finished->mutable_lease() = lease.reference();
    *finished->mutable_result() = result;
  }
};

class FarmFixture : public testing::Test {
 protected:
  void SetUp() override {
    job_id_ = farm_.SubmitJob(SpecOf("job"), now_)->id();
    v1::LeaseJobRequest request;
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_tuner_id("tuner");
    job_ = farm_.LeaseJob(request, now_)->lease();
  }
  absl::StatusOr<std::string> Submit(const v1::Batch& batch, const std::string& client_id) {
    v1::SubmitBatchRequest request;
    *request.mutable_lease() = job_;
    request.set_client_batch_id(client_id);
    *request.mutable_batch() = batch;
    absl::StatusOr<v1::SubmitBatchResponse> response = farm_.SubmitBatch(request, now_);
    if (!response.ok()) return response.status();
    return response->batch_id();
  }
  absl::StatusOr<v1::WaitBatchResponse> Wait(const std::string& batch_id) {
    v1::WaitBatchRequest request;
    *request.mutable_lease() = job_;
    request.add_batch_ids(batch_id);
    return farm_.WaitBatch(request, now_);
  }
  // Lets time pass in steps of a second with the ticks that the shell sends, while the tuner keeps its job's lease.
  void Pass(absl::Duration duration) {
    for (const absl::Time end = now_ + duration; now_ < end;) {
      now_ += absl::Seconds(1);
      v1::ReportProgressRequest alive;
      *alive.mutable_lease() = job_;
      (void)farm_.ReportProgress(alive, now_);
      farm_.Tick(now_);
    }
  }
  static std::vector<std::string> Ids(const v1::Lease& lease) {
    std::vector<std::string> ids;
    for (const v1::Candidate& candidate : lease.batch().candidates()) ids.push_back(candidate.id());
    return ids;
  }

  Farm farm_{FarmOptions{}, 1, CountingIds(), "key"};
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::string job_id_;
  v1::JobLease job_;
};

}  // namespace hone::tracker

#endif  // HONE_TESTS_FARM_FAKE_AGENT_H_
