// SPDX-License-Identifier: Apache-2.0
// A job is submitted exactly once, even if the tracker refuses or does not answer at first.
#include "cli/job_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "cli/job_view.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// A tracker that refuses the first `refusals` calls with `code`, and then accepts.
class FailingTracker final : public v1::JobService::Service {
 public:
  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitJobRequest* request, v1::Job* job) override {
    requests.push_back(request->spec().request_id());
    if (static_cast<int>(requests.size()) <= refusals) return {code, "no space left on the disk"};
    job->set_id("j1");
    return grpc::Status::OK;
  }

  // Refuses as Submit does; then reports the end of the job.
  grpc::Status Watch(grpc::ServerContext*, const v1::WatchJobRequest* request,
                     v1::WatchJobResponse* response) override {
    if (++watches <= refusals) return {code, "no space left on the disk"};
    response->mutable_job()->set_id(request->job_id());
    response->mutable_job()->set_state(v1::JOB_STATE_SUCCEEDED);
    return grpc::Status::OK;
  }

  std::vector<std::string> requests;
  int refusals = 0, watches = 0;
  grpc::StatusCode code = grpc::StatusCode::UNAVAILABLE;
};

class JobClientTest : public testing::Test {
 protected:
  JobClientTest() {
    const std::string address = "unix:" + (folder_ / "socket").string();
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&tracker_);
    server_ = builder.BuildAndStart();
    client_ = std::make_unique<JobClient>(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()), "test");
  }
  ~JobClientTest() override { server_->Shutdown(); }

  // Submits a job and gives up after `most` refusals. The messages to the user are in said_.
  absl::StatusOr<std::vector<v1::Job>> Submit(int most) {
    v1::JobSpec spec;
    spec.set_request_id("r1");
    testing::internal::CaptureStderr();
    auto jobs = client_->Submit({spec}, [&](absl::Duration) { return --most > 0; });
    said_ = testing::internal::GetCapturedStderr();
    return jobs;
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  FailingTracker tracker_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<JobClient> client_;
  std::string said_;
};

TEST_F(JobClientTest, AJobThatCannotBeStoredIsSubmittedAgainAsTheSame) {
  tracker_.refusals = 2;
  const auto jobs = Submit(100);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->front().id(), "j1");
  EXPECT_THAT(tracker_.requests, AllOf(SizeIs(3), Each("r1")));
  EXPECT_EQ(said_,
            "the tracker has not accepted the job yet, submitting it again: tracker test: no space left on the disk\n");
}

TEST_F(JobClientTest, GivingUpReportsThatTheJobMayBeQueued) {
  tracker_.refusals = 100;
  const absl::Status status = Submit(2).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("may be queued"), HasSubstr("hone jobs"),
                                                   HasSubstr("tracker test: no space left on the disk")));
  EXPECT_THAT(tracker_.requests, SizeIs(2));
}

TEST_F(JobClientTest, MissingAnswerIsRetriedAndLeavesTheOutcomeUnknown) {
  tracker_.refusals = 2;
  tracker_.code = grpc::StatusCode::DEADLINE_EXCEEDED;
  const auto jobs = Submit(100);
  EXPECT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_THAT(tracker_.requests, AllOf(SizeIs(3), Each("r1")));
  tracker_.refusals = 100;
  EXPECT_THAT(std::string(Submit(2).status().message()), AllOf(HasSubstr("may be queued"), HasSubstr("hone jobs")));
}

// Without a tracker at the address, a call fails at once and not only at its deadline, so that Ctrl-C is noticed.
TEST_F(JobClientTest, ConnectionFailureIsReportedWithItsReason) {
  server_->Shutdown();
  const absl::Status status = Submit(1).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(said_, HasSubstr("the tracker has not accepted the job yet, submitting it again: tracker test: "));
}

TEST_F(JobClientTest, UnreachableTrackerIsReportedOnce) {
  tracker_.refusals = 2;
  v1::Job job;
  job.set_id("j1");
  JobView view(1);
  testing::internal::CaptureStderr();
  const auto jobs = client_->Watch(
      {job}, [](const v1::WatchJobResponse&) { return absl::OkStatus(); }, [] { return absl::OkStatus(); },
      [&view](const absl::Status& status) { view.PrintTrackerAway(status); });
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "the tracker does not answer, asking again: tracker test: no space left on the disk\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->front().state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(tracker_.watches, 3);
}

TEST_F(JobClientTest, PermanentRefusalIsNotRetried) {
  tracker_.refusals = 100;
  tracker_.code = grpc::StatusCode::INVALID_ARGUMENT;
  const absl::Status status = Submit(100).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("may be queued")));
  EXPECT_THAT(tracker_.requests, SizeIs(1));
  EXPECT_EQ(said_, "");
}

}  // namespace
}  // namespace hone::cli
