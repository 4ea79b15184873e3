#include "tracker/shell.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "base/temporary_folder.h"
#include "tests/farm/builders.h"

namespace hone::tracker {
namespace {

class ShellTest : public testing::Test {
 protected:
  ShellTest() { store_ = records::Store::Open(folder_ / "records.db", records::OpenMode::kReadWrite).value(); }

  // One batch of two candidates through a farm that keeps its jobs in `state`, from the job to the acknowledged result.
  void MeasureTwo(const std::string& state) {
    FarmState opened = FarmState::Open(folder_ / state, absl::Now()).value();
    const auto shell = Shell::Start(FarmOptions(), std::move(opened), store_.get()).value();
    EXPECT_EQ(Measure(*shell, state, [] { return true; }), 1);
  }

  // The same in a farm that runs: how many results were acknowledged.
  static int Measure(Shell& shell, const std::string& name, const Shell::Present& present) {
    EXPECT_TRUE(shell.SubmitJob(SpecOf("job" + name)).ok());
    v1::LeaseJobRequest lease_job;
    lease_job.set_protocol_version(v1::PROTOCOL_VERSION_1);
    lease_job.set_tuner_id("tuner" + name);
    v1::SubmitBatchRequest submit;
    *submit.mutable_lease() = shell.LeaseJob(lease_job, present)->lease();
    submit.set_client_batch_id("first");
    *submit.mutable_batch() = BatchOf(2);
    EXPECT_TRUE(shell.SubmitBatch(submit).ok());
    v1::SynchronizeRequest agent;
    agent.set_protocol_version(v1::PROTOCOL_VERSION_1);
    agent.set_agent_id("agent" + name);
    agent.set_boot_id("boot");
    *agent.add_devices() = DeviceOf();
    int acknowledged = 0;
    for (uint64_t sequence = 1; acknowledged == 0 && sequence < 10 && present(); ++sequence) {
      agent.set_sequence(sequence);
      const auto answer = shell.Synchronize(agent, present);
      EXPECT_TRUE(answer.ok()) << answer.status();
      if (!answer.ok()) break;
      agent.set_epoch(answer->epoch());
      acknowledged = answer->acked_lease_ids_size();
      for (const v1::Lease& lease : answer->leases()) {
        v1::LeaseResult* finished = agent.add_finished();
        *finished->mutable_lease() = lease.reference();
        *finished->mutable_result() = TimedResult(lease.batch());
      }
    }
    return acknowledged;
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  std::unique_ptr<records::Store> store_;
};

TEST_F(ShellTest, WhatIsAcknowledgedIsInTheRecords) {
  MeasureTwo("jobs");
  EXPECT_EQ(store_->Summarize()->records, 2);
  MeasureTwo("jobs");  // started again
  EXPECT_EQ(store_->Summarize()->records, 4);
}

// Two farms count their batches alike. Their records meet when one's are imported by the other, or when the file with
// the jobs is removed and the records are not.
TEST_F(ShellTest, FarmsDoNotTakeEachOthersMeasurementsForTheirOwn) {
  MeasureTwo("jobs");
  MeasureTwo("jobs of another farm");
  EXPECT_EQ(store_->Summarize()->records, 4);
}

// A copy of the jobs is put back, and the farm goes on from there: what it measures now is not what it measured then.
TEST_F(ShellTest, AFarmFromAnOlderCopyRepeatsNothing) {
  ASSERT_TRUE(FarmState::Open(folder_ / "jobs", absl::Now()).ok());
  std::filesystem::copy_file(folder_ / "jobs", folder_ / "copy");
  MeasureTwo("jobs");
  std::filesystem::copy_file(folder_ / "copy", folder_ / "jobs", std::filesystem::copy_options::overwrite_existing);
  MeasureTwo("jobs");
  EXPECT_EQ(store_->Summarize()->records, 4);
}

TEST_F(ShellTest, EveryStartIsGreaterThanThoseBefore) {
  const absl::Time day = absl::FromUnixSeconds(60 * 1000);
  const auto start = [&](const std::string& file, absl::Time now) {
    return FarmState::Open(folder_ / file, now)->incarnation();
  };
  EXPECT_EQ(start("jobs", day), 1000u);
  std::filesystem::copy_file(folder_ / "jobs", folder_ / "copy");
  EXPECT_EQ(start("jobs", day), 1001u);
  EXPECT_EQ(start("jobs", day - absl::Hours(1)), 1002u) << "the clock was put back";
  EXPECT_EQ(start("copy", day + absl::Hours(1)), 1060u) << "from an older copy";
}

TEST_F(ShellTest, LeasesCannotBeGuessed) {
  const auto shell =
      Shell::Start(FarmOptions(), FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  std::set<std::string> ids;
  for (const std::string name : {"a", "b"}) {
    ASSERT_TRUE(shell->SubmitJob(SpecOf(name)).ok());
    v1::LeaseJobRequest request;
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_tuner_id(name);
    const std::string id = shell->LeaseJob(request, [] { return true; })->lease().lease_id();
    EXPECT_EQ(id.size(), 32u) << "128 bits";
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 2u);
}

// No file can grow while one of these lives: what a full disk does to everything that is written.
class FullDisk {
 public:
  FullDisk() {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none = {0, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(ShellTest, AFullDiskBurnsNothingLosesNothingAndIsSaid) {
  const auto shell =
      Shell::Start(FarmOptions(), FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  const auto present = [] { return true; };
  const std::string measured = shell->SubmitJob(SpecOf("measured"))->id();
  v1::LeaseJobRequest lease_job;
  lease_job.set_protocol_version(v1::PROTOCOL_VERSION_1);
  lease_job.set_tuner_id("tuner");
  v1::SubmitBatchRequest submit;
  *submit.mutable_lease() = shell->LeaseJob(lease_job, present)->lease();
  submit.set_client_batch_id("first");
  *submit.mutable_batch() = BatchOf(2);
  ASSERT_TRUE(shell->SubmitBatch(submit).ok());
  const std::string queued = shell->SubmitJob(SpecOf("queued"))->id();
  v1::SynchronizeRequest agent;
  agent.set_protocol_version(v1::PROTOCOL_VERSION_1);
  agent.set_agent_id("agent");
  agent.set_boot_id("boot");
  *agent.add_devices() = DeviceOf();
  agent.set_sequence(1);
  const auto leased = shell->Synchronize(agent, present);
  ASSERT_EQ(leased->leases_size(), 1);
  agent.set_epoch(leased->epoch());
  v1::LeaseResult* finished = agent.add_finished();
  *finished->mutable_lease() = leased->leases(0).reference();
  *finished->mutable_result() = TimedResult(leased->leases(0).batch());
  {
    const FullDisk full;
    lease_job.set_tuner_id("another");
    for (int i = 0; i < 20; ++i) {
      agent.set_sequence(agent.sequence() + 1);
      const auto answer = shell->Synchronize(agent, present);
      if (answer.ok()) {
        EXPECT_EQ(answer->acked_lease_ids_size() + answer->cancelled_lease_ids_size() + answer->leases_size(), 0);
      } else {
        EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
      }
      EXPECT_EQ(shell->LeaseJob(lease_job, present).status().code(), absl::StatusCode::kUnavailable);
    }
    EXPECT_EQ(shell->SubmitJob(SpecOf("third")).status().code(), absl::StatusCode::kUnavailable);
    EXPECT_NE(shell->ListDevices(v1::ListDevicesRequest()).trouble(), "");
    EXPECT_NE(shell->GetJob(queued)->waiting_for().find("the tracker's disk"), std::string::npos);
    EXPECT_EQ(shell->GetJob(queued)->state(), v1::JOB_STATE_QUEUED);
    EXPECT_EQ(shell->GetJob(queued)->attempts(), 0);
    EXPECT_EQ(shell->GetJob(measured)->state(), v1::JOB_STATE_RUNNING);
  }
  int acknowledged = 0;
  for (int i = 0; i < 10 && acknowledged == 0; ++i) {
    agent.set_sequence(agent.sequence() + 1);
    const auto answer = shell->Synchronize(agent, present);
    if (answer.ok()) acknowledged = answer->acked_lease_ids_size();
  }
  EXPECT_EQ(acknowledged, 1);
  EXPECT_EQ(store_->Summarize()->records, 2);
  EXPECT_EQ(shell->ListDevices(v1::ListDevicesRequest()).trouble(), "");
  EXPECT_EQ(shell->LeaseJob(lease_job, present)->job().id(), queued);
  EXPECT_EQ(shell->GetJob(queued)->attempts(), 1);
  EXPECT_EQ(shell->Counters().leases_lost(), 0);
}

// Recorded, and the agent did not hear of it: it brings the result to the tracker's next starts again and again.
TEST_F(ShellTest, WhatComesAgainAfterARestartIsRecordedOnce) {
  const auto start = [&] {
    return Shell::Start(FarmOptions(), FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  };
  const auto present = [] { return true; };
  v1::SynchronizeRequest agent;
  agent.set_protocol_version(v1::PROTOCOL_VERSION_1);
  agent.set_agent_id("agent");
  agent.set_boot_id("boot");
  agent.set_sequence(1);
  *agent.add_devices() = DeviceOf();
  {
    const auto shell = start();
    ASSERT_TRUE(shell->SubmitJob(SpecOf("job")).ok());
    v1::LeaseJobRequest lease_job;
    lease_job.set_protocol_version(v1::PROTOCOL_VERSION_1);
    lease_job.set_tuner_id("tuner");
    v1::SubmitBatchRequest submit;
    *submit.mutable_lease() = shell->LeaseJob(lease_job, present)->lease();
    submit.set_client_batch_id("first");
    *submit.mutable_batch() = BatchOf(2);
    ASSERT_TRUE(shell->SubmitBatch(submit).ok());
    const v1::Lease lease = shell->Synchronize(agent, present)->leases(0);
    v1::LeaseResult& finished = *agent.add_finished();
    *finished.mutable_lease() = lease.reference();
    *finished.mutable_result() = TimedResult(lease.batch());
    *finished.mutable_batch() = lease.batch();
    *finished.mutable_receipt() = lease.receipt();
  }
  for (int i = 0; i < 3; ++i) {
    agent.set_boot_id("boot" + std::to_string(i));
    const auto answer = start()->Synchronize(agent, present);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->acked_lease_ids_size(), 1);
    EXPECT_EQ(store_->Summarize()->records, 2) << i;
  }
}

TEST_F(ShellTest, TheHealthOfDevicesOutlivesTheTracker) {
  const auto quarantined = [&](Shell& shell, const std::string& boot, bool passed) {
    v1::SynchronizeRequest agent;
    agent.set_protocol_version(v1::PROTOCOL_VERSION_1);
    agent.set_agent_id("agent");
    agent.set_boot_id(boot);
    *agent.add_devices() = DeviceOf();
    for (uint64_t number = 1; number <= 3; ++number) {
      agent.mutable_devices(0)->mutable_golden()->set_number(number);
      agent.mutable_devices(0)->mutable_golden()->set_passed(passed);
      agent.set_sequence(number);
      EXPECT_TRUE(shell.Synchronize(agent, [] { return true; }).ok());
    }
    return shell.ListDevices(v1::ListDevicesRequest()).devices(0).health() == v1::DEVICE_HEALTH_QUARANTINED;
  };
  const auto start = [&] {
    return Shell::Start(FarmOptions(), FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  };
  EXPECT_TRUE(quarantined(*start(), "first", false));
  EXPECT_TRUE(quarantined(*start(), "second", true)) << "well, and not yet tried again";
  ASSERT_TRUE(start()->Undrain("agent").ok());
  EXPECT_FALSE(quarantined(*start(), "third", true));
}

// As gRPC's threads call it: agents and tuners that work, people who watch, and a stop while they do. Work is waited
// for: how long it takes is the machine's affair.
TEST_F(ShellTest, ManyThreadsMayCallAtOnce) {
  const auto shell =
      Shell::Start(FarmOptions(), FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  std::atomic<bool> ended{false};
  const auto present = [&] { return !ended.load(); };
  std::vector<std::thread> workers, watchers;
  for (int i = 0; i < 2; ++i) {
    workers.emplace_back([&, i] { Measure(*shell, std::to_string(i), present); });
    watchers.emplace_back([&, i] {
      v1::WatchJobRequest watch;
      watch.set_job_id(shell->SubmitJob(SpecOf("watched" + std::to_string(i)))->id());
      while (present()) {
        (void)shell->WatchJob(watch, present);
        (void)shell->ListDevices(v1::ListDevicesRequest());
        (void)shell->Counters();
        (void)shell->ListJobs(v1::ListJobsRequest());
      }
    });
  }
  absl::SleepFor(absl::Milliseconds(700));  // longer than a tick
  for (std::thread& worker : workers) worker.join();
  shell->Stop();
  ended = true;
  for (std::thread& watcher : watchers) watcher.join();
  EXPECT_GT(store_->Summarize()->records, 0);
}

}  // namespace
}  // namespace hone::tracker
