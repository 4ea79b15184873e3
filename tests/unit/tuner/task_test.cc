// SPDX-License-Identifier: Apache-2.0
#include "tuner/task.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/digest.h"
#include "compiler/space/space.h"
#include "tests/unit/tuner/pretended_farm.h"
#include "tuner/cost_model.h"
#include "tuner/one_speed.h"

namespace hone::tuner {
namespace {

using ::testing::HasSubstr;

// The digest does not depend on names, so the text must be canonical: schedules refer to its names.
TEST(TaskTest, TheTextIsTheCanonicalOneOfItsDigest) {
  const target::Target target = target::ParseTarget("x86_64").value();
  const std::string text = MatMul(64, 96, 128).text;
  std::string renamed = text;
  for (size_t at = renamed.find("i2"); at != std::string::npos; at = renamed.find("i2")) renamed.replace(at, 2, "k");
  ASSERT_EQ(ir::WorkloadDigest(ir::ParseWorkload(renamed).value()), Sha256Hex(text));
  EXPECT_EQ(MakeTask(MatMul(64, 96, 128), target, 1, 1).status(), absl::OkStatus());
  for (const JobWorkload& given :
       {JobWorkload{.digest = Sha256Hex(text), .text = renamed},
        JobWorkload{.digest = Sha256Hex(renamed), .text = renamed}, JobWorkload{.digest = "d", .text = text}}) {
    const absl::Status status = MakeTask(given, target, 1, 1).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("not canonical, or does not have this digest"));
  }
}

// A workload with the open size n0 in [1, 128].
JobWorkload OpenMatMul() {
  const ir::Workload workload =
      ir::ParseWorkload(
          "workload \"matmul\"\nsize n in [1, 128]\ninput x: f32[n,32] in [-1, 1]\nconst w: f32[32,64] in [-1, 1]\n"
          "t: f32[n,64] over i:n, j:64 = sum k:32 of x[i, k] * w[k, j]\noutput t\n")
          .value();
  const std::string text = ir::Print(ir::Canonicalize(workload));
  return {.digest = Sha256Hex(text), .text = text, .op = "matmul"};
}

TEST(TaskTest, OpenSizesNeedPointsInTheirRanges) {
  const target::Target target = target::ParseTarget("x86_64").value();
  JobWorkload open = OpenMatMul(), fixed = MatMul(64, 96, 128);
  for (const char* sizes : {"", "n0=0", "n0=129", "n=5", "n0=5,n1=5", "n0=5;n0=200", "n0"}) {
    open.sizes = sizes;
    const absl::Status status = MakeTask(open, target, 1, 1).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << sizes << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("do not give each of its 1 open sizes a value in its range"));
  }
  fixed.sizes = "n0=5";
  EXPECT_TRUE(absl::IsInvalidArgument(MakeTask(fixed, target, 1, 1).status()));
  open.sizes = "n0=5;n0=128";
  const absl::StatusOr<Task> task = MakeTask(open, target, 1, 1);
  ASSERT_TRUE(task.ok()) << task.status();
  EXPECT_EQ(task->description.sizes, open.sizes);
  EXPECT_EQ(task->description.flops, (5 + 128) * 64 * 32 * 2.0);
  EXPECT_EQ(task->description.bytes, 4.0 * (2 * 32 * 64 + (5 + 128) * (32 + 64)));
  EXPECT_EQ(task->description.buffers[0].elements, 128 * 32) << "buffers are those of the largest sizes";
}

// Times at other sizes are not comparable, but a schedule that was wrong anywhere is not tried again.
TEST(TaskTest, OfTrialsAtOtherSizesOnlyWrongOutputsAreRemembered) {
  JobWorkload open = OpenMatMul();
  open.sizes = "n0=11;n0=128";
  const target::Target target = target::ParseTarget("x86_64").value();
  const std::vector<Proposal> proposals = MakeTask(open, target, 1, 1)->search->Propose(3, AnalyticModel());
  ASSERT_EQ(proposals.size(), 3u);
  const auto trial = [&](size_t i, Outcome outcome, const std::string& sizes) {
    PastTrial past = {.schedule = proposals[i].schedule, .decisions = space::Print(proposals[i].decisions)};
    past.outcome = std::move(outcome);
    past.sizes = sizes;
    return past;
  };
  std::vector<PastTrial> past = {trial(0, {{1.0}, 1, {}}, open.sizes), trial(1, {{0.1}, 1, {}}, "n0=11"),
                                 trial(2, {{}, 0, Failure{FailureKind::kWrongOutput, ""}}, "n0=11")};
  Task task = MakeTask(open, target, 1, 1).value();
  TakeOutOtherSizes(task, past);
  ASSERT_EQ(past.size(), 1u);
  EXPECT_EQ(past[0].schedule, proposals[0].schedule);
  std::set<std::string> proposed;
  for (const Proposal& p : task.search->Propose(3, AnalyticModel())) proposed.insert(p.schedule);
  EXPECT_TRUE(proposed.contains(proposals[1].schedule));
  EXPECT_FALSE(proposed.contains(proposals[2].schedule));
}

TEST(TaskTest, RelativesAreOrderedByLikeness) {
  std::vector<Task> tasks;
  const target::Target target = target::ParseTarget("x86_64").value();
  for (const int m : {64, 8, 72, 4096}) {
    tasks.push_back(MakeTask(MatMul(m, 96, 128), target, 1, 1).value());
    tasks.back().best_decisions = {{"rows", m, {}}};
  }
  tasks[3].best_decisions.clear();  // not measured yet
  const auto relatives = RelativesOf(tasks[0], tasks);
  ASSERT_EQ(relatives.size(), 2u);
  EXPECT_EQ(relatives[0][0].value, 72);
  EXPECT_EQ(relatives[1][0].value, 8);
}

TEST(TaskTest, AWinnerThatWasInNoLaterConfirmationIsUncompared) {
  Task task = MakeTask(MatMul(64, 96, 128), target::ParseTarget("x86_64").value(), 1, 1).value();
  task.best_schedule = "b";
  std::vector<PastTrial> past;
  const auto add = [&](const std::string& batch, int64_t at, std::map<std::string, double> seconds) {
    for (const auto& [schedule, time] : seconds) {
      past.push_back({schedule, "", true, {{time, time, time, time}, 1, {}}, batch, absl::FromUnixSeconds(at)});
    }
  };
  const auto not_compared = [&](int64_t now) {
    std::vector<std::string> schedules;
    for (const Proposal& p : UncomparedWinners(task, past, absl::FromUnixSeconds(now))) schedules.push_back(p.schedule);
    return schedules;
  };
  const std::string default_schedule = task.default_proposal.schedule;
  add("one 1", 10, {{default_schedule, 4}, {"old", 2}, {"loser", 3}});
  add("one 2", 20, {{default_schedule, 4}, {"old", 2}, {"a", 1}});
  add("other", 30, {{default_schedule, 8}, {"b", 5}, {"loser", 6}});
  add("cut short", 40, {{"a", 1}, {"c", 0.5}});
  EXPECT_THAT(not_compared(100), ::testing::ElementsAre("a"));
  EXPECT_THAT(not_compared(29), ::testing::IsEmpty()) << "a comparison that is made now would not be the newest";
  past.push_back({"a", "", false, {{}, 0, Failure{FailureKind::kCompileError, ""}}, "", absl::FromUnixSeconds(50)});
  EXPECT_THAT(not_compared(100), ::testing::IsEmpty()) << "it cannot be compared";
  past.pop_back();
  add("both", 60, {{default_schedule, 8}, {"b", 5}, {"a", 6}});
  EXPECT_THAT(not_compared(100), ::testing::IsEmpty());
}

void AddPast(std::vector<PastTrial>& past, const std::string& batch, int64_t at, bool confirmed,
             const std::map<std::string, double>& seconds) {
  for (const auto& [schedule, time] : seconds) {
    past.push_back({schedule, "", confirmed, {{time}, 1, {}}, batch, absl::FromUnixSeconds(at)});
  }
}

// Seconds by batch and schedule; failed and disturbed trials have none.
std::map<std::string, double> SecondsIn(const std::vector<PastTrial>& past) {
  std::map<std::string, double> seconds;
  for (const PastTrial& trial : past) {
    if (const auto timed = SecondsOf(trial.outcome)) seconds[trial.batch + ": " + trial.schedule] = *timed;
  }
  return seconds;
}

TEST(TaskTest, TimesOfOtherDaysAreBroughtToTheSpeedOfTheConfirmation) {
  std::vector<PastTrial> past;
  AddPast(past, "first", 10, false, {{"default", 2}, {"winner", 1}, {"b", 1.5}});
  AddPast(past, "alone", 20, false, {{"c", 4}});
  AddPast(past, "slower day", 1000, true, {{"default", 2.6}, {"winner", 1.3}});
  AddPast(past, "the same day", 1010, false, {{"winner", 1.3}, {"d", 1.2}});
  AddPast(past, "disturbed", 1020, false, {{"winner", 13}, {"e", 1.5}});
  AddPast(past, "over", 1030, false, {{"winner", 1.3}, {"e", 1.5}});
  AddPast(past, "much slower day", 2000, false, {{"winner", 2.6}, {"g", 5}});
  AddPast(past, "still", 2010, false, {{"winner", 2.6}, {"g", 5}});
  AddPast(past, "", 3000, false, {{"f", 3}});
  past.push_back({"b", "", false, {{}, 0, Failure{FailureKind::kLostDevice, ""}}, "first", {}});
  ScaleToOneSpeed(past, "winner", "default");
  std::map<std::string, double> seconds = SecondsIn(past);
  EXPECT_NEAR(seconds["first: default"], 2.6, 1e-9);
  EXPECT_NEAR(seconds["first: winner"], 1.3, 1e-9);
  EXPECT_NEAR(seconds["first: b"], 1.95, 1e-9);
  EXPECT_NEAR(seconds["alone: c"], 5.2, 1e-9);
  EXPECT_NEAR(seconds["slower day: winner"], 1.3, 1e-9) << "what decides stays as it is";
  EXPECT_NEAR(seconds["the same day: d"], 1.2, 1e-5);
  EXPECT_FALSE(seconds.contains("disturbed: e")) << "no visit is trusted to be so much slower than the one before";
  EXPECT_NEAR(seconds["over: e"], 1.5, 1e-5);
  EXPECT_FALSE(seconds.contains("much slower day: g"));
  EXPECT_NEAR(seconds["still: g"], 2.5, 1e-5) << "but where the next one is as slow";
  EXPECT_EQ(seconds[": f"], 3);
}

// In each visit one kernel takes 1% less than all others by luck; the next visit reveals that.
TEST(TaskTest, LuckyTimesOfEarlierRunsDoNotAccumulate) {
  std::vector<PastTrial> past;
  for (int visit = 1; visit < 30; ++visit) {
    AddPast(past, fmt::format("{:02}", visit), visit, false,
            {{fmt::format("{}", visit - 1), 1.0}, {fmt::format("{}", visit), 0.99}});
  }
  ScaleToOneSpeed(past, "", "default");
  for (const auto& [trial, seconds] : SecondsIn(past)) EXPECT_GT(seconds, 0.975) << trial;
}

// A task with proposals for the default and some candidates.
class MeasuredTaskTest : public ::testing::Test {
 protected:
  static Task NewTask() { return MakeTask(MatMul(64, 96, 128), target::ParseTarget("x86_64").value(), 1, 1).value(); }
  static Outcome Timed(double seconds, bool in_turns = true) {
    return {{seconds, seconds, seconds, seconds}, in_turns ? 1 : 4, {}};
  }
  // The estimated seconds of the proposal at that place; -1: no estimate.
  double EstimateOf(size_t place) const {
    const std::optional<LatencyEstimate> estimate = task_.search->EstimateOf(proposals_[place].schedule);
    return estimate.has_value() ? estimate->seconds : -1;
  }
  static Outcomes Race(const std::vector<double>& seconds) {
    Outcomes outcomes;
    for (size_t i = 0; i < seconds.size(); ++i) outcomes[CandidateId(i)] = Timed(seconds[i]);
    return outcomes;
  }

  Task task_ = NewTask();
  const std::vector<Proposal> proposals_ = task_.search->Propose(8, AnalyticModel());
};

TEST_F(MeasuredTaskTest, AnEliminatedCandidateIsNoFasterThanTheFinalists) {
  Outcomes outcomes = Race({2.0, 1.0, 1.1});
  outcomes["c3"] = Timed(0.9, false);
  outcomes["c4"] = Timed(2.5, false);
  Observe(task_, proposals_, outcomes, 1);
  EXPECT_EQ(task_.best_schedule, proposals_[1].schedule);
  EXPECT_EQ(EstimateOf(3), 2.0);
  EXPECT_EQ(EstimateOf(4), 2.5);
  EXPECT_EQ(task_.default_seconds, 2.0);
}

TEST_F(MeasuredTaskTest, WithoutInterleavedRoundsAllTimesCount) {
  Observe(task_, proposals_, {{"c0", Timed(2.0, false)}, {"c1", Timed(0.9, false)}}, 1);
  EXPECT_EQ(task_.best_schedule, proposals_[1].schedule);
  EXPECT_EQ(task_.best_seconds, 0.9);
}

TEST_F(MeasuredTaskTest, AWinnerThatTurnsOutSlowerIsReplaced) {
  Observe(task_, {proposals_[0], proposals_[1], proposals_[2]}, Race({2.0, 1.0, 1.02}), 1);
  const Proposal incumbent = IncumbentOf(task_);
  EXPECT_EQ(incumbent.schedule, proposals_[1].schedule);
  const double speed_factor = *ObserveIncumbent(task_, incumbent, {1.0, 1}, {{"c1", Timed(1.1)}}, "c1");
  EXPECT_NEAR(speed_factor, std::sqrt(1.1), 1e-9);
  Observe(task_, {proposals_[3]}, {{"c0", Timed(1.2)}}, speed_factor);
  EXPECT_NEAR(EstimateOf(1), std::sqrt(1.1), 1e-9);
  EXPECT_EQ(task_.best_schedule, proposals_[2].schedule);
  EXPECT_EQ(task_.best_seconds, 1.02);
}

// Two visits begin with the same incumbent. Before the second one ends, the first finds a better kernel.
TEST_F(MeasuredTaskTest, AVisitIsScaledByItsOwnIncumbent) {
  Observe(task_, {proposals_[0], proposals_[1]}, Race({2.0, 1.0}), 1);
  const Proposal incumbent = IncumbentOf(task_);
  Observe(task_, {proposals_[2]}, {{"c0", Timed(0.9)}}, 1);
  EXPECT_EQ(task_.best_schedule, proposals_[2].schedule);
  const double speed_factor = *ObserveIncumbent(task_, incumbent, {1.0, kConfirmedTimings}, {{"c1", Timed(1.2)}}, "c1");
  Observe(task_, {proposals_[3]}, {{"c0", Timed(0.96)}}, speed_factor);
  EXPECT_NEAR(EstimateOf(3), 0.8, 1e-5) << "the device was slower";
  EXPECT_EQ(task_.best_schedule, proposals_[3].schedule);
}

TEST_F(MeasuredTaskTest, AReplacedWinnerIsComparedWithItsSuccessor) {
  Observe(task_, {proposals_[0], proposals_[1]}, Race({2.0, 1.0}), 1);
  ASSERT_TRUE(ApplyConfirmation(task_, {proposals_[0], proposals_[1]}, Race({2.0, 1.0})));
  ASSERT_TRUE(task_.confirmed);
  Observe(task_, {proposals_[2]}, {{"c0", Timed(0.9)}}, 1);
  EXPECT_EQ(task_.best_schedule, proposals_[2].schedule);
  EXPECT_FALSE(task_.confirmed);
  ASSERT_EQ(task_.pending_finalists.size(), 1u);
  EXPECT_EQ(task_.pending_finalists[0].schedule, proposals_[1].schedule);
}

TEST_F(MeasuredTaskTest, ALuckyTimeDoesNotStandAgainstAConfirmation) {
  Observe(task_, {proposals_[0], proposals_[1], proposals_[2]}, Race({2.0, 1.0, 1.2}), 1);
  // The device is as fast as during the search, or half as fast.
  for (const double slower : {1.0, 2.0}) {
    ASSERT_TRUE(ApplyConfirmation(task_, {proposals_[0], proposals_[1]}, Race({2.0 * slower, 1.5 * slower})));
    EXPECT_NEAR(EstimateOf(1), 1.5, 1e-9);
    EXPECT_EQ(task_.search->Best(1)[0].schedule, proposals_[2].schedule);
  }
  task_.search->Observe(proposals_[1].schedule, 0.5);
  EXPECT_NEAR(EstimateOf(1), 1.5, 1e-9) << "a race says nothing more";
}

TEST_F(MeasuredTaskTest, ALuckyTimeOfAnEarlierRunDoesNotStandAgainstAConfirmation) {
  std::vector<PastTrial> past;
  const auto add = [&](size_t place, double seconds, bool confirmed, const std::string& batch) {
    past.push_back({proposals_[place].schedule, space::Print(proposals_[place].decisions), confirmed, Timed(seconds),
                    batch, absl::FromUnixSeconds(static_cast<int64_t>(past.size()))});
  };
  add(0, 2.0, false, "race");
  add(1, 1.0, false, "race");
  add(2, 1.2, false, "race");
  add(0, 2.0, true, "confirmation");
  add(1, 1.5, true, "confirmation");
  ScaleToOneSpeed(past, proposals_[1].schedule, proposals_[0].schedule);
  Task next = NewTask();
  for (const PastTrial& trial : past) Remember(next, trial);
  EXPECT_EQ(next.search->Best(1)[0].schedule, proposals_[2].schedule);
}

TEST_F(MeasuredTaskTest, CandidatesOfADisturbedVisitAreTriedAgain) {
  PastTrial disturbed;
  disturbed.schedule = proposals_[1].schedule;
  disturbed.decisions = space::Print(proposals_[1].decisions);
  Task next = NewTask();
  Remember(next, disturbed);
  EXPECT_EQ(next.search->known(), 0u);
}

TEST_F(MeasuredTaskTest, FewRepeatsAreNotTakenToBePrecise) {
  Observe(task_, {proposals_[0], proposals_[1]}, {{"c0", {{2.0}, 1, {}}}, {"c1", Timed(1.0)}}, 1);
  std::vector<Sample> samples;
  task_.search->CollectSamples(0, &samples);
  ASSERT_EQ(samples.size(), 2u);
  for (const Sample& sample : samples) EXPECT_EQ(sample.noise, sample.seconds == 2.0 ? 0.05 : 0);
}

TEST(TaskTest, InterleavedRepeatsCountIfThereAreAny) {
  Outcome outcome = {{9.0, 9.0, 1.0, 3.0, 2.0}, 2, {}};
  EXPECT_EQ(SecondsOf(outcome), 2.0);
  outcome.first_interleaved = 5;
  EXPECT_EQ(SecondsOf(outcome), 3.0);
  EXPECT_EQ(SecondsOf(Outcome()), std::nullopt);
}

}  // namespace
}  // namespace hone::tuner
