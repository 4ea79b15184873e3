// SPDX-License-Identifier: Apache-2.0
// Failures with real processes: agents that stop, trackers that stall or die, and a full disk.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "tests/farm/process_farm.h"

namespace hone::farm {
namespace {

using agent::HandMadeBatch;
using ::testing::HasSubstr;

class FarmFailureTest : public FarmProcessTest {
 protected:
  v1::Job JobNow() { return GetJob(job_.id()); }
  void SubmitJobWithoutDevice(const std::string& request_id = "a") {
    v1::JobSpec spec = tracker::SpecOf(request_id);
    spec.set_target("cpu -mcpu=znver4 -threads=1");
    tracker::SetWorkload(*spec.mutable_workloads(0),
                         "workload \"twice\"\ninput p0: f32[1000] in [-1, 1]\n"
                         "t0: f32[1000] over i0:1000 = p0[i0] + p0[i0]\noutput t0\n");
    job_ = SubmitJob(spec);
  }
  // Counts the results in the outbox. Files with other extensions are incomplete.
  int64_t Kept() {
    return std::count_if(std::filesystem::directory_iterator(folder_ / "outbox"), std::filesystem::directory_iterator(),
                         [](const auto& entry) { return entry.path().extension() == ".result"; });
  }
};

TEST_F(FarmFailureTest, ADeviceShowsItsGoldenKernel) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  ASSERT_TRUE(Eventually([&] { return !Devices().empty(); }));
  const v1::Device device = Devices()[0];
  EXPECT_TRUE(device.state().golden().passed()) << agent->Log();
  EXPECT_GT(device.golden_baseline_seconds(), 0);
}

TEST_F(FarmFailureTest, AnAgentThatIsStoppedReturnsItsBatch) {
  StartTracker();
  Connect();
  std::unique_ptr<Process> agent = StartAgent();
  LeaseNewJob("a");
  const std::string batch = Submit(LongBatch(2), "b1");
  ASSERT_TRUE(Eventually([&] { return Measuring(); }));
  agent->Signal(SIGTERM);
  EXPECT_EQ(agent->Wait(), 0);
  EXPECT_EQ(Counters().batches_queued(), 1) << "at once, not when the lease is over";
  agent = StartAgent();
  EXPECT_EQ(Wait(batch).outcomes_size(), 2);
  EXPECT_EQ(Counters().leases_lost(), 0);
  EXPECT_EQ(Devices()[0].record().troubles(), 0);
}

TEST_F(FarmFailureTest, ATunerThatIsStoppedGivesItsJobBack) {
  StartTracker();
  Connect();
  SubmitJobWithoutDevice();
  const std::unique_ptr<Process> tuner = StartTuner();
  ASSERT_TRUE(Eventually([&] { return JobNow().state() == v1::JOB_STATE_RUNNING; })) << tuner->Log();
  tuner->Signal(SIGTERM);
  EXPECT_EQ(tuner->Wait(), 0) << tuner->Log();
  EXPECT_EQ(JobNow().state(), v1::JOB_STATE_QUEUED) << "at once, not when the lease is over";
  EXPECT_EQ(JobNow().attempts(), 0);
  EXPECT_EQ(JobNow().fruitless(), 0);
}

// True once the tuner has blocked SIGTERM, which it does before it starts threads. An earlier SIGTERM would just end
// it.
bool HoldsSigtermBack(pid_t tuner) {
  std::ifstream status(fmt::format("/proc/{}/status", tuner));
  for (std::string word; status >> word;) {
    int threads = 0;
    if (word == "Threads:" && status >> threads) return threads > 1;
  }
  return false;
}

// This must hold even if the tuner stops while its request is under way and never receives the answer.
TEST_F(FarmFailureTest, TunerStoppedDuringLeaseCallReturnsTheJob) {
  StartTracker();
  Connect();
  for (int round = 0; round < 20; ++round) {
    const std::unique_ptr<Process> tuner = StartTuner();
    ASSERT_TRUE(Eventually([&] { return HoldsSigtermBack(tuner->pid()); })) << tuner->Log();
    std::this_thread::sleep_for(std::chrono::milliseconds(150));  // by then the tuner has usually sent its request
    SubmitJobWithoutDevice(std::to_string(round));
    std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    tuner->Signal(SIGTERM);
    EXPECT_EQ(tuner->Wait(), 0) << tuner->Log();
    EXPECT_EQ(JobNow().state(), v1::JOB_STATE_QUEUED) << round;
    EXPECT_EQ(JobNow().attempts(), 0) << round;
    grpc::ClientContext context;
    v1::CancelJobRequest cancel;
    cancel.set_job_id(job_.id());
    ASSERT_TRUE(v1::JobService::NewStub(channel_)->Cancel(&context, cancel, &job_).ok());
  }
}

TEST_F(FarmFailureTest, AStandstillOfTheTrackerLosesNoAgent) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  LeaseNewJob("a");
  const std::string batch = Submit(LongBatch(2), "b1");
  ASSERT_TRUE(Eventually([&] { return Measuring(); }));
  tracker_->Signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(32));  // longer than the leases of agents and tuners
  tracker_->Signal(SIGCONT);
  EXPECT_EQ(Wait(batch).outcomes_size(), 2) << "our own lease holds, too";
  EXPECT_EQ(Counters().leases_lost(), 0) << tracker_->Log();
  EXPECT_EQ(Stats().records(), 2);
  EXPECT_EQ(Devices()[0].health(), v1::DEVICE_HEALTH_GOOD);
}

// The results were measured while the tracker was away, then agent and tracker were killed. Each result is recorded
// exactly once.
TEST_F(FarmFailureTest, ResultsSurviveRestartsOfAgentAndTracker) {
  StartTracker();
  Connect();
  const std::vector<std::string> kept = {"--outbox", folder_ / "outbox"};
  std::unique_ptr<Process> agent = StartAgent("test", kept);
  LeaseNewJob("a");
  Submit(LongBatch(6), "b1");
  ASSERT_TRUE(Eventually([&] { return Measuring(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // until the agent has received it
  tracker_->Signal(SIGSTOP);
  ASSERT_TRUE(Eventually([&] { return Kept() == 1; })) << agent->Log();
  for (Process* process : {agent.get(), tracker_.get()}) {
    process->Signal(SIGKILL);
    EXPECT_EQ(process->Wait(), -SIGKILL);
  }
  StartTracker();
  Connect();
  EXPECT_EQ(Stats().records(), 0);
  agent = StartAgent("test", kept);
  ASSERT_TRUE(Eventually([&] { return Kept() == 0; })) << agent->Log();
  EXPECT_EQ(Stats().records(), 2) << tracker_->Log();
  EXPECT_EQ(Counters().results_recovered(), 1);
}

// A small file system of its own for the tracker's files.
class SmallDisk {
 public:
  explicit SmallDisk(const std::filesystem::path& path) : path_(path) {
    std::filesystem::create_directory(path_);
    mounted_ = mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=4m") == 0;
    if (!mounted_) why_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const std::string& why() const { return why_; }
  void Fill() const {
    std::ofstream file(path_ / "filling", std::ios::binary);
    const std::string block(4096, 'x');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void Free() const { std::filesystem::remove(path_ / "filling"); }

 private:
  const std::filesystem::path path_;
  bool mounted_ = false;
  std::string why_;
};

TEST_F(FarmFailureTest, AFullDiskIsWaitedForAndNothingIsLost) {
  const SmallDisk disk(folder_ / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "no disk of its own can be made here: " << disk.why();
  records_ = folder_ / "disk" / "records";
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  LeaseNewJob("a");
  const std::string batch = Submit(LongBatch(2), "b1");
  ASSERT_TRUE(Eventually([&] { return Measuring(); }));
  disk.Fill();
  ASSERT_TRUE(Eventually([&] {
    return tracker_->Log().find("the tracker cannot store anything") != std::string::npos;
  })) << tracker_->Log();
  EXPECT_THAT(JobNow().waiting_for(), HasSubstr("no space left on the disk"));
  {
    grpc::ClientContext context;
    v1::LeaseJobRequest lease;
    lease.set_protocol_version(v1::PROTOCOL_VERSION_1);
    lease.set_tuner_id("another");
    v1::LeaseJobResponse response;
    const grpc::Status refused = v1::TunerService::NewStub(channel_)->LeaseJob(&context, lease, &response);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_THAT(refused.error_message(), HasSubstr("the tracker cannot store anything now"));
  }
  for (int i = 0; i < 5; ++i) {  // longer than an agent's lease
    std::this_thread::sleep_for(std::chrono::seconds(5));
    grpc::ClientContext context;
    v1::ReportProgressRequest alive;
    *alive.mutable_lease() = lease_;
    v1::ReportProgressResponse response;
    v1::TunerService::NewStub(channel_)->ReportProgress(&context, alive, &response);
  }
  EXPECT_EQ(JobNow().state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Counters().leases_lost(), 0);
  disk.Free();
  EXPECT_EQ(Wait(batch).outcomes_size(), 2) << tracker_->Log();
  EXPECT_EQ(Stats().records(), 2);
  EXPECT_EQ(JobNow().attempts(), 1);
  EXPECT_EQ(JobNow().waiting_for(), "");
  EXPECT_THAT(tracker_->Log(), HasSubstr("storing works again"));
}

}  // namespace
}  // namespace hone::farm
