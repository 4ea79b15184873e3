// SPDX-License-Identifier: Apache-2.0
#include "tracker/end_reason.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/convert.h"
#include "tests/farm/builders.h"

namespace hone::tracker {
namespace {

const absl::Time kCreated = absl::FromUnixSeconds(1'000'000);

v1::Job Succeeded(int64_t trials, double seconds) {
  v1::Job job;
  *job.mutable_spec() = SpecOf("net");
  job.mutable_spec()->set_trials(0);
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  job.mutable_progress()->set_trials(trials);
  job.mutable_progress()->set_seconds(seconds);
  *job.mutable_created() = ToProto(kCreated);
  *job.mutable_started() = ToProto(kCreated);
  *job.mutable_ended() = ToProto(kCreated + absl::Seconds(seconds));
  return job;
}

TEST(EndReasonTest, AJobThatReachedALimitSaysWhich) {
  v1::Job job = Succeeded(64, 100);
  job.mutable_spec()->set_trials(64);
  EXPECT_EQ(EndReason(job), "it made the 64 trials that it was allowed");
  job = Succeeded(64, 597);
  *job.mutable_spec()->mutable_time_budget() = ToProto(absl::Minutes(10));
  EXPECT_EQ(EndReason(job), "its tuning time of 10m was used up");
  job = Succeeded(64, 597);
  *job.mutable_spec()->mutable_until() = ToProto(kCreated + absl::Minutes(10));
  EXPECT_EQ(EndReason(job), "it reached its end time");
}

TEST(EndReasonTest, AJobThatEndedLongBeforeItsLimitsExplainsItself) {
  v1::Job job = Succeeded(24, 28);
  job.mutable_spec()->set_trials(64);
  *job.mutable_spec()->mutable_until() = ToProto(kCreated + absl::Seconds(448));
  EXPECT_EQ(EndReason(job),
            "the search of every workload has converged: more trials would hardly find faster kernels; 40 of 64 trials "
            "and 7m until its end time were left");
  EXPECT_EQ(EndReason(Succeeded(0, 1)),
            "no trial was made: the records already have as many trials as this budget allows or as are useful, or the "
            "time was too short for one");
}

TEST(EndReasonTest, WorkloadsThatWereNotMeasuredAreTold) {
  v1::Job job = Succeeded(64, 100);
  job.mutable_spec()->set_trials(64);
  job.mutable_progress()->add_workloads()->set_trouble("no compiler");
  EXPECT_EQ(EndReason(job), "it made the 64 trials that it was allowed; 1 of its workloads could not be measured");
}

TEST(EndReasonTest, OtherEndsHaveTheirReasons) {
  v1::Job job = Succeeded(1, 1);
  job.set_state(v1::JOB_STATE_FAILED);
  job.set_error("no device");
  EXPECT_EQ(EndReason(job), "no device");
  job.set_state(v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(EndReason(job), "it was cancelled");
  job.clear_started();
  EXPECT_EQ(EndReason(job), "it was cancelled before it began");
  job.set_state(v1::JOB_STATE_RUNNING);
  EXPECT_EQ(EndReason(job), "");
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  job.mutable_spec()->mutable_run();
  EXPECT_EQ(EndReason(job), "");
}

}  // namespace
}  // namespace hone::tracker
