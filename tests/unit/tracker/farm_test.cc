// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/farm.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/protocol_version.h"
#include "records/winner.h"
#include "tests/farm/builders.h"
#include "tests/farm/fake_agent.h"
#include "tracker/convert.h"

namespace hone::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using FarmTest = FarmFixture;

TEST_F(FarmTest, BatchIsLeasedMeasuredAndAnsweredOnce) {
  FakeAgent agent("a", "1");
  const Farm::Answer idle = agent.Sync(farm_, now_).value();
  EXPECT_TRUE(idle.news);  // the agent learns its epoch
  EXPECT_EQ(idle.hold, absl::Seconds(20));
  EXPECT_FALSE(agent.Sync(farm_, now_)->news);
  const std::string batch = Submit(BatchOf(2), "b1").value();
  EXPECT_TRUE(Wait(batch)->finished().empty());
  const std::optional<v1::SynchronizeResponse> offer = agent.Offer(farm_, now_);
  ASSERT_TRUE(offer.has_value());
  ASSERT_EQ(offer->leases_size(), 1);
  EXPECT_FALSE(agent.Offer(farm_, now_).has_value());
  agent.Finish(offer->leases(0));
  EXPECT_EQ(farm_.AcceptableResults(agent.state, now_).size(), 0u) << "its sequence number was used before";
  agent.state.set_sequence(agent.state.sequence() + 1);
  const std::vector<Recordable> records = farm_.AcceptableResults(agent.state, now_);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].batch_id, batch);
  EXPECT_EQ(records[0].result.device().digest(), "f");
  EXPECT_THAT((std::vector{records[0].model, records[0].title, records[0].nodes}),
              ElementsAre("job", "conv2d 8x8x4", "conv1, relu1"));
  const Farm::Answer answer = agent.Sync(farm_, now_).value();
  EXPECT_THAT(answer.response.acked_lease_ids(), ElementsAre(offer->leases(0).reference().lease_id()));
  const v1::WaitBatchResponse finished = Wait(batch).value();
  ASSERT_EQ(finished.finished_size(), 1);
  EXPECT_EQ(finished.finished(0).result().outcomes_size(), 2);
  EXPECT_EQ(finished.finished(0).result().device_name(), "a/cpu");
  v1::WaitBatchRequest ack;
  *ack.mutable_lease() = job_;
  ack.add_acked_batch_ids(batch);
  ASSERT_TRUE(farm_.WaitBatch(ack, now_).ok());
  EXPECT_EQ(Wait(batch).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(FarmTest, ATunersCallUnderAnotherEpochIsRefused) {
  const std::string batch = Submit(BatchOf(1), "b1").value();
  const v1::JobLease live = job_;
  job_.set_epoch(live.epoch() - 1);
  EXPECT_EQ(Submit(BatchOf(1), "b2").status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Wait(batch).status().code(), absl::StatusCode::kAborted);
  v1::ReportProgressRequest report;
  *report.mutable_lease() = job_;
  EXPECT_EQ(farm_.ReportProgress(report, now_).status().code(), absl::StatusCode::kAborted);
  report.mutable_progress()->set_trials(7);
  EXPECT_EQ(farm_.ReportProgress(report, now_).status().code(), absl::StatusCode::kAborted);
  v1::CompleteJobRequest complete;
  *complete.mutable_lease() = job_;
  EXPECT_EQ(farm_.CompleteJob(complete, now_).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(farm_.GetJob(job_id_, now_)->state(), v1::JOB_STATE_RUNNING);
  *complete.mutable_lease() = live;
  EXPECT_TRUE(farm_.CompleteJob(complete, now_).ok());
}

TEST_F(FarmTest, AnAgentsLeaseIsItsIdItsEpochAndItsAgent) {
  const std::string batch = Submit(BatchOf(1), "b1").value();
  FakeAgent agent("a", "1"), thief("b", "1");
  const v1::Lease lease = agent.Sync(farm_, now_)->response.leases(0);
  ASSERT_TRUE(thief.Sync(farm_, now_).ok());
  v1::Lease stale = lease, guessed = lease;
  stale.mutable_reference()->set_epoch(lease.reference().epoch() + 1);
  guessed.mutable_reference()->set_lease_id(CountingIds()());
  for (const auto& [who, claimed] : {std::pair(&agent, stale), std::pair(&agent, guessed), std::pair(&thief, lease)}) {
    *who->state.add_running() = claimed.reference();
    EXPECT_THAT(who->Sync(farm_, now_)->response.cancelled_lease_ids(), ElementsAre(claimed.reference().lease_id()));
    who->Finish(claimed);
    who->state.set_sequence(who->state.sequence() + 1);
    EXPECT_TRUE(farm_.AcceptableResults(who->state, now_).empty());
    ASSERT_TRUE(who->Sync(farm_, now_).ok());
    EXPECT_TRUE(Wait(batch)->finished().empty());
  }
  EXPECT_EQ(farm_.Counters(now_).results_stale(), 3);
  agent.Finish(lease);
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  EXPECT_EQ(Wait(batch)->finished_size(), 1);
}

TEST_F(FarmTest, AVisitGetsTheTimeThatIsLeft) {
  v1::Batch batch = BatchOf(2);
  batch.set_useful_seconds(10);
  FakeAgent agent("a", "1");
  Submit(BatchOf(1), "b0").value();
  const v1::Lease before = agent.Sync(farm_, now_)->response.leases(0);
  const std::string id = Submit(batch, "b1").value();
  Pass(absl::Seconds(4));  // the job's other batch is measured in this time
  agent.Finish(before);
  const v1::Lease lease = agent.Sync(farm_, now_)->response.leases(0);
  EXPECT_DOUBLE_EQ(lease.batch().policy().visit_seconds(), 6);
  agent.Finish(lease);
  agent.state.mutable_finished(0)->mutable_result()->mutable_outcomes()->RemoveLast();
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  const v1::BatchResult result = Wait(id)->finished(0).result();
  EXPECT_EQ(result.error(), "");
  ASSERT_EQ(result.outcomes_size(), 1);
  EXPECT_EQ(result.outcomes(0).candidate_id(), lease.batch().candidates(0).id());
}

TEST_F(FarmTest, AMissedLeaseIsSentAgainAndARunningOneIsNot) {
  FakeAgent agent("a", "1");
  Submit(BatchOf(1), "b1").value();
  const v1::Lease first = agent.Sync(farm_, now_)->response.leases(0);
  const Farm::Answer again = agent.Sync(farm_, now_).value();
  ASSERT_EQ(again.response.leases_size(), 1);
  EXPECT_EQ(again.response.leases(0).reference().lease_id(), first.reference().lease_id());
  *agent.state.add_running() = first.reference();
  const Farm::Answer busy = agent.Sync(farm_, now_).value();
  EXPECT_EQ(busy.response.leases_size(), 0);
  EXPECT_EQ(busy.hold, absl::ZeroDuration());
}

TEST_F(FarmTest, StaleLeaseIsRefusedAfterTheDeviceWasSilent) {
  FakeAgent first("a", "1"), second("b", "1");
  const std::string batch = Submit(BatchOf(1), "b1").value();
  const v1::Lease old = first.Sync(farm_, now_)->response.leases(0);
  Pass(absl::Seconds(22));
  const v1::Lease current = second.Sync(farm_, now_)->response.leases(0);
  EXPECT_EQ(current.attempt(), 2);
  first.Finish(old);
  const Farm::Answer late = first.Sync(farm_, now_).value();
  EXPECT_THAT(late.response.acked_lease_ids(), ElementsAre(old.reference().lease_id()));  // the agent deletes it
  EXPECT_TRUE(Wait(batch)->finished().empty());
  EXPECT_EQ(farm_.Counters(now_).results_stale(), 1);
  second.Finish(current);
  second.state.set_sequence(second.state.sequence() + 1);
  const Recordable recordable = farm_.AcceptableResults(second.state, now_).at(0);
  EXPECT_EQ(recordable.batch_id, batch);
  EXPECT_EQ(recordable.visit_id, batch + ".2") << "nobody compares it with what the first measured";
  ASSERT_TRUE(second.Sync(farm_, now_).ok());
  EXPECT_EQ(Wait(batch)->finished(0).result().device_name(), "b/cpu");
}

TEST_F(FarmTest, RestartedAgentLosesItsLeaseAtOnceAndTheOldProcessIsRefused) {
  FakeAgent old_process("a", "1"), new_process("a", "2");
  Submit(BatchOf(1), "b1").value();
  const v1::Lease lease = old_process.Sync(farm_, now_)->response.leases(0);
  const v1::Lease next = new_process.Sync(farm_, now_)->response.leases(0);
  EXPECT_EQ(next.attempt(), 2);
  EXPECT_GT(next.reference().epoch(), lease.reference().epoch());
  EXPECT_EQ(old_process.Sync(farm_, now_).status().code(), absl::StatusCode::kAborted);
}

TEST_F(FarmTest, ACallOlderThanTheNewestIsRefused) {
  FakeAgent agent("a", "1");
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  v1::SynchronizeRequest duplicate = agent.state;
  EXPECT_EQ(farm_.Synchronize(duplicate, now_).status().code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  Submit(BatchOf(1), "b1").value();
  EXPECT_EQ(farm_.Offer(duplicate, now_).status().code(), absl::StatusCode::kAborted) << "nobody reads its answer";
  EXPECT_EQ(agent.Offer(farm_, now_)->leases_size(), 1);
}

TEST_F(FarmTest, AnUnknownProtocolVersionIsRefusedWithAdvice) {
  FakeAgent agent("a", "1");
  agent.state.set_protocol_version(v1::PROTOCOL_VERSION_UNSPECIFIED);
  const absl::Status status = agent.Sync(farm_, now_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("agent 'a' uses protocol version 0"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("update the agent to the version of the tracker"));
  agent.state.set_protocol_version(static_cast<v1::ProtocolVersion>(kProtocolVersion + 1));
  EXPECT_THAT(std::string(agent.Sync(farm_, now_).status().message()), HasSubstr("update the tracker"));
  v1::LeaseJobRequest tuner;
  tuner.set_tuner_id("t");
  EXPECT_THAT(std::string(farm_.LeaseJob(tuner, now_).status().message()), HasSubstr("update the tuner"));
}

// The first version of the protocol had no leaving, labels, golden kernel, sandbox or receipts, and a CPU without a
// target. If fields that it lacks become required, the protocol's version and this test must change.
TEST_F(FarmTest, AnAgentOfTheFirstVersionIsServed) {
  v1::SynchronizeRequest request;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    protocol_version: PROTOCOL_VERSION_1 agent_id: "old" boot_id: "1" sequence: 1 agent_version: "0.0.1"
    devices { device_id: "cpu" fingerprint { architecture: "x86_64" text: "x" digest: "d" } threads: 64
              self_test { passed: true } }
    max_wait { seconds: 20 })",
                                                            &request));
  request.mutable_devices(0)->mutable_fingerprint()->set_architecture(DeviceOf().fingerprint().architecture());
  const std::string batch = Submit(BatchOf(2), "b1").value();
  const absl::StatusOr<Farm::Answer> leased = farm_.Synchronize(request, now_);
  ASSERT_TRUE(leased.ok()) << leased.status();
  ASSERT_EQ(leased->response.leases_size(), 1);
  const v1::Lease& lease = leased->response.leases(0);
  request.set_epoch(leased->response.epoch());
  request.set_sequence(2);
  *request.add_running() = lease.reference();
  ASSERT_TRUE(farm_.Synchronize(request, now_).ok());
  request.set_sequence(3);
  request.clear_running();
  v1::LeaseResult& finished = *request.add_finished();
  *finished.mutable_lease() = lease.reference();
  *finished.mutable_result() = TimedResult(lease.batch());
  const absl::StatusOr<Farm::Answer> done = farm_.Synchronize(request, now_);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(Wait(batch)->finished_size(), 1);
}

TEST_F(FarmTest, LostWorkPrefersAnotherDevice) {
  FakeAgent first("a", "1"), second("b", "1");
  Submit(BatchOf(1), "b1").value();
  ASSERT_EQ(first.Sync(farm_, now_)->response.leases_size(), 1);
  ASSERT_TRUE(second.Sync(farm_, now_).ok());
  FakeAgent restarted("a", "2");
  EXPECT_EQ(restarted.Sync(farm_, now_)->response.leases_size(), 0);
  EXPECT_EQ(second.Sync(farm_, now_)->response.leases_size(), 1);
}

TEST_F(FarmTest, CandidateThatKillsDevicesIsFoundAndTheOthersAreMeasured) {
  const std::string batch = Submit(BatchOf(8), "b1").value();
  int boot = 0, losses = 0;
  FarmOptions options;
  for (int step = 0; step < 100 && Wait(batch)->finished().empty(); ++step) {
    FakeAgent agent("a", std::to_string(++boot));
    farm_.Undrain("a");  // an operator overrides the quarantine
    for (;;) {
      const Farm::Answer answer = agent.Sync(farm_, now_).value();
      if (answer.response.leases().empty()) break;
      const v1::Lease lease = answer.response.leases(0);
      const std::vector<std::string> ids = Ids(lease);
      if (std::find(ids.begin(), ids.end(), "c5") != ids.end()) {
        ++losses;
        break;  // the next boot starts
      }
      agent.Finish(lease);
    }
  }
  const v1::BatchResult result = Wait(batch)->finished(0).result();
  ASSERT_EQ(result.outcomes_size(), 8);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(result.outcomes(i).candidate_id(), fmt::format("c{}", i));
    EXPECT_EQ(result.outcomes(i).outcome().has_failure(), i == 5) << i;
  }
  EXPECT_EQ(result.outcomes(5).outcome().failure().kind(), v1::FAILURE_KIND_LOST_DEVICE);
  EXPECT_LE(losses, options.batches.losses_max);
  const std::vector<Recordable> given_up = farm_.TakeGivenUp();
  ASSERT_EQ(given_up.size(), 1u);
  EXPECT_EQ(given_up[0].result.outcomes(0).candidate_id(), "c5");
  EXPECT_EQ(given_up[0].result.device_name(), "a/cpu");
  EXPECT_EQ(given_up[0].result.device().digest(), "f");
}

// Two devices took the repeats, so no repeat was timed beside a repeat of the other device.
TEST_F(FarmTest, ASplitConfirmationConfirmsNothing) {
  v1::Batch batch = BatchOf(2);
  batch.set_final(true);
  batch.mutable_candidates(0)->set_is_default(true);
  for (v1::Candidate& candidate : *batch.mutable_candidates()) candidate.set_schedule("of " + candidate.id());
  const std::string id = Submit(batch, "b1").value();
  for (const char* boot : {"1", "2", "3", "4"}) {
    const int leases = std::string(boot) == "4" ? 0 : 1;  // boot 4 is in quarantine
    ASSERT_EQ(FakeAgent("a", boot).Sync(farm_, now_)->response.leases_size(), leases) << boot;
  }
  FakeAgent slow("slow", "1"), fast("fast", "1");
  const std::map<FakeAgent*, v1::Lease> halves = {{&slow, slow.Sync(farm_, now_)->response.leases(0)},
                                                  {&fast, fast.Sync(farm_, now_)->response.leases(0)}};
  std::vector<records::StoredRecord> rows;
  for (FakeAgent* agent : {&slow, &fast}) {
    ASSERT_EQ(halves.at(agent).batch().candidates_size(), 1);
    EXPECT_FALSE(halves.at(agent).batch().final());
    agent->Finish(halves.at(agent));
    v1::BatchResult& result = *agent->state.mutable_finished(0)->mutable_result();
    v1::Timing& timing = *result.mutable_outcomes(0)->mutable_outcome()->mutable_timing();
    timing.clear_seconds();
    for (int i = 0; i < 10; ++i) timing.add_seconds(agent == &slow ? 2e-3 : 1e-3);
    agent->state.set_sequence(agent->state.sequence() + 1);
    const auto row = static_cast<int64_t>(rows.size());
    rows.push_back({row, ToRecords("farm", farm_.AcceptableResults(agent->state, now_).at(0)).at(0)});
    ASSERT_TRUE(agent->Sync(farm_, now_).ok());
  }
  EXPECT_EQ(rows[0].record.measurement_id, "farm/" + id + "/c0");
  EXPECT_EQ(rows[1].record.measurement_id, "farm/" + id + "/c1");
  EXPECT_NE(rows[0].record.batch_id, rows[1].record.batch_id);
  const std::vector<records::Contender> contenders = {ContenderOf(rows[0]), ContenderOf(rows[1])};
  EXPECT_FALSE(records::FindWinner(contenders)->confirmed);
  const v1::BatchResult told = Wait(id)->finished(0).result();
  ASSERT_EQ(told.outcomes_size(), 2);
  for (const v1::CandidateOutcome& outcome : told.outcomes()) {
    const v1::Timing& timing = outcome.outcome().timing();
    EXPECT_EQ(timing.seconds_size(), 10);
    EXPECT_FALSE(records::HasInterleavedRounds(10, timing.first_interleaved()))
        << "nor does the tuner conclude from them";
  }
}

TEST_F(FarmTest, LossesInARowLeadToAQuarantine) {
  for (int i = 0; i < 3; ++i) {
    FakeAgent agent("a", std::to_string(i));
    Submit(BatchOf(1), fmt::format("b{}", i)).value();
    ASSERT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 1) << i;
  }
  FakeAgent agent("a", "last");
  EXPECT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 0);
  ASSERT_EQ(farm_.ListDevices(v1::ListDevicesRequest(), now_).size(), 1u);
  EXPECT_EQ(farm_.ListDevices(v1::ListDevicesRequest(), now_)[0].health(), v1::DEVICE_HEALTH_QUARANTINED);
  EXPECT_THAT(farm_.ListDevices(v1::ListDevicesRequest(), now_)[0].health_reason(), HasSubstr("3 failures in a row"));
  Pass(absl::Minutes(11));
  EXPECT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 1);
}

TEST_F(FarmTest, ListsOnlyTheDevicesThatMayTakeABatch) {
  FakeAgent agent("a", "1");
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  v1::ListDevicesRequest request;
  request.mutable_for_work()->set_threads(1);
  EXPECT_EQ(farm_.ListDevices(request, now_).size(), 1u);
  request.mutable_for_work()->set_fingerprint_digest("of another kind");
  EXPECT_TRUE(farm_.ListDevices(request, now_).empty());
  request.mutable_for_work()->clear_fingerprint_digest();
  farm_.Drain("a", "for the night");
  EXPECT_TRUE(farm_.ListDevices(request, now_).empty());
  EXPECT_EQ(farm_.ListDevices(v1::ListDevicesRequest(), now_).size(), 1u);
}

TEST_F(FarmTest, FailedSelfTestGetsNoWorkAndSaysWhy) {
  FakeAgent agent("a", "1");
  agent.state.mutable_devices(0)->mutable_self_test()->set_passed(false);
  agent.state.mutable_devices(0)->mutable_self_test()->set_reason("clock is throttled");
  Submit(BatchOf(1), "b1").value();
  EXPECT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 0);
  EXPECT_THAT(farm_.GetJob(job_id_, now_)->waiting_for(), HasSubstr("clock is throttled"));
  agent.state.mutable_devices(0)->mutable_self_test()->set_passed(true);
  EXPECT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 1);
  EXPECT_EQ(farm_.GetJob(job_id_, now_)->waiting_for(), "");
}

TEST_F(FarmTest, DrainFinishesWhatRunsAndIsNoLoss) {
  FakeAgent agent("a", "1");
  const std::string batch = Submit(BatchOf(1), "b1").value();
  const v1::Lease lease = agent.Sync(farm_, now_)->response.leases(0);
  farm_.Drain("a", "new fan");
  Submit(BatchOf(1), "b2").value();
  agent.Finish(lease);
  const Farm::Answer answer = agent.Sync(farm_, now_).value();
  EXPECT_TRUE(answer.response.drained());
  EXPECT_EQ(answer.response.leases_size(), 0);
  EXPECT_EQ(Wait(batch)->finished_size(), 1);
  EXPECT_FALSE(agent.Offer(farm_, now_).has_value());
  farm_.Undrain("a");
  EXPECT_EQ(agent.Offer(farm_, now_)->leases_size(), 1);
}

TEST_F(FarmTest, RequirementsSelectTheDevice) {
  FakeAgent agent("a", "1");
  v1::Batch batch = BatchOf(1);
  batch.mutable_requirements()->set_architecture("aarch64");
  (*batch.mutable_requirements()->mutable_labels())["room"] = "lab";
  Submit(batch, "b1").value();
  EXPECT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 0);
  EXPECT_THAT(farm_.GetJob(job_id_, now_)->waiting_for(),
              HasSubstr("a device for architecture aarch64, label room=lab"));
  agent.state.mutable_devices(0)->mutable_fingerprint()->set_architecture("aarch64");
  (*agent.state.mutable_devices(0)->mutable_labels())["room"] = "lab";
  EXPECT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 1);
}

TEST_F(FarmTest, PriorityGoesFirst) {
  Submit(BatchOf(1, "early"), "b1").value();
  ASSERT_TRUE(farm_.SubmitJob(SpecOf("urgent", 3), now_).ok());
  v1::LeaseJobRequest request;
  request.set_protocol_version(v1::PROTOCOL_VERSION_1);
  request.set_tuner_id("other");
  v1::SubmitBatchRequest urgent;
  *urgent.mutable_lease() = farm_.LeaseJob(request, now_)->lease();
  urgent.set_client_batch_id("b2");
  *urgent.mutable_batch() = BatchOf(1, "urgent");
  ASSERT_TRUE(farm_.SubmitBatch(urgent, now_).ok());
  FakeAgent agent("a", "1");
  EXPECT_THAT(Ids(agent.Sync(farm_, now_)->response.leases(0)), ElementsAre("urgent0"));
}

TEST_F(FarmTest, CancelledJobStopsTheVisit) {
  FakeAgent agent("a", "1");
  Submit(BatchOf(1), "b1").value();
  const v1::Lease lease = agent.Sync(farm_, now_)->response.leases(0);
  *agent.state.add_running() = lease.reference();
  ASSERT_TRUE(farm_.CancelJob(job_id_, now_).ok());
  EXPECT_THAT(agent.Sync(farm_, now_)->response.cancelled_lease_ids(), ElementsAre(lease.reference().lease_id()));
  EXPECT_TRUE(Wait("any")->cancelled());
  EXPECT_EQ(farm_.Counters(now_).leases_lost(), 0);
}

TEST_F(FarmTest, AnOverdueVisitIsGivenToAnotherDevice) {
  FakeAgent agent("a", "1");
  Submit(BatchOf(1), "b1").value();
  const v1::Lease lease = agent.Sync(farm_, now_)->response.leases(0);
  *agent.state.add_running() = lease.reference();
  for (int i = 0; i < 100; ++i) {
    Pass(absl::Seconds(4));
    const Farm::Answer answer = agent.Sync(farm_, now_).value();
    if (answer.response.cancelled_lease_ids().empty()) continue;
    EXPECT_GE(i * 4, lease.run_limit().seconds() - 4);
    EXPECT_EQ(answer.response.leases(0).attempt(), 2);
    return;
  }
  FAIL() << "the lease was never given up";
}

TEST_F(FarmTest, ABatchIsOfAWorkloadThatItsJobHas) {
  v1::WorkloadSpec of_others;
  SetWorkload(of_others, "of others");
  v1::Batch batch = BatchOf(1);
  batch.set_workload(of_others.text());
  EXPECT_EQ(Submit(batch, "text").status().code(), absl::StatusCode::kInvalidArgument);
  batch.set_workload_digest(of_others.digest());
  const absl::Status refused = Submit(batch, "workload").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("not among the workloads of its job"));
  batch = BatchOf(1);
  batch.set_sizes("n0=1");
  EXPECT_EQ(Submit(batch, "sizes").status().code(), absl::StatusCode::kInvalidArgument) << "the job has no points";
  EXPECT_TRUE(Submit(BatchOf(1), "its own").ok());
}

TEST_F(FarmTest, RefusesInvalidBatches) {
  const auto error = [&](auto&& breakage) {
    v1::Batch batch = BatchOf(2);
    breakage(batch);
    const absl::Status status = Submit(batch, "x").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(error([](v1::Batch& b) { b.clear_candidates(); }), HasSubstr("no candidates"));
  EXPECT_THAT(error([](v1::Batch& b) { b.clear_artifact(); }), HasSubstr("artifact"));
  EXPECT_THAT(error([](v1::Batch& b) { b.clear_buffers(); }), HasSubstr("no output"));
  EXPECT_THAT(error([](v1::Batch& b) { b.set_threads(0); }), HasSubstr("thread"));
  EXPECT_THAT(error([](v1::Batch& b) { b.mutable_candidates(1)->set_id("c0"); }), HasSubstr("used twice"));
  EXPECT_THAT(error([](v1::Batch& b) { b.mutable_reference()->clear_interface(); }), HasSubstr("the reference"));
  EXPECT_THAT(error([](v1::Batch& b) { b.mutable_policy()->set_timeout_seconds(1e9); }), HasSubstr("policy"));
  EXPECT_THAT(error([](v1::Batch& b) { b.mutable_policy()->set_final_seconds(std::nan("")); }), HasSubstr("policy"));
  EXPECT_THAT(error([](v1::Batch& b) { b.mutable_policy()->set_reference_timeout_seconds(-1); }), HasSubstr("policy"));
  EXPECT_THAT(error([](v1::Batch& b) { b.mutable_requirements()->set_target(std::string(1 << 20, 'x')); }),
              HasSubstr("conditions"));
  EXPECT_THAT(error([](v1::Batch& b) { b.mutable_candidates(0)->mutable_kernel()->set_code_bytes(4); }),
              HasSubstr("outside the artifact"));
  EXPECT_THAT(error([](v1::Batch& b) {
                *b.add_buffers() = b.buffers(0);
                b.mutable_buffers(1)->set_role(v1::Buffer::ROLE_INPUT);
              }),
              HasSubstr("outputs go last"));
}

TEST_F(FarmTest, AResultHoldsTheStateOfItsDevice) {
  FakeAgent agent("a", "1");
  agent.Check(123.456e-6);
  agent.state.mutable_devices(0)->mutable_sandbox()->set_level(v1::SANDBOX_LEVEL_WALL);
  Submit(BatchOf(1), "b1").value();
  const v1::Lease lease = agent.Sync(farm_, now_)->response.leases(0);
  agent.Finish(lease);
  agent.state.set_sequence(agent.state.sequence() + 1);
  const std::vector<Recordable> results = farm_.AcceptableResults(agent.state, now_);
  ASSERT_EQ(results.size(), 1u);
  const auto& environment = results[0].result.environment();
  EXPECT_EQ(environment.at("golden_us"), "123");
  EXPECT_EQ(environment.at("sandbox"), "wall");
  EXPECT_FALSE(environment.contains("throttled"));
}

// The agent is newer than this tracker.
TEST_F(FarmTest, AFailureOfAnUnknownKindIsRecordedAsACrashThatSaysSo) {
  FakeAgent agent("a", "1");
  const std::string batch = Submit(BatchOf(2), "b1").value();
  agent.Finish(agent.Sync(farm_, now_)->response.leases(0));
  v1::BatchResult& result = *agent.state.mutable_finished(0)->mutable_result();
  for (const int i : {0, 1}) {
    v1::Failure& failure = *result.mutable_outcomes(i)->mutable_outcome()->mutable_failure();
    failure.set_kind(static_cast<v1::FailureKind>(i == 0 ? 99 : 0));
    if (i == 0) failure.set_text("melted the board");
  }
  agent.state.set_sequence(agent.state.sequence() + 1);
  const std::vector<Recordable> recordable = farm_.AcceptableResults(agent.state, now_);
  ASSERT_EQ(recordable.size(), 1u);
  const std::vector<records::Record> recorded = ToRecords("farm", recordable[0]);
  ASSERT_EQ(recorded.size(), 2u) << "nothing is lost";
  const auto& failure = std::get<records::Failure>(recorded[0].outcome);
  EXPECT_EQ(failure.kind, FailureKind::kCrashed);
  EXPECT_EQ(failure.text,
            "failed with kind 99, which this tracker does not know: melted the board; update the tracker");
  EXPECT_THAT(std::get<records::Failure>(recorded[1].outcome).text, HasSubstr("with kind 0"));
  ASSERT_TRUE(farm_.Synchronize(agent.state, now_).ok());
  const std::map<v1::FailureKind, int64_t> counted = {{v1::FAILURE_KIND_CRASHED, 2}};
  EXPECT_EQ(farm_.outcomes(), counted);
  const v1::WaitBatchResponse waited = Wait(batch).value();
  ASSERT_EQ(waited.finished_size(), 1);
  EXPECT_EQ(waited.finished(0).result().outcomes(0).outcome().failure().text(), failure.text) << "what a tuner hears";
}

// The agent logs the reason, so its text must stay the same until something changes.
TEST_F(FarmTest, AnAgentIsToldWhyItsDeviceGetsNoWork) {
  FakeAgent agent("a", "1");
  const auto barred = [&]() -> std::string {
    const v1::SynchronizeResponse response = agent.Sync(farm_, now_)->response;
    return response.barred().contains("cpu") ? response.barred().at("cpu") : "";
  };
  agent.Check();
  EXPECT_EQ(barred(), "");
  agent.Check();
  agent.Golden().set_temperature_c(97);
  const std::string cooling = barred();
  EXPECT_THAT(cooling, HasSubstr("cooling"));
  agent.Check();
  agent.Golden().set_temperature_c(96);
  EXPECT_EQ(barred(), cooling);
  Pass(absl::Hours(1));
  agent.Check();
  agent.Golden().set_temperature_c(96);
  const std::string quarantined = barred();
  EXPECT_THAT(quarantined, HasSubstr("quarantined: it has not cooled down"));
  Pass(absl::Minutes(1));
  EXPECT_EQ(barred(), quarantined);
  farm_.Drain("a", "for repair");
  EXPECT_THAT(barred(), HasSubstr("drained: for repair"));
  farm_.Undrain("a");
  agent.Check();
  EXPECT_EQ(barred(), "");
  agent.state.mutable_devices(0)->mutable_self_test()->set_passed(false);
  agent.state.mutable_devices(0)->mutable_self_test()->set_reason("clock is throttled");
  EXPECT_EQ(barred(), "self-test failed: clock is throttled");
  agent.state.mutable_devices(0)->mutable_self_test()->set_pending(true);
  agent.state.mutable_devices(0)->mutable_self_test()->set_reason("the lock is held");
  EXPECT_EQ(barred(), "its self-test waits: the lock is held");
}

TEST_F(FarmTest, SubmissionIsIdempotentAndBounded) {
  const std::string first = Submit(BatchOf(1), "b0").value();
  EXPECT_EQ(Submit(BatchOf(1), "b0").value(), first);
  for (int i = 1; i < 64; ++i) ASSERT_TRUE(Submit(BatchOf(1), fmt::format("b{}", i)).ok());
  EXPECT_EQ(Submit(BatchOf(1), "one more").status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FarmTest, LimitsLengthsOfNames) {
  const std::string longer(300, 'x');
  EXPECT_THAT(std::string(Submit(BatchOf(1), longer).status().message()), HasSubstr("client_batch_id 'xxx"));
  v1::LeaseJobRequest request;
  request.set_protocol_version(v1::PROTOCOL_VERSION_1);
  request.set_tuner_id(longer);
  EXPECT_THAT(std::string(farm_.LeaseJob(request, now_).status().message()), HasSubstr("tuner_id 'xxx"));
  request.set_tuner_id("t");
  request.set_boot_id(longer);
  EXPECT_EQ(farm_.LeaseJob(request, now_).status().code(), absl::StatusCode::kInvalidArgument);
  request.set_boot_id(longer.substr(0, 256));
  EXPECT_TRUE(farm_.LeaseJob(request, now_).ok());
}

TEST(BatchQuotaTest, LimitsMemoryOfBatchesPerTuner) {
  BatchOptions options;
  options.open_bytes_per_tuner_max = 3 << 20;
  BatchQueue queue(options, CountingIds());
  v1::Batch batch = BatchOf(1);
  batch.set_artifact(std::string(2 << 20, 'x'));
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  ASSERT_TRUE(queue.Submit({"j1", "ann", "t"}, "b1", batch, now).ok());
  const absl::Status refused = queue.Submit({"j2", "bob", "t"}, "b1", batch, now).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("all jobs of tuner 't' would take 4 MiB"));
  EXPECT_TRUE(queue.Submit({"j2", "bob", "u"}, "b1", batch, now).ok());
}

TEST(BatchQuotaTest, LimitsMemoryOfBatchesPerJob) {
  BatchOptions options;
  options.open_bytes_per_job_max = 3 << 20;
  BatchQueue queue(options, CountingIds());
  v1::Batch batch = BatchOf(1);
  batch.set_artifact(std::string(2 << 20, 'x'));
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  ASSERT_TRUE(queue.Submit({"j", "ann"}, "b1", batch, now).ok());
  const absl::Status refused = queue.Submit({"j", "ann"}, "b2", batch, now).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("4 MiB of the tracker's memory; the limit is 3"));
  EXPECT_TRUE(queue.Submit({"j", "ann"}, "b3", BatchOf(1), now).ok());
  EXPECT_TRUE(queue.Submit({"other", "ann"}, "b2", batch, now).ok());
}

TEST(BatchQuotaTest, BatchesAndUnacknowledgedResultsCountForTheQuota) {
  BatchOptions options;
  options.open_bytes_per_job_max = 100'000;
  BatchQueue queue(options, CountingIds());
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  v1::Batch batch = BatchOf(1);
  batch.mutable_candidates(0)->set_schedule(std::string(60'000, 'x'));
  queue.AdvanceTo(now);
  const std::string id = queue.Submit({"j", "ann"}, "b1", batch, now).value();
  EXPECT_TRUE(absl::IsResourceExhausted(queue.Submit({"j", "ann"}, "b2", batch, now).status()));
  const BatchQueue::Lease* lease = queue.Pick({.agent_id = "a"}, [](const auto&, const auto&) { return true; }, now);
  ASSERT_NE(lease, nullptr);
  v1::BatchResult result = TimedResult(batch);
  for (int i = 0; i < 10'000; ++i) result.mutable_outcomes(0)->mutable_outcome()->mutable_timing()->add_seconds(1);
  queue.Finish(*lease, result);
  EXPECT_TRUE(absl::IsResourceExhausted(queue.Submit({"j", "ann"}, "b2", batch, now).status()));
  queue.Acknowledge("j", id);
  EXPECT_TRUE(queue.Submit({"j", "ann"}, "b2", batch, now).ok());
}

TEST(BatchQuotaTest, TheOldestUnacknowledgedResultIsForgotten) {
  BatchOptions options;
  options.finished_per_job_max = 2;
  BatchQueue queue(options, CountingIds());
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  queue.AdvanceTo(now);
  std::vector<std::string> ids;
  for (const char* name : {"b1", "b2", "b3", "b4"}) {
    ids.push_back(queue.Submit({"j", "ann"}, name, BatchOf(1), now).value());
    queue.Finish(
        *queue.Pick({.agent_id = "a"}, [](const auto&, const auto&) { return true; }, now), TimedResult(BatchOf(1)));
  }
  for (const int i : {0, 1}) EXPECT_TRUE(absl::IsNotFound(queue.Result("j", ids[i]).status())) << i;
  for (const int i : {2, 3}) EXPECT_TRUE(queue.Result("j", ids[i])->has_value()) << i;
}

TEST_F(FarmTest, AWaitNamesBatchesOnceAndNoMoreThanAJobHas) {
  v1::WaitBatchRequest wait;
  *wait.mutable_lease() = job_;
  for (int i = 0; i < 64; ++i) wait.add_batch_ids(Submit(BatchOf(1), fmt::format("b{}", i)).value());
  EXPECT_TRUE(farm_.WaitBatch(wait, now_).ok());
  wait.add_batch_ids("one more");
  EXPECT_THAT(std::string(farm_.WaitBatch(wait, now_).status().message()), HasSubstr("the call names 65 batches"));
  wait.mutable_batch_ids()->DeleteSubrange(1, 64);
  wait.add_batch_ids(wait.batch_ids(0));
  EXPECT_EQ(farm_.WaitBatch(wait, now_).status().code(), absl::StatusCode::kInvalidArgument);
  wait.clear_batch_ids();
  for (int i = 0; i < 65; ++i) wait.add_acked_batch_ids(fmt::format("b{}", i));
  EXPECT_EQ(farm_.WaitBatch(wait, now_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FarmTest, AnAnswerHasExactlyOneOutcomePerCandidate) {
  FakeAgent agent("a", "1");
  Submit(BatchOf(2), "b1").value();
  const v1::Lease lease = agent.Sync(farm_, now_)->response.leases(0);
  agent.Finish(lease);
  *agent.state.mutable_finished(0)->mutable_result()->add_outcomes() = agent.state.finished(0).result().outcomes(0);
  agent.state.set_sequence(agent.state.sequence() + 1);
  EXPECT_TRUE(farm_.AcceptableResults(agent.state, now_).empty());
  ASSERT_TRUE(farm_.Synchronize(agent.state, now_).ok());
  EXPECT_TRUE(farm_.outcomes().empty());
  EXPECT_EQ(farm_.ListDevices(v1::ListDevicesRequest(), now_)[0].losses(), 1) << "as if it had not answered";
}

// A batch was split into pieces; an agent that measures one piece reports nothing about the other.
TEST_F(FarmTest, AnAgentAnswersOnlyForItsPiece) {
  v1::Batch batch = BatchOf(2);
  batch.set_useful_seconds(3600);  // an answer may lack some outcomes
  Submit(batch, "b1").value();
  std::vector<std::string> ids;
  v1::Lease half;
  FakeAgent agent("a", "0");
  for (int boot = 1; boot < 10 && ids.size() != 1; ++boot) {  // each boot loses the lease of the one before
    agent = FakeAgent("a", std::to_string(boot));
    farm_.Undrain("a");
    const Farm::Answer answer = agent.Sync(farm_, now_).value();
    if (answer.response.leases().empty()) continue;  // backs off because the piece was lost too often
    half = answer.response.leases(0);
    ids = Ids(half);
  }
  ASSERT_THAT(ids, ElementsAre("c0"));
  agent.Finish(half);
  v1::BatchResult& result = *agent.state.mutable_finished(0)->mutable_result();
  result.mutable_outcomes(0)->set_candidate_id("c1");
  (*result.mutable_environment())["golden_us"] = "1";
  agent.state.set_sequence(agent.state.sequence() + 1);
  const std::vector<Recordable> acceptable = farm_.AcceptableResults(agent.state, now_);
  ASSERT_EQ(acceptable.size(), 1u);
  EXPECT_TRUE(acceptable[0].result.outcomes().empty());
  EXPECT_FALSE(acceptable[0].result.environment().contains("golden_us")) << "which the tracker fills in";
  ASSERT_TRUE(farm_.Synchronize(agent.state, now_).ok());
  EXPECT_TRUE(farm_.outcomes().empty());
}

TEST_F(FarmTest, ABatchHasALimitForAbsenceAndOneForAllTime) {
  const std::string batch = Submit(BatchOf(1), "b1").value();
  Pass(absl::Hours(12) - absl::Seconds(2));
  EXPECT_TRUE(Wait(batch)->finished().empty());
  Pass(absl::Seconds(4));
  EXPECT_THAT(Wait(batch)->finished(0).result().error(), HasSubstr("no suitable device was online for 12h"));
}

TEST_F(FarmTest, ABatchMayWaitForItsTurnHoweverLong) {
  // The device is online, and measures other work that comes first all day.
  BatchOptions options;
  BatchQueue queue(options, CountingIds());
  const auto any = [](const v1::Batch&, const Avoid&) { return true; };
  const auto serves = [](const v1::Batch&) { return true; };
  ASSERT_TRUE(queue.Submit({"j1", "ann"}, "waits", BatchOf(1), now_).ok());
  const std::string id = queue.Submit({"j2", "bob"}, "too", BatchOf(1), now_).value();
  v1::Batch urgent = BatchOf(1);
  urgent.set_priority(1);
  for (int minute = 0; minute < 48 * 60; ++minute) {
    const std::string name = std::to_string(minute);
    const std::string first = queue.Submit({"j3", "cem"}, name, urgent, now_).value();
    const BatchQueue::Lease lease = *queue.Pick({.agent_id = "a", .device_id = "cpu"}, any, now_);
    ASSERT_EQ(queue.JobOf(lease), "j3");
    now_ += absl::Minutes(1);
    queue.AdvanceTo(now_);
    EXPECT_TRUE(queue.Expire(now_, serves).empty());
    queue.Finish(lease, TimedResult(urgent));
    queue.Acknowledge("j3", first);
  }
  EXPECT_FALSE(queue.Result("j2", id)->has_value()) << queue.Result("j2", id)->value().error();
}

TEST_F(FarmTest, AbsenceCountsFromWhenTheDeviceLeaves) {
  FakeAgent agent("a", "1"), other("other", "1");
  other.state.mutable_devices(0)->mutable_fingerprint()->set_architecture("aarch64");
  v1::Batch batch = BatchOf(1);
  batch.mutable_requirements()->set_architecture("x86_64");
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  Submit(batch, "b1").value();
  ASSERT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 1);
  const std::string waits = Submit(batch, "b2").value();
  for (int hour = 0; hour < 13; ++hour) {
    ASSERT_TRUE(agent.Sync(farm_, now_).ok());
    for (int i = 0; i < 20; ++i) Pass(absl::Seconds(1));
  }
  // The batch keeps waiting: neither agent is heard from any more, and the second one does not fit anyway.
  Pass(absl::Hours(12) - absl::Minutes(1));
  EXPECT_TRUE(Wait(waits)->finished().empty());
  Pass(absl::Minutes(4));
  ASSERT_EQ(Wait(waits)->finished_size(), 1);
  EXPECT_THAT(Wait(waits)->finished(0).result().error(), HasSubstr("no suitable device was online for 12h"));
}

// After its restart the tracker knows neither of two processes with the same name. A delayed call of the dead process
// must not take the name from the living one.
TEST_F(FarmTest, ADelayedCallOfADeadProcessTakesOverNoAgent) {
  for (const bool late_first : {false, true}) {
    const std::string id = late_first ? "b" : "a";
    FakeAgent dead(id, "dead"), alive(id, "alive");
    dead.state.set_sequence(7);
    dead.state.set_epoch(5);
    if (late_first) farm_.Synchronize(dead.state, now_).IgnoreError();
    ASSERT_TRUE(alive.Sync(farm_, now_).ok());
    if (!late_first) farm_.Synchronize(dead.state, now_).IgnoreError();
    const absl::StatusOr<Farm::Answer> answer = alive.Sync(farm_, now_);
    ASSERT_TRUE(answer.ok()) << answer.status();
    Submit(BatchOf(1), "b" + id).value();
    EXPECT_EQ(alive.Sync(farm_, now_)->response.leases_size(), 1);
    EXPECT_TRUE(alive.Sync(farm_, now_).ok());
  }
}

TEST_F(FarmTest, TheJobSetsThePriorityOfBatches) {
  v1::Batch batch = BatchOf(1);
  batch.set_priority(100);
  Submit(batch, "b1").value();
  FakeAgent agent("a", "1");
  EXPECT_EQ(agent.Sync(farm_, now_)->response.leases(0).batch().priority(), 0) << "it is the job's";
}

TEST_F(FarmTest, AClockThatGoesBackDoesNoHarm) {
  FakeAgent agent("a", "1");
  Submit(BatchOf(1), "b1").value();
  const v1::Lease lease = agent.Sync(farm_, now_)->response.leases(0);
  farm_.Tick(now_ - absl::Hours(5));
  agent.Finish(lease);
  ASSERT_TRUE(agent.Sync(farm_, now_ - absl::Hours(1)).ok());
  EXPECT_EQ(farm_.Counters(now_).results_accepted(), 1);
}

TEST_F(FarmTest, WatchSeesProgressAndTheEnd) {
  v1::WatchJobRequest watch;
  watch.set_job_id(job_id_);
  const v1::WatchJobResponse first = farm_.WatchJob(watch, now_).value();
  ASSERT_FALSE(first.events().empty());
  watch.set_after_sequence(first.events().rbegin()->sequence());
  EXPECT_TRUE(farm_.WatchJob(watch, now_)->events().empty());
  v1::CompleteJobRequest complete;
  *complete.mutable_lease() = job_;
  complete.mutable_progress()->set_trials(3);
  ASSERT_TRUE(farm_.CompleteJob(complete, now_).ok());
  const v1::WatchJobResponse last = farm_.WatchJob(watch, now_).value();
  EXPECT_EQ(last.events(0).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(last.job().progress().trials(), 3);
  watch.set_job_id("none");
  EXPECT_EQ(farm_.WatchJob(watch, now_).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace hone::tracker
