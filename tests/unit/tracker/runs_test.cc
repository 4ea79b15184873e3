// SPDX-License-Identifier: Apache-2.0
// Jobs that run packages: from the queue to a device and to their report, with lost devices and restarts.
#include <gtest/gtest.h>

#include <set>
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

v1::BatchResult Report() { return ReportOf(RunSpec("net").run()); }

class RunsTest : public FarmFixture {
 protected:
  using FarmFixture::Submit;
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

TEST_F(RunsTest, ARunGoesToAnotherDeviceThanTheOneThatWasLostWithIt) {
  const v1::Job job = Submit(RunSpec("net"));
  FakeAgent first("first", "1");
  ASSERT_EQ(Call(first).size(), 1u);
  Pass(absl::Minutes(5));  // it is silent
  farm_.Drain("second", "so that it does not take the run yet");
  FakeAgent second("second", "1");
  EXPECT_TRUE(Call(second).empty());
  farm_.Undrain("second");
  FakeAgent again("first", "2");
  EXPECT_TRUE(Call(again).empty()) << "the other device has not tried it";
  EXPECT_EQ(Call(second).size(), 1u);
  EXPECT_EQ(Get(job.id()).state(), v1::JOB_STATE_RUNNING);
}

TEST_F(RunsTest, ATrackerThatStartsAgainStillAvoidsTheDeviceThatWasLost) {
  const v1::Job job = Submit(RunSpec("net"));
  FakeAgent first("first", "1");
  ASSERT_EQ(Call(first).size(), 1u);
  Pass(absl::Minutes(5));  // it is silent
  ASSERT_EQ(Get(job.id()).state(), v1::JOB_STATE_QUEUED);
  Farm restarted{FarmOptions{}, 2, CountingIds(), "key"};
  restarted.Restore({Get(job.id())}, {}, {});
  const auto call = [&](FakeAgent& board) { return board.Sync(restarted, now_)->response.leases_size(); };
  FakeAgent again("first", "2"), second("second", "1");
  restarted.Drain("second", "so that it does not take the run yet");
  call(second);
  restarted.Undrain("second");
  call(again);
  restarted.Tick(now_);
  EXPECT_EQ(call(again), 0) << "the other device has not tried it";
  EXPECT_EQ(call(second), 1);
}

TEST_F(RunsTest, DevicesThatWereLostWithABadPackageAreForgiven) {
  const v1::Job job = Submit(RunSpec("net", "board"));
  for (int boot = 0; boot < 3; ++boot) {
    FakeAgent board("board", std::to_string(boot));
    ASSERT_EQ(Call(board).size(), 1u) << boot;
    Pass(absl::Minutes(5));
  }
  ASSERT_EQ(Get(job.id()).state(), v1::JOB_STATE_FAILED);
  FakeAgent board("board", "3");
  Call(board);
  const std::vector<v1::Device> devices = farm_.ListDevices({}, now_);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].record().troubles(), 0);
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

TEST_F(RunsTest, FilesBelongToTheRunsThatNameThem) {
  FakeAgent board("board", "1");
  Call(board);
  v1::JobSpec spec = RunSpec("net", "board");
  spec.set_submitted_by("ann");
  spec.set_submitter("hone://farm/client/ann");
  spec.mutable_run()->set_keep_outputs(true);
  spec.mutable_run()->mutable_inputs()->set_digest(std::string(64, 'b'));
  const v1::Job job = Submit(spec);
  EXPECT_FALSE(farm_.AgentNeedsFile("board", std::string(64, 'a'))) << "it has not leased the run yet";
  const std::vector<v1::Lease> leases = Call(board);
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_TRUE(farm_.AgentNeedsFile("board", std::string(64, 'a')));
  EXPECT_TRUE(farm_.AgentNeedsFile("board", std::string(64, 'b')));
  EXPECT_FALSE(farm_.AgentNeedsFile("board", std::string(64, 'c')));
  EXPECT_FALSE(farm_.AgentNeedsFile("other", std::string(64, 'a')));
  EXPECT_EQ(farm_.SubmittersOfOutputs("board"), std::set<std::string>{"hone://farm/client/ann"});
  v1::BatchResult result = Report();
  result.mutable_run()->mutable_packages(0)->mutable_outputs()->set_digest(std::string(64, 'd'));
  board.Finish(leases[0], result);
  Call(board);
  ASSERT_EQ(Get(job.id()).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_FALSE(farm_.AgentNeedsFile("board", std::string(64, 'a')));
  EXPECT_TRUE(farm_.SubmittersOfOutputs("board").empty());
  EXPECT_EQ(farm_.AgentsThatReported("hone://farm/client/ann", std::string(64, 'd')), std::set<std::string>{"board"});
  for (const char* other : {"hone://farm/admin/ann", "hone://farm/client/bob", "ann"}) {
    EXPECT_TRUE(farm_.AgentsThatReported(other, std::string(64, 'd')).empty()) << other;
  }
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
  EXPECT_EQ(restarted.FilesInUse({std::string(64, 'a'), std::string(64, 'b')}),
            std::set<std::string>{std::string(64, 'a')});
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

// A tuning job with a model, which a tuner holds.
class ModelsTest : public RunsTest {
 protected:
  void SetUp() override {
    v1::JobSpec spec = SpecOf("job");
    SetModel(spec);
    job_id_ = farm_.SubmitJob(spec, now_)->id();
    Lease();
  }
  void Lease(const std::string& tuner = "tuner") {
    v1::LeaseJobRequest request;
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_tuner_id(tuner);
    request.set_boot_id(std::to_string(boot_++));  // a restarted tuner: the lease before was lost
    const v1::LeaseJobResponse response = *farm_.LeaseJob(request, now_);
    leased_ = response.job();
    job_ = response.lease();
  }
  // Reports that only the run of the model is left.
  void EndSearch() {
    v1::ReportProgressRequest report;
    *report.mutable_lease() = job_;
    report.mutable_progress()->set_trials(100);
    report.mutable_progress()->set_search_ended(true);
    ASSERT_TRUE(farm_.ReportProgress(report, now_).ok());
  }
  // The files in use among those whose digest is one letter, 64 times: that letter.
  std::string InUse() {
    std::string letters;
    for (char letter = 'a'; letter <= 'f'; ++letter) {
      if (!farm_.FilesInUse({std::string(64, letter)}).empty()) letters += letter;
    }
    return letters;
  }
  v1::Job leased_;
  int boot_ = 0;
};

TEST_F(ModelsTest, ATunerHasTheModelRunAndReportsIt) {
  FakeAgent board("board", "1");
  Call(board);
  EXPECT_EQ(InUse(), "e") << "the model";
  const absl::StatusOr<std::string> batch = Submit(ModelBatch(), "model");
  ASSERT_TRUE(batch.ok()) << batch.status();
  const std::vector<v1::Lease> leases = Call(board);
  ASSERT_EQ(leases.size(), 1u);
  board.Finish(leases[0], ReportOf(leases[0].batch().run()));
  EXPECT_TRUE(farm_.AcceptableResults(board.state, now_).empty()) << "a run is no record";
  Call(board);
  EXPECT_EQ(Get(job_id_).state(), v1::JOB_STATE_RUNNING) << "its tuner ends it";
  const auto finished = Wait(*batch);
  ASSERT_TRUE(finished.ok());
  ASSERT_EQ(finished->finished_size(), 1);
  EXPECT_EQ(finished->finished(0).result().run().packages_size(), 2);
  EXPECT_EQ(finished->finished(0).result().device_name(), "board/cpu");
  v1::CompleteJobRequest complete;
  *complete.mutable_lease() = job_;
  v1::ModelConfirmation& whole = *complete.mutable_progress()->mutable_confirmation();
  whole.set_ratio(1.3);
  *whole.mutable_run() = finished->finished(0).result().run();
  ASSERT_TRUE(farm_.CompleteJob(complete, now_).ok());
  EXPECT_EQ(Get(job_id_).progress().confirmation().run().packages_size(), 2);
  const v1::ModelConfirmation listed = farm_.GetJobSummaries({job_id_}, now_).at(0).progress().confirmation();
  EXPECT_EQ(listed.ratio(), 1.3);
  EXPECT_FALSE(listed.has_run());
  EXPECT_EQ(InUse(), "");
}

TEST_F(ModelsTest, FilesAreInUseWhileAJobOrABatchNamesThem) {
  const v1::Job run = Submit(RunSpec("net"));
  EXPECT_EQ(InUse(), "ae");
  ASSERT_TRUE(farm_.CancelJob(run.id(), now_).ok());
  EXPECT_EQ(InUse(), "e");
  ASSERT_TRUE(Submit(ModelBatch(), "model").ok());
  EXPECT_EQ(InUse(), "bce") << "the batch's, too";
  EXPECT_TRUE(farm_.TunerNeedsFile("tuner", std::string(64, 'e')));
  EXPECT_FALSE(farm_.TunerNeedsFile("tuner", std::string(64, 'b')));
  EXPECT_FALSE(farm_.TunerNeedsFile("another", std::string(64, 'e')));
  Lease();  // a restarted tuner, whose batch is lost
  EXPECT_EQ(InUse(), "e");
  ASSERT_TRUE(farm_.CancelJob(job_id_, now_).ok());
  EXPECT_EQ(InUse(), "");
  EXPECT_FALSE(farm_.TunerNeedsFile("tuner", std::string(64, 'e')));
}

TEST_F(ModelsTest, PackagesAreUnneededWhenTheirJobHasEnded) {
  const std::string b(64, 'b'), c(64, 'c');
  EndSearch();
  ASSERT_TRUE(Submit(ModelBatch(), "model").ok());
  EXPECT_TRUE(farm_.TakeUnneededPackages().empty()) << "the run is to come";
  Lease();  // a restarted tuner, which makes the run again
  EXPECT_TRUE(farm_.TakeUnneededPackages().empty());
  const std::string first = job_id_;
  v1::JobSpec spec = SpecOf("another");
  SetModel(spec);
  job_id_ = farm_.SubmitJob(spec, now_)->id();
  boot_ = 0;
  Lease("another");
  EndSearch();
  ASSERT_TRUE(farm_.CancelJob(first, now_).ok());
  EXPECT_TRUE(farm_.TakeUnneededPackages().empty()) << "the other tuner may be storing the same packages";
  v1::Batch shares_one = ModelBatch();
  shares_one.mutable_run()->mutable_packages(1)->set_digest(std::string(64, 'd'));
  ASSERT_TRUE(Submit(shares_one, "model").ok());
  EXPECT_EQ(farm_.TakeUnneededPackages(), std::vector<std::string>{c});
  EXPECT_TRUE(farm_.TakeUnneededPackages().empty()) << "each is told once";
  ASSERT_TRUE(farm_.CancelJob(job_id_, now_).ok());
  EXPECT_EQ(farm_.TakeUnneededPackages(), (std::vector<std::string>{b, std::string(64, 'd')}));
}

TEST_F(ModelsTest, ACancelledJobTakesItsRunFromTheDevice) {
  FakeAgent board("board", "1");
  Call(board);
  ASSERT_TRUE(Submit(ModelBatch(), "model").ok());
  ASSERT_EQ(Call(board).size(), 1u);
  ASSERT_TRUE(farm_.CancelJob(job_id_, now_).ok());
  EXPECT_EQ(farm_.batches().running(), 0);
  const auto answer = board.Sync(farm_, now_);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->response.cancelled_lease_ids_size(), 1);
}

TEST_F(ModelsTest, ARunThatKillsItsDevicesIsGivenUp) {
  const std::string batch = *Submit(ModelBatch(), "model");
  for (int boot = 0; boot < 3; ++boot) {
    FakeAgent board("board", std::to_string(boot));
    ASSERT_EQ(Call(board).size(), 1u) << boot;
    Pass(absl::Minutes(5));  // it is silent
  }
  const auto finished = Wait(batch);
  ASSERT_EQ(finished->finished_size(), 1);
  const v1::BatchResult& result = finished->finished(0).result();
  EXPECT_EQ(result.outcomes(0).outcome().failure().kind(), v1::FAILURE_KIND_LOST_DEVICE);
  EXPECT_TRUE(farm_.TakeGivenUp().empty()) << "a run is no record";
}

TEST_F(ModelsTest, TheNextTunerKnowsThatTheSearchHasEnded) {
  (void)farm_.TakeChangedJobs();
  EndSearch();
  EXPECT_EQ(farm_.TakeChangedJobs().size(), 1u) << "it is stored at once";
  Lease();
  EXPECT_TRUE(leased_.progress().search_ended());
}

TEST_F(ModelsTest, ARunThatKillsItsTunersFailsNoJob) {
  EndSearch();
  for (int lost = 0; lost < 5; ++lost) {
    ASSERT_EQ(Get(job_id_).state(), v1::JOB_STATE_RUNNING) << lost;
    Lease();
  }
  EXPECT_EQ(Get(job_id_).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(Get(job_id_).progress().confirmation().problem(),
            "5 tuners in a row were lost while they had the whole model measured; see their logs");
}

TEST_F(ModelsTest, AJobWhoseTimeIsOverSaysThatTheModelWasNotMeasured) {
  v1::JobSpec spec = SpecOf("until");
  SetModel(spec);
  spec.mutable_until()->set_seconds(absl::ToUnixSeconds(farm_.ToWallTime(now_)) + 60);
  const std::string id = farm_.SubmitJob(spec, now_)->id();
  v1::CompleteJobRequest complete;
  *complete.mutable_lease() = job_;
  ASSERT_TRUE(farm_.CompleteJob(complete, now_).ok());
  Lease();
  ASSERT_EQ(leased_.id(), id);
  EndSearch();
  Pass(absl::Minutes(3));
  EXPECT_EQ(Get(id).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(Get(id).progress().confirmation().problem(),
            "the time of the job (--until) was over before the whole model was measured");
}

TEST_F(ModelsTest, OnlyAJobWithAModelMayRunPackages) {
  v1::CompleteJobRequest complete;
  *complete.mutable_lease() = job_;
  ASSERT_TRUE(farm_.CompleteJob(complete, now_).ok());
  ASSERT_TRUE(farm_.SubmitJob(SpecOf("another"), now_).ok());
  Lease();
  const absl::Status refused = Submit(ModelBatch(), "model").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(refused.message()).find("has no model"), std::string::npos) << refused;
}

TEST_F(ModelsTest, WrongModelsAreRefused) {
  const auto refused = [&](auto change) {
    v1::JobSpec spec = SpecOf("wrong");
    SetModel(spec);
    change(*spec.mutable_model());
    return std::string(farm_.SubmitJob(spec, now_).status().message());
  };
  EXPECT_EQ(refused([](v1::ModelSource& m) { m.clear_files(); }), "the job's model has 0 files; give 1 to 10000");
  EXPECT_EQ(refused([](v1::ModelSource& m) { m.clear_programs(); }), "the job's model has no program");
  for (const char* path : {"", "/etc/passwd", "../net.onnx", "a/../../b", "a//b", "./a"}) {
    EXPECT_EQ(refused([&](v1::ModelSource& m) { m.mutable_files(0)->set_path(path); }),
              "the job's model has a file at '" + std::string(path) + "'; give each file another relative path");
  }
  EXPECT_NE(refused([](v1::ModelSource& m) { *m.add_files() = m.files(0); }).find("another relative path"),
            std::string::npos);
  EXPECT_NE(refused([](v1::ModelSource& m) { m.mutable_files(0)->mutable_file()->set_digest("x"); }).find("'x'"),
            std::string::npos);
  EXPECT_NE(refused([](v1::ModelSource& m) { m.add_operators("other"); }).find("not among its files"),
            std::string::npos);
}

}  // namespace
}  // namespace hone::tracker
