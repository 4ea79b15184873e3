#include "tracker/shell.h"

#include <gtest/gtest.h>

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
