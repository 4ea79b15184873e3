// SPDX-License-Identifier: Apache-2.0
// Jobs that run packages: from the queue to a device and to their report, with lost devices and restarts.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/farm/builders.h"
#include "tests/farm/fake_agent.h"
#include "tracker/queue/farm.h"
#include "tracker/queue/run_task.h"

namespace hone::tracker {
namespace {

v1::JobSpec RunSpec(const std::string& name, const std::string& device = "") {
  v1::JobSpec spec;
  spec.set_request_id("request-" + name);
  spec.set_name(name);
  v1::FileName* package = spec.mutable_run()->add_packages();
  package->set_digest(std::string(64, 'a'));
  package->set_bytes(1000);
  package->set_name(name + ".hone");
  spec.mutable_run()->set_seconds(2);
  if (!device.empty()) spec.add_devices(device);
  return spec;
}

v1::BatchResult Report() {
  v1::BatchResult result;
  result.set_visit_seconds(3);
  v1::PackageReport* package = result.mutable_run()->add_packages();
  package->set_target("cpu");
  package->add_seconds(0.001);
  return result;
}

class RunsTest : public FarmFixture {
 protected:
  v1::Job Submit(const v1::JobSpec& spec) { return *farm_.SubmitJob(spec, now_); }
  v1::Job Get(const std::string& id) { return *farm_.GetJob(id, now_); }
  // The agent calls; returns the leases of the answer.
  std::vector<v1::Lease> Call(FakeAgent& board) {
    const auto answer = board.Sync(farm_, now_);
    EXPECT_TRUE(answer.ok()) << answer.status();
    for (const v1::Lease& lease : answer->response.leases()) *board.state.add_running() = lease.reference();
    return {answer->response.leases().begin(), answer->response.leases().end()};
  }
};

TEST_F(RunsTest, ARunGoesToItsDeviceWithoutATuner) {
  FakeAgent board("board", "1");
  Call(board);
  const v1::Job job = Submit(RunSpec("net", "board"));
  EXPECT_EQ(job.state(), v1::JOB_STATE_QUEUED);
  const std::vector<v1::Lease> leases = Call(board);
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(leases[0].batch().run().packages(0).name(), "net.hone");
  EXPECT_GE(leases[0].run_limit().seconds(), 300);
  EXPECT_EQ(Get(job.id()).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Get(job.id()).waiting_for(), "");
  board.Finish(leases[0], Report());
  EXPECT_TRUE(farm_.AcceptableResults(board.state, now_).empty()) << "a run is no record";
  Call(board);
  const v1::Job ended = Get(job.id());
  EXPECT_EQ(ended.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(ended.progress().run().packages(0).seconds(0), 0.001);
  EXPECT_EQ(ended.progress().run_device(), "board/cpu");
  EXPECT_EQ(ended.progress().latency_after_seconds(), 0.001) << "which lists show";
  EXPECT_FALSE(ended.progress().has_latency_before_seconds()) << "of one package";
  EXPECT_EQ(farm_.batches().queued() + farm_.batches().running(), 0);
}

TEST_F(RunsTest, NoTunerGetsARun) {
  Submit(RunSpec("net"));
  v1::LeaseJobRequest request;
  request.set_protocol_version(v1::PROTOCOL_VERSION_1);
  request.set_tuner_id("t");
  request.set_boot_id("1");
  EXPECT_FALSE(farm_.LeaseJob(request, now_)->has_lease());
  EXPECT_FALSE(farm_.jobs().waiting());
}

TEST_F(RunsTest, ARunWaitsForItsDeviceHoweverLong) {
  FakeAgent other("other", "1");
  Call(other);
  const v1::Job job = Submit(RunSpec("net", "board"));
  EXPECT_EQ(job.waiting_for(), "a device for board");
  for (int day = 0; day < 3; ++day) {
    Pass(absl::Hours(24));
    Call(other);
  }
  EXPECT_EQ(Get(job.id()).state(), v1::JOB_STATE_QUEUED);
  FakeAgent board("board", "1");
  EXPECT_EQ(Call(board).size(), 1u);
}

TEST_F(RunsTest, ARunWhoseDeviceIsLostIsTriedAgainAndThenFails) {
  const v1::Job job = Submit(RunSpec("net", "board"));
  for (int boot = 0; boot < 3; ++boot) {
    FakeAgent board("board", std::to_string(boot));
    ASSERT_EQ(Call(board).size(), 1u) << boot;
    EXPECT_EQ(Get(job.id()).state(), v1::JOB_STATE_RUNNING);
    Pass(absl::Minutes(5));  // it is silent
    EXPECT_EQ(Get(job.id()).state(), boot < 2 ? v1::JOB_STATE_QUEUED : v1::JOB_STATE_FAILED);
  }
  const v1::Job failed = Get(job.id());
  EXPECT_EQ(failed.error(), "devices were lost 3 times while they ran it; the last time: agent 'board' fell silent");
}

TEST_F(RunsTest, AFailureOfAPackageEndsTheJobWithItsText) {
  FakeAgent board("board", "1");
  Call(board);
  const v1::Job job = Submit(RunSpec("net"));
  const std::vector<v1::Lease> leases = Call(board);
  ASSERT_EQ(leases.size(), 1u);
  v1::BatchResult result;
  v1::CandidateOutcome* outcome = result.add_outcomes();
  outcome->set_candidate_id(std::string(kRunCandidate));
  outcome->mutable_outcome()->mutable_failure()->set_kind(v1::FAILURE_KIND_CRASHED);
  outcome->mutable_outcome()->mutable_failure()->set_text("net.hone: signal 11");
  board.Finish(leases[0], result);
  Call(board);
  EXPECT_EQ(Get(job.id()).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(Get(job.id()).error(), "net.hone: signal 11");
  EXPECT_TRUE(farm_.TakeGivenUp().empty());
}

TEST_F(RunsTest, ACancelledRunLeavesTheQueueAndTheDevice) {
  FakeAgent board("board", "1");
  Call(board);
  const v1::Job running = Submit(RunSpec("running"));
  ASSERT_EQ(Call(board).size(), 1u);
  const v1::Job queued = Submit(RunSpec("queued"));
  EXPECT_EQ(farm_.batches().queued(), 1);
  EXPECT_EQ(queued.waiting_for(), "its turn on board/cpu, which measures for job " + running.id() + " of ");
  ASSERT_TRUE(farm_.CancelJob(queued.id(), now_).ok());
  EXPECT_EQ(farm_.batches().queued(), 0);
  ASSERT_TRUE(farm_.CancelJob(running.id(), now_).ok());
  EXPECT_EQ(farm_.batches().running(), 0);
  const auto answer = board.Sync(farm_, now_);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->response.cancelled_lease_ids_size(), 1);
}

TEST_F(RunsTest, ATrackerThatStartsAgainRunsItAgain) {
  FakeAgent board("board", "1");
  Call(board);
  const v1::Job job = Submit(RunSpec("net"));
  ASSERT_EQ(Call(board).size(), 1u);
  Farm restarted{FarmOptions{}, 2, CountingIds(), "key"};
  restarted.Restore({Get(job.id())}, {}, {});
  FakeAgent again("board", "1");
  ASSERT_TRUE(again.Sync(restarted, now_).ok());
  restarted.Tick(now_);
  const auto answer = again.Sync(restarted, now_);
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->response.leases_size(), 1);
  EXPECT_EQ(restarted.GetJob(job.id(), now_)->state(), v1::JOB_STATE_RUNNING);
}

TEST_F(RunsTest, WrongTasksAreRefusedByField) {
  const auto refused = [&](auto change) {
    v1::JobSpec spec = RunSpec("net");
    change(*spec.mutable_run());
    return std::string(farm_.SubmitJob(spec, now_).status().message());
  };
  EXPECT_EQ(refused([](v1::RunTask& run) { run.clear_packages(); }), "the run has 0 packages; give 1 to 8");
  EXPECT_NE(refused([](v1::RunTask& run) { run.mutable_packages(0)->set_digest("../x"); }).find("'../x'"),
            std::string::npos);
  EXPECT_NE(refused([](v1::RunTask& run) { run.set_seconds(-1); }).find("-1 seconds"), std::string::npos);
  EXPECT_NE(refused([](v1::RunTask& run) { run.set_threads(5000); }).find("5000 threads"), std::string::npos);
  v1::JobSpec both = SpecOf("both");
  *both.mutable_run() = RunSpec("net").run();
  EXPECT_NE(std::string(farm_.SubmitJob(both, now_).status().message()).find("both a run and workloads"),
            std::string::npos);
}

}  // namespace
}  // namespace hone::tracker
