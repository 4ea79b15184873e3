// SPDX-License-Identifier: Apache-2.0
// Which job gets a tuner, which batch gets a device, and the reasons that waiting jobs report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "proto/convert.h"
#include "tests/farm/fake_agent.h"
#include "tracker/queue/fair_share.h"
#include "tracker/queue/memory.h"

namespace hone::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A farm whose users, tuners and boards are calls made by the test.
class SchedulingTest : public testing::Test {
 protected:
  std::string Submit(const std::string& name, const std::string& user, int priority = 0,
                     const std::function<void(v1::JobSpec&)>& more = {}) {
    v1::JobSpec spec = SpecOf(name, priority);
    spec.set_submitted_by(user);
    if (more) more(spec);
    const absl::StatusOr<v1::Job> job = farm_.SubmitJob(spec, now_);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->id() : "";
  }
  std::string SubmitFor(const std::string& name, const std::string& room) {
    return Submit(name, "ann", 0, [&](v1::JobSpec& spec) { (*spec.mutable_labels())["room"] = room; });
  }
  // Returns the id of the job that the tuner got, "" for none.
  std::string Lease(const std::string& tuner) {
    v1::LeaseJobRequest request;
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_tuner_id(tuner);
    const v1::LeaseJobResponse response = farm_.LeaseJob(request, now_).value();
    leases_[response.job().id()] = response.lease();
    last_ = response;
    return response.job().id();
  }
  absl::Status GiveBack(const std::string& job_id, const v1::Requirements& needs) {
    v1::CompleteJobRequest request;
    *request.mutable_lease() = leases_[job_id];
    request.set_returned(true);
    *request.mutable_needs() = needs;
    return farm_.CompleteJob(request, now_);
  }
  static v1::Batch BatchFor(const std::string& room, const std::string& fingerprint = "f") {
    v1::Batch batch = BatchOf(1);
    if (!room.empty()) (*batch.mutable_requirements()->mutable_labels())["room"] = room;
    batch.mutable_requirements()->set_fingerprint_digest(fingerprint);
    return batch;
  }
  std::string Measure(const std::string& job_id, const std::string& client_id, const v1::Batch& batch) {
    v1::SubmitBatchRequest request;
    *request.mutable_lease() = leases_[job_id];
    request.set_client_batch_id(client_id);
    *request.mutable_batch() = batch;
    return farm_.SubmitBatch(request, now_).value().batch_id();
  }
  absl::StatusOr<v1::ReportProgressResponse> Alive(const std::string& job_id, int64_t trials = -1) {
    v1::ReportProgressRequest alive;
    *alive.mutable_lease() = leases_[job_id];
    if (trials >= 0) {
      alive.mutable_progress()->set_trials(trials);
      alive.mutable_progress()->set_trials_per_second(2);
    }
    return farm_.ReportProgress(alive, now_);
  }
  double Waited(const std::string& job_id) {
    const v1::ReportProgressResponse response = Alive(job_id).value();
    return static_cast<double>(response.waited().seconds()) + response.waited().nanos() * 1e-9;
  }
  // Lets time pass while the tuners stay alive and these agents call.
  void Pass(absl::Duration duration, const std::vector<FakeAgent*>& agents = {}) {
    for (const absl::Time end = now_ + duration; now_ < end;) {
      now_ += absl::Seconds(1);
      for (const auto& [job_id, lease] : leases_) (void)Alive(job_id);
      for (FakeAgent* agent : agents) {
        const Farm::Answer answer = agent->Sync(farm_, now_).value();
        for (const v1::Lease& given : answer.response.leases()) *agent->state.add_running() = given.reference();
      }
      farm_.Tick(now_);
    }
  }
  static FakeAgent Board(const std::string& name, const std::string& room) {
    FakeAgent agent(name, "1");
    (*agent.state.mutable_devices(0)->mutable_labels())["room"] = room;
    return agent;
  }
  v1::Job Job(const std::string& id) { return farm_.GetJob(id, now_).value(); }

  Farm farm_{FarmOptions{}, 1, CountingIds(), "key"};
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::map<std::string, v1::JobLease> leases_;
  v1::LeaseJobResponse last_;
};

TEST_F(SchedulingTest, AJobWhoseBoardIsAwayTakesNoTuner) {
  FakeAgent here = Board("here", "hall");
  ASSERT_TRUE(here.Sync(farm_, now_).ok());
  const std::string away = SubmitFor("away", "lab"), other = SubmitFor("other", "hall");
  EXPECT_THAT(Job(away).waiting_for(), HasSubstr("a device for label room=lab"));
  EXPECT_FALSE(Job(other).waiting_for().empty());
  EXPECT_EQ(Lease("t/1"), other);
  EXPECT_EQ(Lease("t/2"), "") << "nothing can be done for the other one";
  EXPECT_FALSE(farm_.jobs().waiting());
  FakeAgent lab = Board("lab", "lab");
  ASSERT_TRUE(lab.Sync(farm_, now_).ok());
  EXPECT_TRUE(farm_.jobs().waiting()) << "at once";
  EXPECT_EQ(Job(away).waiting_for(), "a tuner");
  EXPECT_EQ(Lease("t/2"), away);
}

// The devices may use only some of their CPUs, and the job needs all of them.
TEST_F(SchedulingTest, AJobThatWantsTooManyThreadsSaysWhichDeviceIsNearest) {
  const std::string id = Submit("a", "ann");
  FakeAgent small("small", "1"), board("board", "1"), gpu("gpu", "1");
  small.state.mutable_devices(0)->set_threads(1);
  gpu.state.mutable_devices(0)->set_threads(64);
  gpu.state.mutable_devices(0)->mutable_fingerprint()->set_digest("g");
  for (FakeAgent* agent : {&small, &board, &gpu}) ASSERT_TRUE(agent->Sync(farm_, now_).ok());
  ASSERT_EQ(Lease("t"), id);
  v1::Requirements needs;
  needs.set_fingerprint_digest("f");
  needs.set_threads(16);
  ASSERT_TRUE(GiveBack(id, needs).ok());
  EXPECT_EQ(Job(id).waiting_for(),
            "a device for fingerprint f, 16 threads (board/cpu has 4; for it, submit with --threads 4)");
}

TEST_F(SchedulingTest, AJobThatATunerFoundNoDeviceForWaitsForOne) {
  const std::string id = Submit("a", "ann");
  ASSERT_EQ(Lease("t"), id);
  v1::Requirements needs;
  needs.set_architecture("x86_64");
  needs.add_cpu_features("avx512f");
  ASSERT_TRUE(GiveBack(id, needs).ok());
  EXPECT_EQ(Lease("t"), "");
  EXPECT_THAT(Job(id).waiting_for(), HasSubstr("architecture x86_64, feature avx512f"));
  EXPECT_EQ(Job(id).attempts(), 0) << "nobody is to blame";
  FakeAgent board("board", "1");
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  EXPECT_EQ(Lease("t"), "") << "it lacks the feature";
  EXPECT_EQ(Job(id).waiting_for(), "a device for architecture x86_64, feature avx512f (board/cpu lacks avx512f)");
  board.state.mutable_devices(0)->mutable_fingerprint()->add_cpu_features("avx512f");
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  Pass(absl::Seconds(1), {&board});
  EXPECT_EQ(Lease("t"), id);
}

TEST_F(SchedulingTest, AJobWhoseBoardGoesAwayIsTakenFromItsTunerAndStaysWithItsKind) {
  FakeAgent board("board", "1");
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  const std::string id = Submit("a", "ann");
  ASSERT_EQ(Lease("t"), id);
  ASSERT_TRUE(Alive(id, 7).ok());
  Measure(id, "b1", BatchFor(""));
  Pass(absl::Seconds(40), {&board});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Job(id).progress().trials_per_second(), 2);
  Pass(absl::Minutes(3));  // the board is lost, with its leases
  EXPECT_EQ(Job(id).progress().trials_per_second(), 0) << "that was its speed before";
  EXPECT_THAT(Job(id).waiting_for(), HasSubstr("board/cpu, which is offline; wanted: "));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING) << "nobody else wants the tuner";
  FakeAgent hall = Board("hall", "hall");
  hall.state.mutable_devices(0)->mutable_fingerprint()->set_digest("h");
  ASSERT_TRUE(hall.Sync(farm_, now_).ok());
  SubmitFor("nowhere", "cellar");
  Pass(absl::Seconds(10), {&hall});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING) << "one that can do nothing either does not want it";
  const std::string wants = SubmitFor("wants", "hall");
  Pass(absl::Seconds(10), {&hall});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Lease("t"), wants);
  EXPECT_EQ(Alive(id).status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Job(id).waiting_for(), HasSubstr("board/cpu, which is offline; wanted: "));
  EXPECT_EQ(Job(id).progress().trials(), 7);
  EXPECT_EQ(Job(id).fruitless(), 0);
  FakeAgent other("other", "1");  // of another kind
  other.state.mutable_devices(0)->mutable_fingerprint()->set_digest("g");
  ASSERT_TRUE(other.Sync(farm_, now_).ok());
  EXPECT_EQ(Lease("t2"), "");
  FakeAgent again("again", "1");
  ASSERT_TRUE(again.Sync(farm_, now_).ok());
  EXPECT_EQ(Lease("t2"), id);
  EXPECT_EQ(last_.job().needs().fingerprint_digest(), "f");
}

TEST_F(SchedulingTest, AShortAbsenceChangesNothing) {
  FakeAgent board("board", "1");
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  const std::string id = Submit("a", "ann");
  ASSERT_EQ(Lease("t"), id);
  Measure(id, "b1", BatchFor(""));
  Submit("wants a tuner too", "ann");
  board.state.set_leaving(true);
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  Pass(absl::Seconds(10));
  EXPECT_THAT(Job(id).waiting_for(), HasSubstr("board/cpu, which is shutting down"));
  board = FakeAgent("board", "2");
  Pass(absl::Seconds(30), {&board});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
}

// The tracker did not run, so it received no calls. The board was not absent for that time.
TEST_F(SchedulingTest, AStandstillOfTheTrackerIsNoAbsence) {
  FakeAgent board("board", "1");
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  const std::string id = Submit("a", "ann");
  ASSERT_EQ(Lease("t"), id);
  Measure(id, "b1", BatchFor(""));
  FakeAgent hall = Board("hall", "hall");
  hall.state.mutable_devices(0)->mutable_fingerprint()->set_digest("h");
  SubmitFor("wants a tuner too", "hall");
  board.state.set_leaving(true);
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  const absl::Duration preempt_absent_after = JobOptions().preempt_absent_after;
  Pass(preempt_absent_after - absl::Seconds(5), {&hall});
  ASSERT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
  now_ += absl::Hours(1);  // the tracker stalls
  Pass(absl::Seconds(2), {&hall});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
  Pass(preempt_absent_after, {&hall});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED) << "from then on it counts as ever";
}

// One job measures and the other waits. The stalled hour counts for neither of them.
TEST_F(SchedulingTest, AStandstillOfTheTrackerIsNoWaitingTime) {
  FakeAgent board("board", "1");
  const std::string ann = Submit("a", "ann"), bob = Submit("b", "bob");
  ASSERT_EQ(Lease("t/1"), ann);
  ASSERT_EQ(Lease("t/2"), bob);
  Measure(ann, "b", BatchFor(""));
  const v1::Lease lease = board.Sync(farm_, now_)->response.leases(0);
  ASSERT_EQ(lease.receipt().job_id(), ann);
  v1::Batch limited = BatchFor("");
  limited.set_useful_seconds(100);
  Measure(bob, "b", limited);
  *board.state.add_running() = lease.reference();
  Pass(absl::Seconds(20), {&board});
  now_ += absl::Hours(1);  // the tracker stalls
  Pass(absl::Seconds(1), {&board});
  EXPECT_DOUBLE_EQ(Waited(bob), 20);
  EXPECT_NEAR(farm_.batches().fair_share().UsedBy("ann"), 20, 1);
  EXPECT_EQ(farm_.time_stalled(), absl::Hours(1) + absl::Seconds(1));
  board.Finish(lease);
  const v1::Lease next = board.Sync(farm_, now_)->response.leases(0);
  ASSERT_EQ(next.receipt().job_id(), bob);
  EXPECT_DOUBLE_EQ(next.batch().policy().visit_seconds(), 100);
}

TEST_F(SchedulingTest, AStandstillOfTheTrackerPreemptsNoJob) {
  const std::string low = Submit("low", "ann");
  ASSERT_EQ(Lease("t/1"), low);
  Submit("urgent", "ann", 5);
  Pass(absl::Seconds(5));
  now_ += absl::Hours(1);  // the tracker stalls
  Pass(absl::Seconds(5));
  EXPECT_EQ(Job(low).state(), v1::JOB_STATE_RUNNING);
  Pass(JobOptions().preempt_after);
  EXPECT_EQ(Job(low).state(), v1::JOB_STATE_QUEUED) << "from then on it counts as ever";
}

// Processes of one tuner name share a count.
TEST_F(SchedulingTest, TunersOfOneNameAreCountedTogether) {
  const std::string id = Submit("a", "ann");
  ASSERT_EQ(Lease("t/2"), id);
  EXPECT_EQ(farm_.jobs().TunerOf(id), "t");
}

// Devices are free before the agent's next call and before the next tick, because other jobs may need them.
TEST_F(SchedulingTest, ATunerThatLeavesFreesItsDevicesAtOnce) {
  FakeAgent board("board", "1");
  const std::string id = Submit("a", "ann");
  ASSERT_EQ(Lease("t"), id);
  Measure(id, "b1", BatchFor("", ""));
  ASSERT_EQ(board.Sync(farm_, now_)->response.leases_size(), 1);
  const auto activity = [&] { return farm_.ListDevices(v1::ListDevicesRequest(), now_).at(0).activity(); };
  ASSERT_EQ(activity(), v1::DEVICE_ACTIVITY_MEASURING);
  v1::LeaseJobRequest leave;
  leave.set_protocol_version(v1::PROTOCOL_VERSION_1);
  leave.set_tuner_id("t");
  leave.set_leaving(true);
  ASSERT_TRUE(farm_.LeaseJob(leave, now_).ok());
  EXPECT_EQ(activity(), v1::DEVICE_ACTIVITY_IDLE);
}

TEST_F(SchedulingTest, TheKindOfDeviceIsKeptOverLostTuners) {
  FakeAgent board("board", "1");
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  const std::string id = Submit("a", "ann");
  ASSERT_EQ(Lease("t"), id);
  Measure(id, "b1", BatchFor("", "f"));
  for (int i = 0; i < 60; ++i) farm_.Tick(now_ += absl::Seconds(1));  // the tuner is silent
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  ASSERT_EQ(Lease("t2"), id);
  EXPECT_EQ(last_.job().needs().fingerprint_digest(), "f");
}

TEST_F(SchedulingTest, JobsNameDevices) {
  const auto on = [](const std::string& name) { return [name](v1::JobSpec& spec) { spec.add_devices(name); }; };
  FakeAgent board("board", "1");
  *board.state.add_devices() = DeviceOf("gpu");
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  const std::string nowhere = Submit("a", "ann", 0, on("desk")), any = Submit("b", "ann", 0, on("board"));
  const std::string gpu = Submit("c", "ann", 0, on("board/gpu"));
  EXPECT_THAT(Job(nowhere).waiting_for(), HasSubstr("a device for desk"));
  EXPECT_EQ(Lease("t/1"), any);
  EXPECT_EQ(Lease("t/2"), gpu);
  EXPECT_EQ(Lease("t/3"), "");
  v1::Batch batch = BatchOf(1);
  batch.mutable_requirements()->add_devices("board/gpu");
  for (int i = 0; i < 2; ++i) Measure(gpu, fmt::format("b{}", i), batch);
  const Farm::Answer answer = board.Sync(farm_, now_).value();
  ASSERT_EQ(answer.response.leases_size(), 1) << "the other device is not its own";
  EXPECT_EQ(answer.response.leases(0).device_id(), "gpu");
}

TEST_F(SchedulingTest, TunersGoByPriorityThenToTheUserWithTheFewestRunningJobs) {
  const std::string a1 = Submit("a1", "ann"), a2 = Submit("a2", "ann"), a3 = Submit("a3", "ann");
  const std::string b1 = Submit("b1", "bob"), urgent = Submit("urgent", "ann", 5);
  EXPECT_EQ(Lease("t/1"), urgent);
  EXPECT_EQ(Lease("t/2"), b1) << "ann has one";
  EXPECT_EQ(Lease("t/3"), a1);
  EXPECT_EQ(Job(a2).waiting_for(), "a tuner");
  EXPECT_EQ(Job(a3).waiting_for(), "a tuner; 1 other goes first");
}

TEST_F(SchedulingTest, AJobOfHigherPriorityPreemptsOneOfLower) {
  const std::string low = Submit("low", "ann"), middle = Submit("middle", "ann", 1);
  ASSERT_EQ(Lease("t/1"), middle);
  ASSERT_EQ(Lease("t/2"), low);
  Submit("also low", "ann");
  Pass(absl::Minutes(2));
  EXPECT_EQ(Job(low).state(), v1::JOB_STATE_RUNNING) << "equals of one user wait for each other's end";
  const std::string urgent = Submit("urgent", "ann", 5);
  Pass(absl::Seconds(25));
  EXPECT_EQ(Job(low).state(), v1::JOB_STATE_RUNNING);
  Pass(absl::Seconds(10));
  EXPECT_EQ(Job(low).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Job(middle).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Lease("t/2"), urgent);
  Pass(absl::Minutes(2));
  EXPECT_EQ(Job(middle).state(), v1::JOB_STATE_RUNNING) << "nobody who may displace it waits";
}

TEST_F(SchedulingTest, AUserWithAllTunersIsPreemptedForAnotherUser) {
  std::string last;
  for (int i = 0; i < 3; ++i) {
    Submit(fmt::format("a{}", i), "ann");
    last = Lease(fmt::format("t/{}", i));
    now_ += absl::Seconds(1);
  }
  const std::string bob = Submit("b", "bob");
  Pass(absl::Seconds(35));
  EXPECT_EQ(Job(last).state(), v1::JOB_STATE_QUEUED) << "the one that was begun last";
  EXPECT_EQ(Lease("t/2"), bob);
  Submit("b2", "bob");
  Pass(absl::Minutes(2));
  EXPECT_EQ(Job(bob).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(farm_.jobs().InState(v1::JOB_STATE_RUNNING).size(), 3u) << "one to two is as even as it gets";
}

TEST_F(SchedulingTest, UsersShareADeviceByTheirRecentUse) {
  FakeAgent board("board", "1");
  const std::string ann = Submit("a", "ann"), ann2 = Submit("a2", "ann"), bob = Submit("b", "bob");
  for (const char* tuner : {"t/1", "t/2", "t/3"}) ASSERT_NE(Lease(tuner), "");
  for (int i = 0; i < 30; ++i) {
    for (const std::string& id : {ann, ann2, bob}) Measure(id, fmt::format("b{}", i), BatchFor(""));
  }
  std::map<std::string, double> seconds;
  for (int i = 0; i < 30; ++i) {
    // Bob's batches take three times as long as Ann's.
    const Farm::Answer answer = board.Sync(farm_, now_).value();
    ASSERT_EQ(answer.response.leases_size(), 1);
    const v1::Lease lease = answer.response.leases(0);
    for (const std::string& id : {ann, ann2, bob}) ASSERT_TRUE(Alive(id).ok());
    const double took = lease.receipt().job_id() == bob ? 3 : 1;
    seconds[lease.receipt().job_id()] += took;
    now_ += absl::Seconds(took / 2);  // the farm sees the time in two halves
    farm_.Tick(now_);
    now_ += absl::Seconds(took / 2);
    farm_.Tick(now_);
    board.Finish(lease);
  }
  EXPECT_NEAR(seconds[bob], seconds[ann] + seconds[ann2], 4);
  EXPECT_NEAR(seconds[ann], seconds[ann2], 2) << "one user's batches go by age";
}

TEST_F(SchedulingTest, RecentUseDecays) {
  RecentUse use(absl::Minutes(10));
  use.Add("ann", absl::Minutes(8), now_);
  EXPECT_DOUBLE_EQ(use.SecondsOf("ann", now_), 480);
  EXPECT_DOUBLE_EQ(use.SecondsOf("ann", now_ + absl::Minutes(10)), 240);
  EXPECT_DOUBLE_EQ(use.SecondsOf("ann", now_ + absl::Minutes(30)), 60);
  use.Add("ann", absl::Seconds(1), now_ + absl::Minutes(30));
  EXPECT_DOUBLE_EQ(use.SecondsOf("ann", now_ + absl::Minutes(30)), 61);
  EXPECT_EQ(use.SecondsOf("bob", now_), 0);
}

TEST_F(SchedulingTest, WaitingForATurnIsNotTuningTime) {
  FakeAgent board("board", "1");
  const std::string ann = Submit("a", "ann"), bob = Submit("b", "bob");
  ASSERT_EQ(Lease("t/1"), ann);
  ASSERT_EQ(Lease("t/2"), bob);
  Measure(ann, "b", BatchFor(""));
  const v1::Lease lease = board.Sync(farm_, now_)->response.leases(0);
  ASSERT_EQ(lease.receipt().job_id(), ann);
  v1::Batch limited = BatchFor("");
  limited.set_useful_seconds(100);
  Measure(bob, "b", limited);
  *board.state.add_running() = lease.reference();
  Pass(absl::Seconds(20), {&board});
  EXPECT_DOUBLE_EQ(Waited(bob), 20);
  EXPECT_DOUBLE_EQ(Waited(ann), 0);
  EXPECT_THAT(Job(bob).waiting_for(), HasSubstr("its turn on board/cpu, which measures for job " + ann + " of ann"));
  EXPECT_THAT(Job(ann).waiting_for(), IsEmpty());
  board.Finish(lease);
  const v1::Lease next = board.Sync(farm_, now_)->response.leases(0);
  EXPECT_EQ(next.receipt().job_id(), bob);
  EXPECT_DOUBLE_EQ(next.batch().policy().visit_seconds(), 100) << "it waited, and may still take what it asked for";
  *board.state.add_running() = next.reference();
  Pass(absl::Seconds(5), {&board});
  EXPECT_DOUBLE_EQ(Waited(bob), 20);
}

TEST_F(SchedulingTest, AJobEndsWhenItsTimeIsOverWhateverItDoes) {
  const auto until = [&](absl::Duration left) {
    return [this, left](v1::JobSpec& spec) {
      spec.set_trials(0);
      *spec.mutable_until() = ToProto(now_ + left);
    };
  };
  v1::JobSpec late = SpecOf("late");
  until(absl::ZeroDuration())(late);
  EXPECT_THAT(std::string(farm_.SubmitJob(late, now_).status().message()), HasSubstr("which has passed"));
  const std::string tuned = Submit("a", "ann", 0, until(absl::Minutes(10)));
  const std::string away = Submit("b", "ann", 0, [&](v1::JobSpec& spec) {
    until(absl::Minutes(10))(spec);
    spec.add_devices("desk");
  });
  now_ += absl::Minutes(1);
  ASSERT_EQ(Lease("t"), tuned);
  EXPECT_EQ(last_.until_left().seconds(), 9 * 60);
  ASSERT_TRUE(Alive(tuned, 5).ok());
  Pass(absl::Minutes(9) + absl::Seconds(30));
  EXPECT_EQ(Job(away).state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(Job(away).error(), HasSubstr("it waited for a device for desk"));
  EXPECT_EQ(Job(tuned).state(), v1::JOB_STATE_RUNNING) << "its tuner may still confirm its winners";
  Pass(absl::Minutes(1));
  EXPECT_EQ(Job(tuned).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(Alive(tuned).status().code(), absl::StatusCode::kAborted);
}

// The machine slept for eight hours, or its clock was set. The leases' clock stood still meanwhile.
TEST_F(SchedulingTest, TimesForUsersAreByTheWallClock) {
  FakeAgent board("board", "1");
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  const absl::Time wall = now_ + absl::Hours(8);
  const std::string before = Submit("before", "ann", 0, [&](v1::JobSpec& spec) {
    spec.set_trials(0);
    *spec.mutable_until() = ToProto(wall);
  });
  farm_.SetWallOffset(absl::Hours(8));
  farm_.Tick(now_);
  EXPECT_EQ(Job(before).state(), v1::JOB_STATE_FAILED) << "its time is over";
  EXPECT_EQ(FromProto(Job(before).ended()), wall);
  const std::string id = Submit("a", "ann", 0, [&](v1::JobSpec& spec) {
    spec.set_trials(0);
    *spec.mutable_until() = ToProto(wall + absl::Minutes(10));
  });
  EXPECT_EQ(FromProto(Job(id).created()), wall);
  ASSERT_EQ(Lease("t"), id);
  EXPECT_EQ(last_.until_left().seconds(), 10 * 60);
  EXPECT_EQ(FromProto(farm_.ListDevices(v1::ListDevicesRequest(), now_).at(0).last_seen()), wall);
}

TEST_F(SchedulingTest, ProgressIsNotStoredEverySecond) {
  const std::string id = Submit("a", "ann");
  ASSERT_EQ(Lease("t"), id);
  farm_.TakeChangedJobs();
  farm_.TakeJobsWithNewEvents();
  int stored = 0;
  for (int i = 0; i < 20; ++i) {
    now_ += absl::Seconds(0.5);
    ASSERT_TRUE(Alive(id, i).ok());
    stored += static_cast<int>(farm_.TakeChangedJobs().size());
    EXPECT_THAT(farm_.TakeJobsWithNewEvents(), testing::ElementsAre(id)) << "who watches it hears of it";
  }
  EXPECT_EQ(stored, 2);
  v1::CompleteJobRequest complete;
  *complete.mutable_lease() = leases_[id];
  complete.mutable_progress()->set_trials(20);
  ASSERT_TRUE(farm_.CompleteJob(complete, now_).ok());
  ASSERT_THAT(farm_.TakeChangedJobs(), testing::SizeIs(1));
}

TEST_F(SchedulingTest, AJobOfAGroupWhoseDeviceIsAwayWaitsAlone) {
  FakeAgent here("here", "1");
  ASSERT_TRUE(here.Sync(farm_, now_).ok());
  const auto part = [](const std::string& kind) {
    return [kind](v1::JobSpec& spec) {
      spec.set_group("g1");
      spec.set_device_kind(kind);
    };
  };
  const std::string away = Submit("a", "ann", 0, part("pi")), ready = Submit("b", "ann", 0, part("f"));
  const std::string other = Submit("c", "ann");
  EXPECT_EQ(Job(away).waiting_for(), "a device for fingerprint pi");
  EXPECT_EQ(Lease("t/1"), ready);
  EXPECT_EQ(last_.job().spec().device_kind(), "f");
  EXPECT_EQ(Lease("t/2"), other);
  EXPECT_EQ(Lease("t/3"), "");
  v1::ListJobsRequest group;
  group.set_group("g1");
  EXPECT_THAT(farm_.ListJobs(group, now_), testing::SizeIs(2));
  EXPECT_THAT(farm_.ListJobs({}, now_), testing::SizeIs(3));
}

TEST_F(SchedulingTest, AListForPeopleLeavesOutWhatIsForTuners) {
  Submit("a", "ann", 0, [](v1::JobSpec& spec) {
    v1::WorkloadSpec& workload = *spec.mutable_workloads(0);
    workload.set_title("conv2d");
    workload.set_op("conv");
    workload.set_flops(7);
    workload.add_hints("1:1");
    workload.set_sizes("n0=1;n0=9");
    for (int i = 0; i < workload.GetDescriptor()->field_count(); ++i) {
      const auto* field = workload.GetDescriptor()->field(i);
      EXPECT_TRUE(field->is_repeated() || workload.GetReflection()->HasField(workload, field)) << field->name();
    }
  });
  v1::ListJobsRequest request;
  const auto listed = [&] { return farm_.ListJobs(request, now_).at(0).spec().workloads(0); };
  v1::WorkloadSpec shown = listed();
  EXPECT_EQ(shown.text(), "w");
  EXPECT_EQ(shown.hints_size(), 1);
  request.set_for_people(true);
  const v1::WorkloadSpec for_people = listed();
  shown.clear_text();
  shown.clear_hints();
  EXPECT_EQ(for_people.SerializeAsString(), shown.SerializeAsString()) << "all else, with the title";
  EXPECT_NE(Lease("t/1"), "");
  EXPECT_EQ(last_.job().spec().workloads(0).text(), "w");
}

TEST_F(SchedulingTest, AJobWithoutATunerSaysSo) {
  const std::string job = Submit("a", "ann");
  EXPECT_EQ(Job(job).waiting_for(), "a tuner, and none is connected: start hone-tuner");
  EXPECT_EQ(Lease("t/1"), job);
  const std::string next = Submit("b", "ann");
  EXPECT_EQ(Job(next).waiting_for(), "a tuner") << "one is connected, and holds the other";
}

TEST_F(SchedulingTest, AListForPeopleTakesNoRoomForWhatItLeavesOut) {
  EXPECT_EQ(Lease("t/1"), "") << "a tuner is there";
  for (const char* name : {"a", "b", "c"}) {
    Submit(name, "ann", 0,
           [](v1::JobSpec& spec) { SetWorkload(*spec.mutable_workloads(0), std::string(1 << 20, 'x')); });
  }
  v1::ListJobsRequest request;
  request.set_for_people(true);
  const std::vector<v1::Job> listed = farm_.ListJobs(request, now_);
  ASSERT_THAT(listed, testing::SizeIs(3));
  for (const v1::Job& job : listed) EXPECT_LT(MemoryOf(job), 10'000u);
  EXPECT_EQ(listed[2].waiting_for(), "a tuner");
  EXPECT_EQ(listed[1].waiting_for(), "a tuner; 1 other goes first");
  EXPECT_EQ(listed[0].waiting_for(), "a tuner; 2 others go first");
  EXPECT_EQ(Job(listed[0].id()).spec().workloads(0).text().size(), size_t{1} << 20) << "it has its text";
}

// A message over gRPC's size limit would make the whole answer fail.
TEST_F(SchedulingTest, AListIsTheNewestJobsThatFitIntoAMessage) {
  for (int i = 0; i < 9; ++i) {
    Submit("a" + std::to_string(i), "ann", 0,
           [](v1::JobSpec& spec) { SetWorkload(*spec.mutable_workloads(0), std::string(15 << 19, 'x')); });
  }
  v1::ListJobsRequest request;
  const std::vector<v1::Job> listed = farm_.ListJobs(request, now_);
  ASSERT_THAT(listed, testing::SizeIs(8));
  EXPECT_EQ(listed.front().spec().name(), "a8");
  request.set_for_people(true);
  EXPECT_THAT(farm_.ListJobs(request, now_), testing::SizeIs(9));
}

TEST_F(SchedulingTest, RecentUseIsPerKindOfDevice) {
  FakeAgent busy("busy", "1"), idle("idle", "1");
  idle.state.mutable_devices(0)->mutable_fingerprint()->set_digest("g");
  ASSERT_TRUE(busy.Sync(farm_, now_).ok() && idle.Sync(farm_, now_).ok());
  // Ann alone uses an idle kind of device; both users want the other kind.
  const std::string alone = Submit("alone", "ann"), ann = Submit("ann", "ann"), bob = Submit("bob", "bob");
  for (const char* tuner : {"t/1", "t/2", "t/3"}) ASSERT_NE(Lease(tuner), "");
  std::map<std::string, int> turns;
  Measure(alone, "long", BatchFor("", "g"));
  const v1::Lease all_day = idle.Sync(farm_, now_)->response.leases(0);
  *idle.state.add_running() = all_day.reference();
  for (int i = 0; i < 40; ++i) {
    Measure(ann, "a" + std::to_string(i), BatchFor("", "f"));
    Measure(bob, "b" + std::to_string(i), BatchFor("", "f"));
    const v1::Lease lease = busy.Sync(farm_, now_)->response.leases(0);
    ++turns[lease.receipt().job_id()];
    *busy.state.add_running() = lease.reference();
    Pass(absl::Seconds(3), {&busy, &idle});
    busy.state.clear_running();
    busy.Finish(lease);
    ASSERT_TRUE(idle.Sync(farm_, now_).ok());
  }
  EXPECT_NEAR(turns[ann], turns[bob], 2) << "else who measures elsewhere would never have a turn here";
}

TEST_F(SchedulingTest, JobsForAnyKindAreSpreadOverTheKinds) {
  FakeAgent first("first", "1"), second("second", "1"), third("third", "1");
  third.state.mutable_devices(0)->mutable_fingerprint()->set_digest("g");
  for (FakeAgent* agent : {&first, &second, &third}) ASSERT_TRUE(agent->Sync(farm_, now_).ok());
  std::map<std::string, int> kinds;
  std::vector<std::string> jobs;
  for (int i = 0; i < 6; ++i) {
    Submit("j" + std::to_string(i), "ann");
    jobs.push_back(Lease("t/" + std::to_string(i)));
    v1::ListDevicesRequest request;
    request.mutable_for_work();
    request.set_for_job_id(jobs.back());
    ++kinds[farm_.ListDevices(request, now_).front().state().fingerprint().digest()];
  }
  EXPECT_EQ(kinds["f"], 4) << "there are two of them";
  EXPECT_EQ(kinds["g"], 2);
  for (const std::string& job : jobs) {  // a repeated request gets the same answer
    v1::ListDevicesRequest request;
    request.mutable_for_work();
    request.set_for_job_id(job);
    --kinds[farm_.ListDevices(request, now_).front().state().fingerprint().digest()];
  }
  EXPECT_EQ(kinds["f"], 0);
}

}  // namespace
}  // namespace hone::tracker
