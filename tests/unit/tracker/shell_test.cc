#include "tracker/shell.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/farm/builders.h"

namespace hone::tracker {
namespace {

class ShellTest : public testing::Test {
 protected:
  ShellTest() {
    std::string folder = (std::filesystem::temp_directory_path() / "hone-shell-XXXXXX").string();
    folder_ = mkdtemp(folder.data());
    store_ = records::Store::Open(folder_ / "records.db", records::OpenMode::kReadWrite).value();
  }
  ~ShellTest() override { std::filesystem::remove_all(folder_); }

  // One batch of two candidates through a farm that keeps its jobs in `state`, from the job to the acknowledged result.
  void MeasureTwo(const std::string& state) {
    const auto shell = Shell::Start(FarmOptions(), FarmState::Open(folder_ / state).value(), store_.get()).value();
    const auto present = [] { return true; };
    ASSERT_TRUE(shell->SubmitJob(SpecOf("job" + state)).ok());
    v1::LeaseJobRequest lease_job;
    lease_job.set_protocol_version(v1::PROTOCOL_VERSION_1);
    lease_job.set_tuner_id("tuner");
    v1::SubmitBatchRequest submit;
    *submit.mutable_lease() = shell->LeaseJob(lease_job, present)->lease();
    submit.set_client_batch_id("first");
    *submit.mutable_batch() = BatchOf(2);
    ASSERT_TRUE(shell->SubmitBatch(submit).ok());
    v1::SynchronizeRequest agent;
    agent.set_protocol_version(v1::PROTOCOL_VERSION_1);
    agent.set_agent_id("agent");
    agent.set_boot_id("boot");
    agent.set_sequence(1);
    *agent.add_devices() = DeviceOf();
    const auto registered = shell->Synchronize(agent, present);
    ASSERT_TRUE(registered.ok()) << registered.status();
    agent.set_epoch(registered->epoch());
    agent.set_sequence(2);
    const auto offered = registered->leases_size() > 0 ? registered : shell->Synchronize(agent, present);
    ASSERT_EQ(offered->leases_size(), 1);
    v1::LeaseResult* finished = agent.add_finished();
    *finished->mutable_lease() = offered->leases(0).reference();
    *finished->mutable_result() = TimedResult(offered->leases(0).batch());
    agent.set_sequence(3);
    EXPECT_EQ(shell->Synchronize(agent, present)->acked_lease_ids_size(), 1);
  }

  std::filesystem::path folder_;
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

}  // namespace
}  // namespace hone::tracker
