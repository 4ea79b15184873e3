// SPDX-License-Identifier: Apache-2.0
// Several jobs at a time with real processes: a tracker, agents and a tuner.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include "tests/farm/process_farm.h"

namespace hone::farm {
namespace {

using ::testing::HasSubstr;

std::string MatMul(int columns) {
  return fmt::format(
      "workload \"matmul\"\ninput p0: f32[64,128] in [-1, 1]\nconst p1: f32[128,{0}] in [-1, 1]\n"
      "t0: f32[64,{0}] over i0:64, i1:{0} = sum i2:128 of p0[i0, i2] * p1[i2, i1]\noutput t0\n",
      columns);
}

class FarmSchedulingTest : public FarmProcessTest {
 protected:
  // A job with one matrix product, for this machine's CPU by default. A different number of columns makes another
  // workload, with records of its own.
  static v1::JobSpec SpecFor(const std::string& name, int columns, const std::string& target = "cpu -threads=1") {
    v1::JobSpec spec = tracker::SpecOf(name);
    spec.set_target(target);
    spec.set_trials(4);
    tracker::SetWorkload(*spec.mutable_workloads(0), MatMul(columns));
    return spec;
  }
  bool Becomes(const std::string& id, v1::JobState state) {
    return Eventually([&] { return GetJob(id).state() == state; });
  }
};

TEST_F(FarmSchedulingTest, AnAbsentBoardBlocksNoOtherJob) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent("hall", {"--label", "room=hall"});
  ASSERT_TRUE(Eventually([&] { return !Devices().empty(); })) << agent->Log();
  const std::string other_kind = SubmitJob(SpecFor("other kind", 96, "arm64 -mcpu=cortex-a76 -threads=1")).id();
  v1::JobSpec spec = SpecFor("other room", 96);
  (*spec.mutable_labels())["room"] = "lab";
  const std::string other_room = SubmitJob(spec).id();
  const std::string here = SubmitJob(SpecFor("here", 64)).id();
  const std::unique_ptr<Process> tuner = StartTuner({"--jobs", "1"});
  ASSERT_TRUE(Becomes(here, v1::JOB_STATE_SUCCEEDED)) << tuner->Log();
  EXPECT_EQ(GetJob(other_kind).state(), v1::JOB_STATE_QUEUED);
  EXPECT_THAT(GetJob(other_kind).waiting_for(), HasSubstr("a device for architecture aarch64"));
  EXPECT_EQ(GetJob(other_kind).attempts(), 0);
  EXPECT_EQ(GetJob(other_room).waiting_for(), "a device for label room=lab");
  EXPECT_FALSE(GetJob(other_room).has_started()) << "no tuner looked at it";
  const std::unique_ptr<Process> lab = StartAgent("lab", {"--label", "room=lab"});
  ASSERT_TRUE(Becomes(other_room, v1::JOB_STATE_SUCCEEDED)) << tuner->Log() << lab->Log();
  EXPECT_GE(GetJob(other_room).progress().trials(), 4);
  for (const v1::Device& device : Devices()) EXPECT_GT(device.batches_done(), 0) << device.agent_id();
}

TEST_F(FarmSchedulingTest, OneTunerTunesSeveralJobsAndReturnsThemWhenStopped) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  ASSERT_TRUE(Eventually([&] { return !Devices().empty(); })) << agent->Log();
  std::vector<std::string> jobs;
  for (const int columns : {64, 96}) {
    v1::JobSpec spec = SpecFor(fmt::format("{} columns", columns), columns);
    spec.set_trials(100'000);
    jobs.push_back(SubmitJob(spec).id());
  }
  const std::unique_ptr<Process> tuner = StartTuner({"--jobs", "2"});
  const auto tuned = [&](const std::string& id) {
    const v1::Job job = GetJob(id);
    return job.state() == v1::JOB_STATE_RUNNING && job.progress().trials() > 0;
  };
  ASSERT_TRUE(Eventually([&] { return tuned(jobs[0]) && tuned(jobs[1]); })) << tuner->Log();
  tuner->Signal(SIGTERM);
  EXPECT_EQ(tuner->Wait(), 0) << tuner->Log();
  for (const std::string& id : jobs) {
    EXPECT_EQ(GetJob(id).state(), v1::JOB_STATE_QUEUED) << "at once, not when the lease is over";
    EXPECT_EQ(GetJob(id).attempts(), 0);
    EXPECT_EQ(GetJob(id).needs().fingerprint_digest(), Devices()[0].state().fingerprint().digest());
  }
}

TEST_F(FarmSchedulingTest, AJobEndsAtItsTimeWithTheResultsItHas) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  ASSERT_TRUE(Eventually([&] { return !Devices().empty(); })) << agent->Log();
  // More trials than fit into the time, and few workloads: even a busy machine times each once in half of it.
  v1::JobSpec spec = SpecFor("a", 64);
  tracker::SetWorkload(*spec.add_workloads(), MatMul(80));
  spec.set_trials(1'000'000);
  spec.mutable_until()->set_seconds(time(nullptr) + 20);
  const std::string id = SubmitJob(spec).id();
  const std::unique_ptr<Process> tuner = StartTuner({"--jobs", "1"});
  ASSERT_TRUE(Eventually([&] { return GetJob(id).has_ended(); })) << tuner->Log();
  EXPECT_EQ(GetJob(id).state(), v1::JOB_STATE_SUCCEEDED) << GetJob(id).error();
  EXPECT_GT(GetJob(id).progress().trials(), 0);
  EXPECT_TRUE(GetJob(id).progress().has_latency_after_seconds());
}

}  // namespace
}  // namespace hone::farm
