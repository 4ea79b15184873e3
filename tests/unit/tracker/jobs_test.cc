// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/jobs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/farm/builders.h"
#include "tracker/queue/memory.h"

namespace hone::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class JobQueueTest : public testing::Test {
 protected:
  std::string Submit(const std::string& name, int priority = 0) {
    return queue_.Submit(SpecOf(name, priority), now_).value()->id();
  }
  JobQueue queue_{JobOptions{}, 1, CountingIds()};
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
};

TEST_F(JobQueueTest, SubmitIsIdempotentByRequest) {
  EXPECT_EQ(Submit("a"), Submit("a"));
  EXPECT_EQ(queue_.List({}).size(), 1u);
  EXPECT_NE(Submit("a"), Submit("b"));
}

TEST_F(JobQueueTest, RefusesInvalidSpecs) {
  const auto error = [&](auto&& breakage) {
    v1::JobSpec spec = SpecOf("x");
    breakage(spec);
    const absl::Status status = queue_.Submit(spec, now_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(error([](v1::JobSpec& s) { s.clear_request_id(); }), HasSubstr("request_id"));
  EXPECT_THAT(error([](v1::JobSpec& s) { s.clear_target(); }), HasSubstr("target"));
  EXPECT_THAT(error([](v1::JobSpec& s) { s.clear_workloads(); }), HasSubstr("no workload"));
  EXPECT_THAT(error([](v1::JobSpec& s) { s.set_threads(0); }), HasSubstr("thread"));
  EXPECT_THAT(error([](v1::JobSpec& s) { s.set_trials(0); }), HasSubstr("budget"));
  EXPECT_THAT(error([](v1::JobSpec& s) { s.mutable_workloads(0)->set_count(0); }), HasSubstr("count"));
  EXPECT_THAT(error([](v1::JobSpec& s) {
                for (int i = 0; i < 17; ++i) s.mutable_workloads(0)->add_hints("1:1");
              }),
              HasSubstr("17 hints"));
  EXPECT_THAT(error([](v1::JobSpec& s) { s.mutable_workloads(0)->set_text("another"); }),
              HasSubstr("does not match its text"));
  EXPECT_THAT(error([](v1::JobSpec& s) { s.mutable_workloads(0)->set_text(std::string(8 << 20, 'x')); }),
              HasSubstr("tune the model in parts"));
}

TEST_F(JobQueueTest, LimitsOpenJobsPerSubmitter) {
  JobOptions options;
  options.open_jobs_max = 2;
  JobQueue queue(options, 1, CountingIds());
  const auto submit = [&](const std::string& name, const std::string& who) {
    v1::JobSpec spec = SpecOf(name);
    spec.set_submitted_by(who);
    return queue.Submit(spec, now_);
  };
  const std::string first = submit("a", "ann").value()->id();
  ASSERT_TRUE(submit("b", "ann").ok());
  EXPECT_THAT(std::string(submit("c", "ann").status().message()), HasSubstr("'ann' has 2 open jobs"));
  EXPECT_TRUE(absl::IsResourceExhausted(submit("c", "ann").status()));
  EXPECT_TRUE(submit("b", "ann").ok()) << "it is there already";
  EXPECT_TRUE(submit("d", "bob").ok());
  v1::JobSpec of_admin = SpecOf("e");
  of_admin.set_submitted_by("ann");
  of_admin.set_submitter("hone://farm/admin/ann");
  EXPECT_TRUE(queue.Submit(of_admin, now_).ok()) << "another identity of the same name";
  ASSERT_TRUE(queue.Cancel(first, now_).ok());
  EXPECT_TRUE(submit("c", "ann").ok());
}

// A job of a large model, for a lab with many boards.
TEST_F(JobQueueTest, LimitsTextsButAllowsAllBoardsOfALab) {
  v1::JobSpec spec = SpecOf("bert-large");
  for (int i = 1; i < 200; ++i) {
    *spec.add_workloads() = spec.workloads(0);
    spec.add_devices("board-" + std::to_string(i) + ".rack-of-the-lab.example.org/cpu");
  }
  EXPECT_TRUE(queue_.Submit(spec, now_).ok());
  const auto refused = [&](auto&& breakage) {
    v1::JobSpec longer = SpecOf("x");
    breakage(longer);
    const absl::Status status = queue_.Submit(longer, now_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  const std::string text(1 << 20, 'x');
  EXPECT_THAT(refused([&](v1::JobSpec& s) { s.set_name(text); }), HasSubstr("the limit is 4096"));
  EXPECT_THAT(refused([&](v1::JobSpec& s) { s.set_group(text); }), HasSubstr("the limit is 4096"));
  EXPECT_THAT(refused([&](v1::JobSpec& s) { s.mutable_workloads(0)->set_title(text); }),
              HasSubstr("the limit is 4096"));
  EXPECT_THAT(refused([&](v1::JobSpec& s) { (*s.mutable_labels())["room"] = text; }), HasSubstr("the limit is 4096"));
  EXPECT_THAT(refused([&](v1::JobSpec& s) {
                for (int i = 0; i < 20; ++i) s.add_devices(std::string(4000, 'x'));
              }),
              HasSubstr("the limit is 32768"));
  EXPECT_THAT(refused([&](v1::JobSpec& s) {
                for (int i = 0; i < 1000; ++i) s.add_devices();
              }),
              HasSubstr("the limit is 1000"));
  EXPECT_THAT(refused([&](v1::JobSpec& s) {
                for (int i = 0; i < 4000; ++i) *s.add_workloads() = s.workloads(0);
              }),
              HasSubstr("4001 workloads"));
}

TEST_F(JobQueueTest, LimitsMemoryOfOpenJobsPerSubmitter) {
  v1::JobSpec spec = SpecOf("a");
  for (int i = 1; i < 300; ++i) *spec.add_workloads() = spec.workloads(0);  // a small message that takes much memory
  JobOptions options;
  options.open_bytes_max = static_cast<int64_t>(MemoryOf(spec) * 3 / 2);
  JobQueue queue(options, 1, CountingIds());
  const auto submit = [&](const std::string& name, const std::string& who) {
    spec.set_request_id(name);
    spec.set_submitted_by(who);
    return queue.Submit(spec, now_);
  };
  const std::string first = submit("a", "ann").value()->id();
  const absl::Status refused = submit("b", "ann").status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(fmt::format("the limit is {}", options.open_bytes_max >> 10)));
  EXPECT_TRUE(submit("c", "bob").ok());
  ASSERT_TRUE(queue.Cancel(first, now_).ok());
  EXPECT_TRUE(submit("b", "ann").ok());
}

TEST_F(JobQueueTest, OmittedSchedulesAreTakenFromTheReportBefore) {
  const std::string id = Submit("a");
  const v1::JobLease lease = queue_.Lease("t", "boot", now_)->lease;
  v1::JobProgress progress;
  v1::WorkloadProgress& workload = *progress.add_workloads();
  workload.set_best_schedule("split");
  ASSERT_TRUE(queue_.Report(lease, progress, now_).ok());
  workload.clear_best_schedule();
  workload.set_same_schedule(true);
  workload.set_trials(7);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(queue_.Report(lease, progress, now_).ok());
    EXPECT_EQ(queue_.Find(id)->progress().workloads(0).best_schedule(), "split");
    EXPECT_EQ(queue_.Find(id)->progress().workloads(0).trials(), 7);
    EXPECT_FALSE(queue_.Find(id)->progress().workloads(0).same_schedule());
  }
  workload.set_same_schedule(false);
  ASSERT_TRUE(queue_.Report(lease, progress, now_).ok());
  EXPECT_EQ(queue_.Find(id)->progress().workloads(0).best_schedule(), "") << "there is none any more";
}

TEST_F(JobQueueTest, LimitsReportsOfTuners) {
  const std::string id = Submit("a");
  const v1::JobLease lease = queue_.Lease("t", "boot", now_)->lease;
  v1::JobProgress progress;
  progress.add_workloads()->set_best_schedule(std::string(9 << 20, 'x'));
  EXPECT_EQ(queue_.Report(lease, progress, now_).status().code(), absl::StatusCode::kInvalidArgument);
  progress.mutable_workloads(0)->set_best_schedule(std::string(1 << 20, 'x'));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(queue_.Report(lease, progress, now_).ok());
  EXPECT_THAT(queue_.Events(id, 0), SizeIs(7)) << "8 MiB of them";
  progress.add_workloads();
  EXPECT_EQ(queue_.Report(lease, progress, now_).status().code(), absl::StatusCode::kInvalidArgument);
  v1::CompleteJobRequest complete;
  *complete.mutable_lease() = lease;
  complete.set_returned(true);
  complete.mutable_needs()->set_target(std::string(1 << 20, 'x'));
  EXPECT_EQ(queue_.Complete(complete, now_).code(), absl::StatusCode::kInvalidArgument);
  complete.clear_returned();
  complete.set_error(std::string(1 << 20, 'x'));
  ASSERT_TRUE(queue_.Complete(complete, now_).ok());
  EXPECT_EQ(queue_.Find(id)->error().size(), size_t{16} << 10);
}

TEST_F(JobQueueTest, LimitsLeasesPerTunerName) {
  JobOptions options;
  options.leased_jobs_max = 2;
  JobQueue queue(options, 1, CountingIds());
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(queue.Submit(SpecOf(name), now_).ok());
  ASSERT_TRUE(queue.Lease("t/1", "boot", now_).has_value());
  EXPECT_TRUE(queue.CheckQuota("t/2").ok());
  ASSERT_TRUE(queue.Lease("t/2", "boot", now_).has_value());
  EXPECT_THAT(std::string(queue.CheckQuota("t/3").message()), HasSubstr("tuners of 't' work on 2 jobs"));
  EXPECT_TRUE(queue.CheckQuota("u/1").ok());
}

TEST_F(JobQueueTest, LeasesByPriorityThenAge) {
  const std::string old = Submit("old"), young = Submit("young"), urgent = Submit("urgent", 5);
  EXPECT_EQ(queue_.Lease("t1", "boot", now_)->job->id(), urgent);
  EXPECT_EQ(queue_.Lease("t2", "boot", now_)->job->id(), old);
  EXPECT_EQ(queue_.Lease("t3", "boot", now_)->job->id(), young);
  EXPECT_FALSE(queue_.Lease("t4", "boot", now_).has_value());
}

TEST_F(JobQueueTest, SilentTunerLosesTheJobAndIsRefused) {
  const std::string id = Submit("a");
  const v1::JobLease lease = queue_.Lease("t1", "boot", now_)->lease;
  now_ += absl::Seconds(29);
  ASSERT_TRUE(queue_.RenewLease(lease, now_).ok());
  now_ += absl::Seconds(29);
  queue_.Expire(now_);
  EXPECT_EQ(queue_.Find(id)->state(), v1::JOB_STATE_RUNNING);
  now_ += absl::Seconds(2);
  queue_.Expire(now_);
  EXPECT_EQ(queue_.Find(id)->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(queue_.RenewLease(lease, now_).status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(queue_.TakeReleased(), testing::ElementsAre(id));
  const v1::JobLease second = queue_.Lease("t2", "boot", now_)->lease;
  EXPECT_EQ(queue_.RenewLease(lease, now_).status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(queue_.RenewLease(second, now_).ok());
}

TEST_F(JobQueueTest, EveryLeaseHasARandomIdAndItsOwnEpoch) {
  Submit("a");
  Submit("b");
  const v1::JobLease first = queue_.Lease("t1", "boot", now_)->lease, second = queue_.Lease("t2", "boot", now_)->lease;
  EXPECT_EQ(first.lease_id().size(), 32u);
  EXPECT_NE(first.lease_id(), second.lease_id());
  EXPECT_GT(second.epoch(), first.epoch());
  for (const v1::JobLease& lease : {first, second}) {
    v1::JobLease stale = lease;
    stale.set_epoch(first.epoch() + second.epoch() - lease.epoch());
    EXPECT_EQ(queue_.RenewLease(stale, now_).status().code(), absl::StatusCode::kAborted);
    EXPECT_TRUE(queue_.RenewLease(lease, now_).ok());
  }
}

TEST_F(JobQueueTest, FailsAfterTooManyLostTunersWithoutATrial) {
  const std::string id = Submit("a");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(queue_.Lease("t", "boot", now_).has_value()) << i;
    now_ += absl::Minutes(1);
    queue_.Expire(now_);
  }
  EXPECT_EQ(queue_.Find(id)->state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(queue_.Find(id)->error(), HasSubstr("5 tuners in a row"));
}

TEST_F(JobQueueTest, LostTunersThatFinishedTrialsDoNotFailTheJob) {
  const std::string id = Submit("a");
  v1::JobProgress progress;
  for (int i = 1; i < 20; ++i) {
    const auto grant = queue_.Lease("t", "boot", now_);
    ASSERT_TRUE(grant.has_value()) << i;
    progress.set_trials(i);
    ASSERT_TRUE(queue_.Report(grant->lease, progress, now_).ok());
    now_ += absl::Minutes(1);
    queue_.Expire(now_);
  }
  EXPECT_EQ(queue_.Find(id)->state(), v1::JOB_STATE_QUEUED);
  for (int i = 0; i < 4; ++i) {  // no further progress; with the loss above, five in a row
    const auto grant = queue_.Lease("t", "boot", now_);
    ASSERT_TRUE(grant.has_value()) << i;
    ASSERT_TRUE(queue_.Report(grant->lease, progress, now_).ok());
    now_ += absl::Minutes(1);
    queue_.Expire(now_);
  }
  EXPECT_EQ(queue_.Find(id)->state(), v1::JOB_STATE_FAILED);
}

TEST_F(JobQueueTest, ATunerThatMissedTheAnswerIsNotLost) {
  const std::string id = Submit("a");
  for (int i = 0; i < 20; ++i) ASSERT_EQ(queue_.Lease("t", "boot", now_)->job->id(), id) << i;
  EXPECT_EQ(queue_.Find(id)->attempts(), 1);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(queue_.Lease("t", "boot" + std::to_string(i), now_)->job->id(), id) << "restarted";
  }
  EXPECT_FALSE(queue_.Lease("t", "boot5", now_).has_value());
  EXPECT_EQ(queue_.Find(id)->state(), v1::JOB_STATE_FAILED);
}

TEST_F(JobQueueTest, ATunerThatStopsGivesItsJobBack) {
  const std::string id = Submit("a");
  for (int i = 0; i < 20; ++i) {
    v1::CompleteJobRequest returned;
    *returned.mutable_lease() = queue_.Lease("t" + std::to_string(i), "boot", now_)->lease;
    returned.mutable_progress()->set_trials(3);
    returned.set_returned(true);
    ASSERT_TRUE(queue_.Complete(returned, now_).ok());
    ASSERT_EQ(queue_.Find(id)->state(), v1::JOB_STATE_QUEUED);
    EXPECT_EQ(queue_.RenewLease(returned.lease(), now_).status().code(), absl::StatusCode::kAborted);
  }
  EXPECT_EQ(queue_.Find(id)->attempts(), 0);
  EXPECT_EQ(queue_.Find(id)->progress().trials(), 3);
}

TEST_F(JobQueueTest, ATunerThatLeavesKeepsNoLease) {
  const std::string id = Submit("a"), others = Submit("b");
  const v1::JobLease lease = queue_.Lease("t", "boot", now_)->lease;
  ASSERT_EQ(queue_.Lease("other", "boot", now_)->job->id(), others);
  queue_.RemoveTuner("t", "boot", now_);
  EXPECT_EQ(queue_.Find(id)->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(queue_.Find(id)->attempts(), 0);
  EXPECT_EQ(queue_.RenewLease(lease, now_).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(queue_.Find(others)->state(), v1::JOB_STATE_RUNNING);
}

// A stopped tuner's request may arrive after its departure, because two calls have no order.
TEST_F(JobQueueTest, ATunerThatHasLeftGetsNoJob) {
  const std::string id = Submit("a");
  queue_.RemoveTuner("t", "boot", now_);
  EXPECT_FALSE(queue_.Lease("t", "boot", now_).has_value());
  EXPECT_TRUE(queue_.Lease("t", "next boot", now_).has_value());
  queue_.RemoveTuner("t", "next boot", now_);
  now_ += absl::Minutes(10);
  queue_.Expire(now_);
  EXPECT_TRUE(queue_.Lease("t", "next boot", now_).has_value()) << "it does not remember for ever";
}

TEST_F(JobQueueTest, CancelStopsTheTunerAndCompleteStaysIdempotent) {
  const std::string id = Submit("a");
  const v1::JobLease lease = queue_.Lease("t1", "boot", now_)->lease;
  ASSERT_TRUE(queue_.Cancel(id, now_).ok());
  EXPECT_EQ(queue_.RenewLease(lease, now_).value(), true);
  v1::CompleteJobRequest complete;
  *complete.mutable_lease() = lease;
  EXPECT_TRUE(queue_.Complete(complete, now_).ok());
  EXPECT_EQ(queue_.Find(id)->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(queue_.Cancel("nonsense", now_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JobQueueTest, EventsAndStoredChanges) {
  const std::string id = Submit("a");
  const v1::JobLease lease = queue_.Lease("t1", "boot", now_)->lease;
  EXPECT_EQ(queue_.TakeChanged().size(), 1u);
  EXPECT_TRUE(queue_.TakeChanged().empty());
  v1::JobProgress progress;
  progress.set_trials(7);
  ASSERT_EQ(queue_.Report(lease, progress, now_).value(), false);
  ASSERT_EQ(queue_.TakeChanged().size(), 1u);
  const std::vector<v1::JobEvent> events = queue_.Events(id, 0);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].progress().trials(), 7);
  EXPECT_TRUE(queue_.Events(id, events[2].sequence()).empty());
}

TEST_F(JobQueueTest, RestoredOpenJobIsQueuedAgainWithoutALoss) {
  const std::string id = Submit("a");
  const v1::JobLease lease = queue_.Lease("t1", "boot", now_)->lease;
  JobQueue restarted(JobOptions{}, 2, CountingIds());
  restarted.Restore(*queue_.Find(id));
  EXPECT_EQ(restarted.Find(id)->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(restarted.Find(id)->attempts(), 0);
  EXPECT_EQ(restarted.RenewLease(lease, now_).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(restarted.Submit(SpecOf("a"), now_).value()->id(), id);
  EXPECT_NE(restarted.Submit(SpecOf("b"), now_).value()->id(), id);
  EXPECT_GT(restarted.Lease("t1", "boot", now_)->lease.epoch(), lease.epoch());
}

TEST_F(JobQueueTest, EndedJobsAreForgottenByNumberAndAge) {
  JobQueue queue(JobOptions{.ended_max = 2, .keep_ended = absl::Hours(24)}, 1, CountingIds());
  std::vector<std::string> ids;
  for (const char* name : {"open", "a", "b", "c"}) {
    now_ += absl::Hours(1);
    ids.push_back(queue.Submit(SpecOf(name), now_).value()->id());
    if (ids.size() == 1) continue;
    ASSERT_TRUE(queue.Cancel(ids.back(), now_).ok());
  }
  queue.Expire(now_);
  EXPECT_THAT(queue.TakeForgotten(), ElementsAre(ids[1])) << "the oldest of three";
  EXPECT_TRUE(queue.TakeForgotten().empty());
  EXPECT_EQ(queue.Find(ids[1]), nullptr);
  EXPECT_THAT(queue.TakeChanged(), SizeIs(3)) << "nobody stores what is forgotten";
  EXPECT_NE(queue.Submit(SpecOf("a"), now_).value()->id(), ids[1]) << "its request is a new one";
  queue.Expire(now_ + absl::Hours(24));
  EXPECT_THAT(queue.TakeForgotten(), ElementsAre(ids[2])) << "too old";
  EXPECT_NE(queue.Find(ids[0]), nullptr) << "one that is open stays";
  EXPECT_NE(queue.Find(ids[3]), nullptr);
}

// The limit of kept ended jobs is 0 here.
TEST_F(JobQueueTest, KeepsEndedJobsUntilClientsCouldSeeTheEnd) {
  JobOptions options{.notify_allowed = {"https://hooks.lab/"}, .ended_max = 0};
  JobQueue queue(options, 1, CountingIds());
  const auto ended = [&](const std::string& name, const std::string& url) {
    v1::JobSpec spec = SpecOf(name);
    spec.set_notify_url(url);
    const std::string id = queue.Submit(spec, now_).value()->id();
    EXPECT_TRUE(queue.Cancel(id, now_).ok());
    return id;
  };
  const std::string watched = ended("a", ""), told = ended("b", "https://hooks.lab/x");
  const std::string never_told = ended("c", "https://hooks.lab/x");
  queue.Expire(now_ + options.keep_ended_unseen);
  EXPECT_THAT(queue.TakeForgotten(), testing::IsEmpty());
  queue.Expire(now_ + options.keep_ended_unseen + absl::Seconds(1));
  EXPECT_THAT(queue.TakeForgotten(), ElementsAre(watched));
  v1::JobNotice notice;
  notice.set_closed(true);
  queue.RecordNotice(told, notice);
  queue.Expire(now_ + absl::Hours(24));
  EXPECT_THAT(queue.TakeForgotten(), ElementsAre(told));
  queue.Expire(now_ + absl::Hours(25));
  EXPECT_THAT(queue.TakeForgotten(), ElementsAre(never_told));
}

TEST_F(JobQueueTest, CancelledJobsCannotFillTheMemory) {
  JobQueue queue(JobOptions{.ended_max = 1, .ended_unseen_max = 2}, 1, CountingIds());
  std::vector<std::string> ids;
  for (const char* name : {"a", "b", "c", "d"}) {
    now_ += absl::Seconds(1);
    ids.push_back(queue.Submit(SpecOf(name), now_).value()->id());
    ASSERT_TRUE(queue.Cancel(ids.back(), now_).ok());
  }
  queue.Expire(now_);
  EXPECT_THAT(queue.TakeForgotten(), ElementsAre(ids[0]));
}

TEST_F(JobQueueTest, AWallClockSetByYearsForgetsNoJob) {
  const std::string id = queue_.Submit(SpecOf("a"), now_).value()->id();
  ASSERT_TRUE(queue_.Cancel(id, now_).ok());
  queue_.SetWallOffset(absl::Hours(24 * 365));
  queue_.Expire(now_);
  EXPECT_THAT(queue_.TakeForgotten(), testing::IsEmpty());
}

TEST_F(JobQueueTest, EndedJobsAreForgottenByTheirBytes) {
  JobQueue queue(JobOptions{.ended_bytes_max = 25'000}, 1, CountingIds());
  std::vector<std::string> ids;
  for (const char* name : {"a", "b", "c"}) {
    now_ += absl::Hours(1);
    v1::JobSpec spec = SpecOf(name);
    SetWorkload(*spec.mutable_workloads(0), std::string(10'000, 'x'));
    ids.push_back(queue.Submit(spec, now_).value()->id());
    ASSERT_TRUE(queue.Cancel(ids.back(), now_).ok());
  }
  queue.Expire(now_);
  EXPECT_THAT(queue.TakeForgotten(), ElementsAre(ids[0])) << "the oldest of three";
}

TEST_F(JobQueueTest, TellsWhetherThereIsNewsAndWork) {
  EXPECT_FALSE(queue_.waiting());
  const std::string id = Submit("a");
  EXPECT_TRUE(queue_.waiting());
  EXPECT_TRUE(queue_.HasEvents(id, 0));
  EXPECT_FALSE(queue_.HasEvents(id, queue_.Events(id, 0).back().sequence()));
  EXPECT_FALSE(queue_.HasEvents("nonsense", 0));
  ASSERT_TRUE(queue_.Lease("t1", "boot", now_).has_value());
  EXPECT_FALSE(queue_.waiting());
}

}  // namespace
}  // namespace hone::tracker
