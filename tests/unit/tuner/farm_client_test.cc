// SPDX-License-Identifier: Apache-2.0
#include "tuner/farm_client.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/steady_time.h"
#include "base/temporary_folder.h"
#include "hone/v1/tuner.grpc.pb.h"
#include "transport/transport.h"
#include "tuner/convert.h"

namespace hone::tuner {
namespace {

// A tracker that answers the first `failing_calls` calls with `code`, each after `passes` seconds, and then works. Its
// first two calls with a batch exceed their deadline; the third one is aborted.
class FailingTracker final : public v1::TunerService::Service {
 public:
  grpc::Status ReportProgress(grpc::ServerContext*, const v1::ReportProgressRequest* request,
                              v1::ReportProgressResponse* response) override {
    last = *request;
    response->mutable_waited()->set_seconds(waited);
    if (++calls > failing_calls) return grpc::Status::OK;
    now = now.load() + passes;
    return {code, "no space left on the disk"};
  }
  grpc::Status SubmitBatch(grpc::ServerContext* context, const v1::SubmitBatchRequest*,
                           v1::SubmitBatchResponse*) override {
    const std::lock_guard lock(mutex_);
    limits_.push_back(absl::FromChrono(context->deadline() - std::chrono::system_clock::now()));
    return {limits_.size() < 3 ? grpc::StatusCode::DEADLINE_EXCEEDED : grpc::StatusCode::ABORTED, "too slow"};
  }
  // Returns the time limits of the calls with a batch since the last call of this function.
  std::vector<absl::Duration> Limits() {
    const std::lock_guard lock(mutex_);
    return std::exchange(limits_, {});
  }

  v1::ReportProgressRequest last;  // read it only after the answer
  std::atomic<int> calls{0};
  std::atomic<int64_t> now{1'000'000};  // seconds
  int failing_calls = 0;
  int64_t passes = 15 * 60;        // seconds
  std::atomic<int64_t> waited{0};  // seconds for which, by its report, the job waited for devices
  grpc::StatusCode code = grpc::StatusCode::UNAVAILABLE;

 private:
  std::mutex mutex_;
  std::vector<absl::Duration> limits_;
};

class FarmClientTest : public testing::Test {
 protected:
  FarmClientTest() {
    const std::string address = "unix:" + (folder_ / "socket").string();
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&tracker_);
    builder.SetMaxReceiveMessageSize(kMessageBytesMax);
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  }
  ~FarmClientTest() override { server_->Shutdown(); }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  FailingTracker tracker_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  JobClock job_clock_{[this] { return absl::FromUnixSeconds(tracker_.now); }};
  FarmClient client_{[this] { return channel_; }, v1::JobLease(), "test", &job_clock_};
};

TEST_F(FarmClientTest, WaitsWithoutLimitForATrackerThatCannotStore) {
  tracker_.failing_calls = 4;
  const absl::Time before = job_clock_.Now();
  EXPECT_EQ(client_.Report(Progress()), absl::OkStatus());
  EXPECT_EQ(tracker_.calls, 5);
  // Time before the first answer does not count as waiting.
  EXPECT_EQ(job_clock_.Now() - before, absl::Minutes(15));
  tracker_.now = tracker_.now + 60;
  EXPECT_EQ(job_clock_.Now() - before, absl::Minutes(16));
}

TEST_F(FarmClientTest, WaitingForDevicesIsNotTheJobsTime) {
  const absl::Time before = job_clock_.Now();
  tracker_.now = tracker_.now + 60;
  tracker_.waited = 45;
  EXPECT_EQ(client_.Report(Progress()), absl::OkStatus());
  EXPECT_EQ(job_clock_.Now() - before, absl::Seconds(15));
  tracker_.waited = 40;  // an older answer that arrives late
  EXPECT_EQ(client_.Report(Progress()), absl::OkStatus());
  EXPECT_EQ(job_clock_.Now() - before, absl::Seconds(15));
}

TEST_F(FarmClientTest, AQuotaIsWaitedForAWhileOnly) {
  tracker_.failing_calls = 100;
  tracker_.code = grpc::StatusCode::RESOURCE_EXHAUSTED;
  EXPECT_TRUE(absl::IsResourceExhausted(client_.Report(Progress())));
  EXPECT_EQ(tracker_.calls, 1);
}

TEST_F(FarmClientTest, AQuotaThatIsFreeSoonIsWaitedFor) {
  tracker_.failing_calls = 2;
  tracker_.passes = 5;
  tracker_.code = grpc::StatusCode::RESOURCE_EXHAUSTED;
  EXPECT_EQ(client_.Report(Progress()), absl::OkStatus());
  EXPECT_EQ(tracker_.calls, 3);
}

// A call over a slow line takes the same time when it is repeated, so it needs a longer limit.
TEST_F(FarmClientTest, ACallThatTookTooLongGetsMoreTime) {
  EXPECT_TRUE(absl::IsAborted(client_.Measure(Batch()).status()));
  const std::vector<absl::Duration> limits = tracker_.Limits();
  ASSERT_EQ(limits.size(), 3u);
  EXPECT_GT(limits[1], limits[0] + absl::Seconds(20));
  EXPECT_GT(limits[2], limits[1] + absl::Seconds(40));
}

TEST_F(FarmClientTest, ALargeBatchGetsMoreTimeThanASmallOne) {
  Batch large;
  large.artifact = std::string(3 << 20, 'x');
  EXPECT_TRUE(absl::IsAborted(client_.Measure(large).status()));
  const std::vector<absl::Duration> limits = tracker_.Limits();
  EXPECT_TRUE(absl::IsAborted(client_.Measure(Batch()).status()));
  EXPECT_GT(limits.at(0), tracker_.Limits().at(0) + absl::Seconds(30));
}

TEST_F(FarmClientTest, PermanentErrorsAreReturnedAtOnce) {
  tracker_.failing_calls = 100;
  tracker_.code = grpc::StatusCode::ABORTED;
  EXPECT_TRUE(absl::IsAborted(client_.Report(Progress())));
  EXPECT_EQ(tracker_.calls, 1);
}

TEST_F(FarmClientTest, RenewLeaseOnlyRenewsAndDoesNotWait) {
  tracker_.failing_calls = 1;
  client_.RenewLease();
  EXPECT_EQ(tracker_.calls, 1);
  EXPECT_TRUE(tracker_.last.has_lease());
  EXPECT_FALSE(tracker_.last.has_progress());
}

Progress ProgressOf(size_t workloads, const std::string& schedule) {
  Progress progress;
  for (size_t i = 0; i < workloads; ++i) {
    progress.workloads.push_back(
        {.digest = std::string(64, 'd'), .trials = 100, .best_seconds = 1e-3, .best_schedule = schedule});
  }
  return progress;
}

TEST_F(FarmClientTest, AScheduleIsReportedWhenItIsNew) {
  Progress progress = ProgressOf(2, "split");
  ASSERT_EQ(client_.Report(progress), absl::OkStatus());
  EXPECT_EQ(tracker_.last.progress().workloads(0).best_schedule(), "split");
  progress.workloads[1].best_schedule = "fuse";
  progress.workloads[1].trials = 200;
  ASSERT_EQ(client_.Report(progress), absl::OkStatus());
  const v1::JobProgress second = tracker_.last.progress();
  EXPECT_TRUE(second.workloads(0).same_schedule());
  EXPECT_EQ(second.workloads(0).best_schedule(), "");
  EXPECT_FALSE(second.workloads(1).same_schedule());
  EXPECT_EQ(second.workloads(1).best_schedule(), "fuse");
  EXPECT_EQ(second.workloads(1).trials(), 200);
  progress.workloads[0].best_schedule.clear();  // the best schedule failed a later check
  ASSERT_EQ(client_.Report(progress), absl::OkStatus());
  EXPECT_FALSE(tracker_.last.progress().workloads(0).same_schedule());
  EXPECT_TRUE(tracker_.last.progress().workloads(1).same_schedule());
}

TEST_F(FarmClientTest, AReportOfTheLargestJobIsOneThatATrackerTakes) {
  const Progress progress = ProgressOf(4000, std::string(3000, 's'));
  ASSERT_EQ(client_.Report(progress), absl::OkStatus());
  EXPECT_LT(tracker_.last.progress().ByteSizeLong(), size_t{8} << 20);
  ASSERT_EQ(client_.Report(progress), absl::OkStatus());
  EXPECT_LT(tracker_.last.progress().ByteSizeLong(), size_t{1} << 20);
  EXPECT_TRUE(tracker_.last.progress().workloads(0).same_schedule());
  EXPECT_FALSE(tracker_.last.progress().workloads(3999).same_schedule()) << "it was never said";
}

TEST_F(FarmClientTest, AbandonEndsTheWaiting) {
  tracker_.failing_calls = 1'000'000;
  std::thread abandon([&] {
    while (tracker_.calls < 2) std::this_thread::yield();
    client_.Abandon();
  });
  EXPECT_TRUE(absl::IsCancelled(client_.Report(Progress())));
  abandon.join();
}

TEST(JobClockTest, TimeOfSeveralWaitingCallsCountsOnce) {
  int64_t now = 0;
  JobClock job_clock([&] { return absl::FromUnixSeconds(now); });
  {
    const JobClock::Wait first(job_clock);
    now = 10;
    {
      const JobClock::Wait second(job_clock);
      now = 30;
      EXPECT_EQ(job_clock.Now(), absl::FromUnixSeconds(0));
    }
    now = 35;
  }
  now = 40;
  EXPECT_EQ(job_clock.Now(), absl::FromUnixSeconds(5));
  {
    const JobClock::Wait again(job_clock);
    now = 50;
  }
  EXPECT_EQ(job_clock.Now(), absl::FromUnixSeconds(5));
}

// A budget of ten minutes must end neither early nor late if the system's clock is set.
TEST(JobClockTest, UsesTheSteadyClock) {
  const JobClock job_clock;
  const absl::Time before = SteadyNow();
  const absl::Time now = job_clock.Now();
  EXPECT_GE(now, before);
  EXPECT_LE(now, SteadyNow());
}

TEST(JobClockTest, LogsOnceAMinuteForAllWaitingCalls) {
  const auto lines = std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(100);
  spdlog::default_logger()->sinks().push_back(lines);
  int64_t now = 1000;
  JobClock job_clock([&] { return absl::FromUnixSeconds(now); });
  for (const int calls : {1, 2, 3}) {
    for (int i = 0; i < calls; ++i) {
      JobClock::Wait wait(job_clock);
      wait.LogWaiting("lab:9190", "its disk is full");
    }
  }
  EXPECT_EQ(lines->last_formatted().size(), 1u);
  now += 59;
  JobClock::Wait wait(job_clock);
  wait.LogWaiting("lab:9190", "its disk is full");
  EXPECT_EQ(lines->last_formatted().size(), 1u);
  now += 1;
  wait.LogWaiting("lab:9190", "it stands still");
  ASSERT_EQ(lines->last_formatted().size(), 2u);
  EXPECT_NE(lines->last_formatted()[1].find("waiting for tracker lab:9190: it stands still"), std::string::npos);
  spdlog::default_logger()->sinks().pop_back();
}

TEST(PastTrialTest, KnowsItsBatchAndItsTime) {
  v1::Record record;
  record.set_batch_id("farm/b1");
  record.set_confirmed(true);
  record.mutable_time()->set_seconds(1000);
  record.mutable_time()->set_nanos(5'000'000);
  const PastTrial trial = FromProto(record);
  EXPECT_EQ(trial.batch, "farm/b1");
  EXPECT_TRUE(trial.confirmed);
  EXPECT_EQ(trial.measured_at, absl::FromUnixMillis(1'000'005));
}

TEST(WorkloadProgressTest, SaysWhatWentWrong) {
  Progress progress;
  progress.workloads.push_back({.digest = "d1", .failure_reason = "it does not compile"});
  EXPECT_EQ(ToProto(progress).workloads(0).trouble(), "it does not compile");
}

TEST(TimeSpentTest, GoesOnFromOneAttemptToTheNext) {
  v1::Job job;
  v1::TimeSpent& spent = *job.mutable_progress()->mutable_spent();
  spent.set_proposing_seconds(1);
  spent.set_learning_seconds(2);
  spent.set_building_seconds(3);
  spent.set_waiting_seconds(4);
  spent.set_measuring_seconds(5);
  spent.set_drawn(6);
  spent.set_illegal(7);
  spent.set_repeated(8);
  const v1::JobProgress next = ToProto(FromProto(job).earlier);
  EXPECT_EQ(next.spent().SerializeAsString(), spent.SerializeAsString());
}

}  // namespace
}  // namespace hone::tuner
