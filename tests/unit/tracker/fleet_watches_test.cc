// SPDX-License-Identifier: Apache-2.0
// Fleet watches in a farm: due once a day, measured by run jobs, kept over restarts, and their notices.
#include "tracker/queue/fleet_watches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/convert.h"
#include "tests/farm/builders.h"
#include "tests/farm/fake_agent.h"
#include "tracker/queue/farm.h"

namespace hone::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kHook[] = "https://hooks.lab/hone";

v1::FleetWatchSpec WatchSpec(const std::string& name = "nightly") {
  v1::FleetWatchSpec spec;
  spec.set_name(name);
  spec.set_submitted_by("ann");
  spec.set_submitter("hone://farm/client/ann");
  spec.add_devices("board");
  v1::FileName* package = spec.mutable_run()->add_packages();
  package->set_digest(std::string(64, 'a'));
  package->set_bytes(1000);
  package->set_name("net.hone");
  return spec;
}

class FleetWatchesTest : public testing::Test {
 protected:
  static FarmOptions Options() {
    FarmOptions options;
    options.jobs.notify_allowed = {"https://hooks.lab/"};
    options.stall = absl::InfiniteDuration();  // so that a test may let hours pass in one step
    options.devices.offline_after = absl::Hours(1000);
    return options;
  }
  // A new tracker with what the old one has stored.
  void Restart() {
    std::vector<v1::Job> jobs;
    for (const v1::Job* job : farm_->jobs().List({})) jobs.push_back(*job);
    std::vector<v1::FleetWatch> watches;
    for (const auto& [name, device] : Stored()) {
      if (device.empty()) watches.push_back(*farm_->GetWatch(name, now_));
    }
    // Other ids than before: a repeated request_id is answered with the job that exists.
    DrawId ids = CountingIds();
    for (uint64_t i = 0; i < 1000 * incarnation_; ++i) static_cast<void>(ids());
    auto farm = std::make_unique<Farm>(Options(), ++incarnation_, ids, "key");
    farm->Restore(std::move(jobs), {}, {}, std::move(watches));
    farm_ = std::move(farm);
  }
  // The rows that are stored by now.
  std::set<std::pair<std::string, std::string>> Stored() {
    for (auto& [key, row] : farm_->TakeChangedWatches()) {
      row.has_value() ? static_cast<void>(stored_.insert(key)) : static_cast<void>(stored_.erase(key));
    }
    return stored_;
  }
  void TickAt(absl::Time now) { farm_->Tick(now_ = now); }
  v1::FleetWatchDevice Row(int index = 0) { return farm_->GetWatch("nightly", now_)->devices(index); }
  v1::FleetNight Newest() { return *Row().nights().rbegin(); }
  int RunJobs() { return static_cast<int>(farm_->jobs().List({}).size()); }
  // The board takes the run, and returns its report.
  void Measure(FakeAgent& board, double seconds = 0.010, const std::string& kernel = "6.1") {
    auto answer = board.Sync(*farm_, now_);
    ASSERT_TRUE(answer.ok()) << answer.status();
    if (answer->response.leases().empty()) {  // the tracker did not know the board yet
      TickAt(now_);
      answer = board.Sync(*farm_, now_);
    }
    ASSERT_EQ(answer->response.leases_size(), 1);
    v1::BatchResult result = ReportOf(answer->response.leases(0).batch().run());
    result.mutable_run()->mutable_packages(0)->set_seconds(0, seconds);
    result.mutable_run()->mutable_environment()->set_kernel(kernel);
    board.Finish(answer->response.leases(0), result);
    ASSERT_TRUE(board.Sync(*farm_, now_).ok());
    TickAt(now_);
  }
  void MeasureNow(FakeAgent& board, double seconds, const std::string& kernel = "6.1") {
    now_ += absl::Hours(1);
    ASSERT_TRUE(farm_->RunWatch("nightly", "hone://farm/client/ann", now_).ok());
    Measure(board, seconds, kernel);
  }
  void Register(FakeAgent& board) { ASSERT_TRUE(board.Sync(*farm_, now_).ok()); }
  // Registers the board, and adds a watch on it whose notices go to kHook.
  void AddWatchWithNotices(FakeAgent& board) {
    Register(board);
    v1::FleetWatchSpec spec = WatchSpec();
    spec.set_notify_url(kHook);
    ASSERT_TRUE(farm_->AddWatch(spec, now_).ok());
  }

  uint64_t incarnation_ = 1;
  std::unique_ptr<Farm> farm_ = std::make_unique<Farm>(Options(), 1, CountingIds(), "key");
  absl::Time now_ = absl::FromUnixSeconds(86400 * 20000 + 3600 * 12);  // noon
  const absl::Time two_ = absl::FromUnixSeconds(86400 * 20001 + 3600 * 2);
  std::set<std::pair<std::string, std::string>> stored_;
};

TEST_F(FleetWatchesTest, AWatchIsMeasuredOnceADayAtItsTime) {
  FakeAgent board("board", "1");
  Register(board);
  const auto watch = farm_->AddWatch(WatchSpec(), now_);
  ASSERT_TRUE(watch.ok()) << watch.status();
  EXPECT_THAT(watch->spec().devices(), ElementsAre("board/cpu"));
  EXPECT_EQ(watch->spec().at(), "02:00");
  EXPECT_EQ(watch->spec().slower_than(), 0.03);
  EXPECT_EQ(watch->spec().run().seconds(), 20);
  EXPECT_EQ(FromProto(watch->next()), two_);
  TickAt(two_ - absl::Seconds(1));
  EXPECT_EQ(RunJobs(), 0);
  TickAt(two_);
  TickAt(two_ + absl::Seconds(1));
  ASSERT_EQ(RunJobs(), 1);
  EXPECT_EQ(farm_->jobs().List({})[0]->spec().submitted_by(), "ann");
  EXPECT_EQ(farm_->jobs().List({})[0]->spec().name(), "net.hone");
  Measure(board);
  EXPECT_EQ(Row().open_job(), "");
  ASSERT_EQ(Row().nights_size(), 1);
  EXPECT_EQ(Newest().verdict(), v1::FLEET_VERDICT_OK);
  EXPECT_EQ(Newest().median_seconds(), 0.010);
  EXPECT_EQ(FromProto(Newest().due()), two_);
  EXPECT_EQ(Newest().environment().kernel(), "6.1");
  EXPECT_EQ(Newest().environment().device(), "x86_64 test") << "which the tracker knows";
  EXPECT_EQ(FromProto(farm_->GetWatch("nightly", now_)->next()), two_ + absl::Hours(24));
  TickAt(two_ + absl::Hours(24));
  EXPECT_EQ(RunJobs(), 2);
}

TEST_F(FleetWatchesTest, EveryDeviceThatMatchesIsARow) {
  FakeAgent board("board", "1"), other("other", "1");
  for (FakeAgent* agent : {&board, &other}) (*agent->state.mutable_devices(0)->mutable_labels())["lab"] = "";
  Register(board);
  Register(other);
  v1::FleetWatchSpec spec = WatchSpec();
  spec.add_devices("lab");
  const auto watch = farm_->AddWatch(spec, now_);
  ASSERT_TRUE(watch.ok()) << watch.status();
  EXPECT_THAT(watch->spec().devices(), ElementsAre("board/cpu", "other/cpu"));
  TickAt(two_);
  EXPECT_EQ(RunJobs(), 2);
}

TEST_F(FleetWatchesTest, NightsThatTheTrackerMissedAreMeasuredOnce) {
  FakeAgent board("board", "1");
  Register(board);
  ASSERT_TRUE(farm_->AddWatch(WatchSpec(), now_).ok());
  now_ = two_ + absl::Hours(24 * 3 + 1);  // the tracker was away
  Restart();
  TickAt(now_);
  TickAt(now_ + absl::Seconds(1));
  EXPECT_EQ(RunJobs(), 1);
  EXPECT_EQ(FromProto(farm_->GetWatch("nightly", now_)->next()), two_ + absl::Hours(24 * 4));
}

TEST_F(FleetWatchesTest, ARestartWithAnOpenJobSubmitsNoSecondOne) {
  FakeAgent board("board", "1");
  Register(board);
  ASSERT_TRUE(farm_->AddWatch(WatchSpec(), now_).ok());
  TickAt(two_);
  Restart();
  TickAt(now_);
  ASSERT_EQ(RunJobs(), 1);
  FakeAgent again("board", "2");
  Measure(again);
  EXPECT_EQ(Row().nights_size(), 1);
}

TEST_F(FleetWatchesTest, AnOpenJobMeasuresTheNextNightToo) {
  FakeAgent board("board", "1");
  Register(board);
  ASSERT_TRUE(farm_->AddWatch(WatchSpec(), now_).ok());
  TickAt(two_ - absl::Minutes(1));
  ASSERT_TRUE(farm_->RunWatch("nightly", "hone://farm/client/ann", now_).ok());
  ASSERT_TRUE(farm_->RunWatch("nightly", "hone://farm/client/ann", now_).ok());
  TickAt(two_);
  EXPECT_EQ(RunJobs(), 1);
  Measure(board);
  EXPECT_EQ(Row().nights_size(), 1);
}

TEST_F(FleetWatchesTest, ADeviceThatStaysAwayDidNotRun) {
  FakeAgent board("board", "1");
  Register(board);
  ASSERT_TRUE(farm_->AddWatch(WatchSpec(), now_).ok());
  farm_->Drain("board", "moved");
  TickAt(two_);
  TickAt(two_ + absl::Hours(5));
  EXPECT_THAT(Row().nights(), IsEmpty());
  EXPECT_THAT(Row().waiting_for(), HasSubstr("board/cpu, which is drained"));
  TickAt(two_ + absl::Hours(6) + absl::Seconds(1));
  ASSERT_THAT(Row().nights(), SizeIs(1));
  EXPECT_EQ(Newest().verdict(), v1::FLEET_VERDICT_DID_NOT_RUN);
  EXPECT_EQ(Newest().problem(), "waited 6h for board/cpu, which is drained; wanted: board/cpu");
  EXPECT_EQ(farm_->jobs().List({})[0]->state(), v1::JOB_STATE_CANCELLED);
  farm_->Undrain("board");
  TickAt(two_ + absl::Hours(24));
  Measure(board);
  EXPECT_EQ(Newest().verdict(), v1::FLEET_VERDICT_OK) << "it is no error of the watch";
}

TEST_F(FleetWatchesTest, AFailedOrCancelledJobIsANightThatDidNotRun) {
  FakeAgent board("board", "1");
  Register(board);
  ASSERT_TRUE(farm_->AddWatch(WatchSpec(), now_).ok());
  TickAt(two_);
  ASSERT_TRUE(farm_->CancelJob(Row().open_job(), now_).ok());
  TickAt(now_);
  EXPECT_EQ(Newest().problem(), "its job was cancelled");
  ASSERT_TRUE(farm_->RunWatch("nightly", "hone://farm/client/ann", now_).ok());
  auto answer = board.Sync(*farm_, now_);
  ASSERT_EQ(answer->response.leases_size(), 1);
  v1::BatchResult result;
  v1::CandidateOutcome* outcome = result.add_outcomes();
  outcome->set_candidate_id("run");
  outcome->mutable_outcome()->mutable_failure()->set_kind(v1::FAILURE_KIND_CRASHED);
  outcome->mutable_outcome()->mutable_failure()->set_text("net.hone: signal 11");
  board.Finish(answer->response.leases(0), result);
  ASSERT_TRUE(board.Sync(*farm_, now_).ok());
  TickAt(now_);
  EXPECT_EQ(Newest().problem(), "net.hone: signal 11");
}

TEST_F(FleetWatchesTest, OnlyTheSubmitterMayChangeAWatch) {
  FakeAgent board("board", "1");
  Register(board);
  ASSERT_TRUE(farm_->AddWatch(WatchSpec(), now_).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(farm_->RunWatch("nightly", "hone://farm/tuner/ann", now_).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(farm_->RemoveWatch("nightly", "hone://farm/client/bob", now_)));
  EXPECT_TRUE(farm_->RunWatch("nightly", std::nullopt, now_).ok()) << "an admin";
  EXPECT_TRUE(absl::IsNotFound(farm_->RemoveWatch("other", "hone://farm/client/ann", now_)));
}

TEST_F(FleetWatchesTest, ARemovedWatchLeavesNothing) {
  FakeAgent board("board", "1");
  Register(board);
  ASSERT_TRUE(farm_->AddWatch(WatchSpec(), now_).ok());
  EXPECT_THAT(Stored(), SizeIs(2));
  EXPECT_EQ(farm_->FilesInUse({std::string(64, 'a')}), std::set<std::string>{std::string(64, 'a')});
  TickAt(two_);
  ASSERT_TRUE(farm_->RemoveWatch("nightly", "hone://farm/client/ann", now_).ok());
  EXPECT_EQ(farm_->jobs().List({})[0]->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_THAT(Stored(), IsEmpty());
  EXPECT_THAT(farm_->FilesInUse({std::string(64, 'a')}), IsEmpty());
  TickAt(two_ + absl::Hours(24));
  EXPECT_EQ(RunJobs(), 1);
}

TEST_F(FleetWatchesTest, WrongWatchesAreRefused) {
  FakeAgent board("board", "1");
  Register(board);
  const auto refused = [&](auto change) {
    v1::FleetWatchSpec spec = WatchSpec();
    change(spec);
    return std::string(farm_->AddWatch(spec, now_).status().message());
  };
  EXPECT_THAT(refused([](auto& spec) { spec.set_name("../x"); }), HasSubstr("the watch has the name '../x'"));
  EXPECT_THAT(refused([](auto& spec) { spec.set_name(""); }), HasSubstr("1 to 64 letters"));
  EXPECT_THAT(refused([](auto& spec) { spec.set_at("24:00"); }), HasSubstr("time of day in UTC such as 02:00"));
  EXPECT_THAT(refused([](auto& spec) { spec.set_slower_than(-1); }), HasSubstr("the fraction -1"));
  EXPECT_THAT(refused([](auto& spec) { spec.set_notify_url("https://elsewhere/"); }), HasSubstr("https://hooks.lab/"));
  EXPECT_THAT(refused([](auto& spec) { spec.mutable_run()->clear_packages(); }), HasSubstr("0 packages; give one"));
  EXPECT_THAT(refused([](auto& spec) { spec.mutable_run()->set_keep_outputs(true); }), HasSubstr("keep_outputs"));
  EXPECT_THAT(refused([](auto& spec) { spec.mutable_run()->set_seconds(3601); }), HasSubstr("the limit is 3600"));
  EXPECT_THAT(refused([](auto& spec) { spec.set_devices(0, "nobody"); }), HasSubstr("label 'nobody'"));
  EXPECT_THAT(refused([](auto& spec) { spec.clear_devices(); }), HasSubstr("no device"));
  EXPECT_EQ(refused([](auto&) {}), "");
  EXPECT_THAT(refused([](auto&) {}), HasSubstr("there is a watch 'nightly' already"));
  for (int i = 0; i < 49; ++i) EXPECT_TRUE(farm_->AddWatch(WatchSpec(std::to_string(i)), now_).ok()) << i;
  EXPECT_THAT(refused([](auto& spec) { spec.set_name("more"); }), HasSubstr("'ann' has 50 watches"));
}

TEST_F(FleetWatchesTest, NoticesTellWhatIsNewAndOnceThatItIsGoodAgain) {
  FakeAgent board("board", "1");
  AddWatchWithNotices(board);
  const auto told = [&]() -> std::string {
    const std::vector<NightNotice> notices = farm_->NightNotices();
    if (notices.empty()) return "";
    EXPECT_EQ(notices[0].url, kHook);
    v1::JobNotice sent;
    sent.set_closed(true);
    farm_->RecordNotice(notices[0], sent);
    return v1::FleetVerdict_Name(notices[0].night.verdict());
  };
  for (int night = 0; night < 3; ++night) {
    MeasureNow(board, 0.010);
    EXPECT_EQ(told(), "") << night;
  }
  MeasureNow(board, 0.012);
  EXPECT_EQ(told(), "FLEET_VERDICT_SLOWER");
  MeasureNow(board, 0.012);
  EXPECT_EQ(told(), "") << "the receiver knows";
  Restart();
  FakeAgent again("board", "2");
  Register(again);
  MeasureNow(again, 0.010);
  EXPECT_EQ(told(), "FLEET_VERDICT_OK");
  MeasureNow(again, 0.010);
  EXPECT_EQ(told(), "");
  MeasureNow(again, 0.010, "6.2");
  EXPECT_EQ(told(), "FLEET_VERDICT_CHANGED");
  MeasureNow(again, 0.010, "6.2");
  EXPECT_EQ(told(), "") << "a changed environment was no harm that could be over";
}

TEST_F(FleetWatchesTest, AnUndeliveredNoticeGivesWayToTheNextNight) {
  FakeAgent board("board", "1");
  AddWatchWithNotices(board);
  for (int night = 0; night < 3; ++night) MeasureNow(board, 0.010);
  MeasureNow(board, 0.012);
  const NightNotice slower = farm_->NightNotices().at(0);
  v1::JobNotice failed;
  failed.set_attempts(1);
  failed.set_problem("no answer");
  farm_->RecordNotice(slower, failed);
  EXPECT_EQ(farm_->NightNotices().at(0).notice.attempts(), 1);
  MeasureNow(board, 0.010);
  EXPECT_THAT(farm_->NightNotices(), IsEmpty()) << "it is good, and the receiver knows nothing else";
  v1::JobNotice late;
  late.set_closed(true);
  farm_->RecordNotice(slower, late);  // the attempt of before was delivered after all
  ASSERT_THAT(farm_->NightNotices(), SizeIs(1));
  EXPECT_EQ(farm_->NightNotices()[0].night.verdict(), v1::FLEET_VERDICT_OK);
}

TEST_F(FleetWatchesTest, AnAcceptedNightIsGood) {
  FakeAgent board("board", "1");
  AddWatchWithNotices(board);
  const std::string ann = "hone://farm/client/ann";
  EXPECT_TRUE(absl::IsFailedPrecondition(farm_->AcceptNight("nightly", "", ann, now_).status()));
  for (const double seconds : {0.010, 0.010, 0.012}) MeasureNow(board, seconds);
  ASSERT_EQ(Newest().verdict(), v1::FLEET_VERDICT_SLOWER);
  ASSERT_THAT(farm_->NightNotices(), SizeIs(1));
  EXPECT_TRUE(absl::IsNotFound(farm_->AcceptNight("nightly", "other/cpu", ann, now_).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(farm_->AcceptNight("nightly", "", "hone://farm/client/bob", now_).status()));
  ASSERT_TRUE(farm_->AcceptNight("nightly", "board/cpu", ann, now_).ok());
  EXPECT_TRUE(Newest().accepted());
  EXPECT_THAT(farm_->NightNotices(), IsEmpty()) << "an accepted night needs no notice";
  MeasureNow(board, 0.012);
  EXPECT_EQ(Newest().verdict(), v1::FLEET_VERDICT_OK);
  EXPECT_EQ(Newest().reference_seconds(), 0.012);
  EXPECT_THAT(farm_->NightNotices(), IsEmpty());
}

// Adds the nights `first` to `last`. The number of a night is its job id, and its median in seconds. Night 2 was not
// measured.
void AddNights(FleetWatches& watches, int first, int last) {
  for (int i = first; i <= last; ++i) {
    v1::FleetNight night;
    if (i != 2) night.set_median_seconds(i);
    night.set_job_id(std::to_string(i));
    watches.EndNight("nightly", "board", night);
  }
}

std::string KeptNights(const FleetWatches& watches) {
  std::string kept;
  for (const v1::FleetNight& night : watches.Find("nightly")->devices(0).nights()) kept += night.job_id() + " ";
  return kept;
}

TEST_F(FleetWatchesTest, OldNightsAreDroppedExceptTheFirst) {
  FleetWatches watches(WatchOptions{.nights_max = 10}, {});
  ASSERT_TRUE(watches.Add(WatchSpec(), now_).ok());
  AddNights(watches, 1, 30);
  EXPECT_EQ(KeptNights(watches), "1 2 3 4 5 6 27 28 29 30 ");
}

TEST_F(FleetWatchesTest, NightsBeforeTheAcceptedOneAreDroppedFirst) {
  FleetWatches watches(WatchOptions{.nights_max = 10}, {});
  ASSERT_TRUE(watches.Add(WatchSpec(), now_).ok());
  AddNights(watches, 1, 8);
  ASSERT_TRUE(watches.Accept("nightly", "board").ok());
  AddNights(watches, 9, 14);
  EXPECT_EQ(KeptNights(watches), "5 6 7 8 9 10 11 12 13 14 ");
  AddNights(watches, 15, 30);
  EXPECT_EQ(KeptNights(watches), "8 9 10 11 12 26 27 28 29 30 ");
}

TEST_F(FleetWatchesTest, AWrongWallClockDelaysAWatchByADayAtMost) {
  FleetWatches watches(WatchOptions{}, {});
  ASSERT_TRUE(watches.Add(WatchSpec(), now_ + absl::Hours(24 * 1000)).ok());
  EXPECT_THAT(watches.TakeDue(now_), IsEmpty());
  EXPECT_EQ(FromProto(watches.Find("nightly")->next()), two_);
}

}  // namespace
}  // namespace hone::tracker
