// SPDX-License-Identifier: Apache-2.0
#include "tuner/task_scheduler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "tuner/budget.h"

namespace hone::tuner {
namespace {

TEST(TaskSchedulerTest, EveryTaskOnceBeforeAnyTwiceAndThoseFirstThatTakeMostTime) {
  TaskScheduler scheduler({{1, 1e-3, 1e-4}, {1, 1e-2, 1e-3}, {3, 1e-3, 1e-4}, {1, 1e-3, 1e-4}}, {});
  for (size_t expected : {1, 2, 0, 3}) {
    const auto round = scheduler.Next();
    ASSERT_TRUE(round.has_value());
    EXPECT_EQ(round->task, expected);
    EXPECT_EQ(round->trials, 16);
  }
  EXPECT_FALSE(scheduler.Next().has_value()) << "nothing is known yet to choose by";
  scheduler.Finish(1, 1e-2);
  EXPECT_EQ(scheduler.Next()->task, 1u);
}

TEST(TaskSchedulerTest, TrialsGoWhereTheModelSpendsItsTime) {
  TaskScheduler scheduler({{1, 1e-3, 1e-5}, {20, 1e-3, 1e-5}}, {});
  std::map<size_t, int> rounds;
  for (int i = 0; i < 30; ++i) {
    const auto round = scheduler.Next();
    ASSERT_TRUE(round.has_value());
    scheduler.Finish(round->task, 1e-3 * std::pow(0.98, ++rounds[round->task]));
  }
  EXPECT_GT(rounds[1], 2 * rounds[0]);
  EXPECT_GE(rounds[0], 2) << "but nobody starves";
}

TEST(TaskSchedulerTest, WithoutGainsEachHasItsTurn) {
  TaskScheduler scheduler({{1, 1e-3, 1e-5}, {20, 1e-3, 1e-5}, {1, 1e-3, 1e-3}}, {.by_gain = false});
  for (int i = 0; i < 12; ++i) {
    const auto round = scheduler.Next();
    ASSERT_TRUE(round.has_value());
    EXPECT_EQ(round->task, static_cast<size_t>(i % 3));
    scheduler.Finish(round->task, 1e-3 * std::pow(0.98, i));
  }
}

TEST(TaskSchedulerTest, ImprovingWorkloadsGoFirst) {
  TaskScheduler scheduler({{1, 1e-3, 1e-5}, {1, 1e-3, 1e-5}}, {});
  double improving = 1e-3;
  std::map<size_t, int> rounds;
  for (int i = 0; i < 24; ++i) {
    const auto round = scheduler.Next();
    ASSERT_TRUE(round.has_value());
    ++rounds[round->task];
    if (round->task == 1) improving *= 0.9;
    scheduler.Finish(round->task, round->task == 1 ? improving : 1e-3);
  }
  EXPECT_GT(rounds[1], rounds[0]);
}

// Returns the rounds, out of twelve, that each task gets if it makes no progress.
std::map<size_t, int> TwelveRounds(TaskScheduler scheduler) {
  std::map<size_t, int> rounds;
  for (int i = 0; i < 12; ++i) {
    const auto round = scheduler.Next();
    EXPECT_TRUE(round.has_value());
    if (!round.has_value()) break;
    ++rounds[round->task];
    scheduler.Finish(round->task, 1e-3);
  }
  return rounds;
}

TEST(TaskSchedulerTest, ATaskAtItsRoofHasNothingToGain) {
  std::map<size_t, int> rounds = TwelveRounds({{{1, 1e-3, 0.99e-3}, {1, 1e-3, 1e-4}}, {}});
  EXPECT_GE(rounds[1], 9);
}

// Algorithms with fewer operations, or tensor instructions, may beat the estimated bound.
TEST(TaskSchedulerTest, ATaskBelowItsRoofIsNotThoughtToBeAtItsEnd) {
  std::map<size_t, int> rounds = TwelveRounds({{{1, 1e-3, 1.5e-3}, {1, 1e-3, 1e-4}}, {}});
  EXPECT_EQ(rounds[0], 6);
}

TEST(TaskSchedulerTest, NegligibleTasksGetOneSmallRoundUntilAllOthersAreDone) {
  TaskScheduler scheduler({{1, 1e-6, 1e-8}, {1, 1e-2, 1e-3}}, {});
  EXPECT_EQ(scheduler.Next()->task, 1u);
  const auto small = scheduler.Next();
  EXPECT_EQ(small->task, 0u);
  EXPECT_LT(small->trials, 16);
  scheduler.Finish(0, 1e-6);
  scheduler.Finish(1, 1e-2);
  for (int i = 0; i < 10; ++i) {
    const auto round = scheduler.Next();
    ASSERT_TRUE(round.has_value());
    EXPECT_EQ(round->task, 1u);
    scheduler.Finish(1, 1e-2);
  }
  ASSERT_EQ(scheduler.Next()->task, 1u);
  ASSERT_EQ(scheduler.Next()->task, 1u);
  EXPECT_FALSE(scheduler.Next().has_value()) << "the device is busy with what counts";
  scheduler.Close(1);
  const auto round = scheduler.Next();
  ASSERT_TRUE(round.has_value());
  EXPECT_EQ(round->task, 0u);
  EXPECT_EQ(round->trials, 24);
}

// Each task is a small part of the model's time.
TEST(TaskSchedulerTest, AllOfManyTasksGetTheirRounds) {
  TaskScheduler scheduler(std::vector<TaskScheduler::Task>(500, {1, 1e-3, 1e-5}), {});
  std::map<size_t, int> rounds;
  for (int i = 0; i < 5000; ++i) {
    const auto round = scheduler.Next();
    ASSERT_TRUE(round.has_value()) << i;
    scheduler.Finish(round->task, 1e-3 * std::pow(0.98, rounds[round->task]++));
  }
  for (size_t task = 0; task < 500; ++task) EXPECT_GE(rounds[task], 5) << task;
}

TEST(TaskSchedulerTest, MeasuredTimesReplaceTheAnalyticEstimate) {
  // The scheduler expects each task to reach a tenth of its time, so the last one can gain as much as the others.
  TaskScheduler scheduler({{1, 1e-3, 1e-5}, {1, 1e-3, 1e-5}, {1, 0.9e-3, 1e-5}}, {.negligible_share = 0.05});
  for (const size_t task : {0, 1}) {
    EXPECT_EQ(scheduler.Next()->task, task);
    scheduler.Finish(task, 1e-2);
  }
  EXPECT_EQ(scheduler.Next()->trials, 16);
}

TEST(TaskSchedulerTest, ClosedTasksGetNothing) {
  TaskScheduler scheduler({{1, 1e-3, 1e-4}, {1, 1e-3, 1e-4}}, {});
  scheduler.Close(0);
  EXPECT_EQ(scheduler.Next()->task, 1u);
  scheduler.Finish(1, 1e-3);
  scheduler.Close(1);
  EXPECT_FALSE(scheduler.Next().has_value());
}

TEST(TaskSchedulerTest, AWorkloadThatNeverRunsIsGivenUp) {
  TaskScheduler scheduler({{1, 1e-3, 1e-4}}, {});
  scheduler.Next();
  scheduler.Finish(0, std::nullopt);
  ASSERT_TRUE(scheduler.Next().has_value()) << "a second chance";
  scheduler.Finish(0, std::nullopt);
  EXPECT_FALSE(scheduler.Next().has_value());
}

TEST(TaskSchedulerTest, AFirstRoundThatWasLostIsMadeUpForWhereTheModelSpendsItsTime) {
  TaskScheduler scheduler({{1, 1e-2, 1e-3}, {1, 1e-3, 1e-4}}, {});
  scheduler.Next();
  scheduler.Next();
  scheduler.Finish(0, std::nullopt);
  scheduler.Finish(1, 1e-3);
  EXPECT_EQ(scheduler.Next()->task, 0u);
  EXPECT_EQ(scheduler.Next()->task, 1u) << "nothing is known yet to choose a third round by";
  scheduler.Finish(0, 1e-2);
  EXPECT_EQ(scheduler.Next()->task, 0u);
}

TEST(TaskSchedulerTest, ATaskThatIsHeldWaitsForItsOpenRound) {
  TaskScheduler scheduler({{1, 1e-3, 1e-4}, {1, 1e-3, 1e-4}}, {});
  for (const size_t task : {0, 1}) {
    scheduler.Next();
    scheduler.Finish(task, 1e-3);
  }
  const size_t held = scheduler.Next()->task, other = 1 - held;
  scheduler.Close(other);
  ASSERT_EQ(scheduler.Next()->task, held);
  scheduler.Hold(held);
  EXPECT_FALSE(scheduler.Next().has_value());
  scheduler.Finish(held, 1e-3);
  EXPECT_EQ(scheduler.Next()->task, held);
}

TEST(TaskSchedulerTest, AtMostTwoRoundsOfOneTaskAreOpen) {
  TaskScheduler scheduler({{1, 1e-3, 1e-4}}, {});
  scheduler.Next();
  scheduler.Finish(0, 1e-3);
  EXPECT_TRUE(scheduler.Next().has_value());
  EXPECT_TRUE(scheduler.Next().has_value());
  EXPECT_FALSE(scheduler.Next().has_value());
  scheduler.Finish(0, 1e-3);
  EXPECT_TRUE(scheduler.Next().has_value());
}

TEST(TaskSchedulerTest, WorkloadsTimedInEarlierRunsNeedNoFirstRound) {
  TaskScheduler scheduler({{1, 1e-3, 1e-6, 1e-3}, {1, 1e-6, 1e-9, 1e-6}, {1, 1e-6, 1e-9}}, {});
  EXPECT_EQ(scheduler.Next()->task, 2u) << "the only one of which nothing is known";
  EXPECT_EQ(scheduler.Next()->task, 0u);
  scheduler.Finish(2, 1e-6);
  EXPECT_EQ(scheduler.Next()->task, 0u);
  EXPECT_FALSE(scheduler.Next().has_value()) << "the two others are too small to matter";
}

TEST(TaskSchedulerTest, WorkloadsWithFewEarlierTrialsGoFirst) {
  TaskScheduler scheduler({{3, 1e-3, 1e-6, 1e-3, 40}, {1, 1e-3, 1e-6, 1e-3, 1}}, {});
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(scheduler.Next()->task, 1u);
    scheduler.Finish(1, 1e-3);
  }
}

Job JobOf(size_t workloads, int64_t trials, double seconds) {
  Job job;
  job.workloads.resize(workloads);
  job.trials = trials;
  if (seconds > 0) job.seconds = seconds;
  return job;
}

TEST(BudgetTest, TrialsAreCountedDown) {
  Budget budget(JobOf(2, 100, 0));
  budget.AddRecordedTrials(0, false);
  budget.AddRecordedTrials(0, false);
  budget.FixTrialLimit();
  EXPECT_FALSE(budget.nothing_left());
  EXPECT_EQ(budget.TrialsLeft(0), 100);
  EXPECT_EQ(budget.TrialsLeft(70), 30);
  EXPECT_EQ(budget.TrialsLeft(130), 0);
  EXPECT_GT(budget.SecondsLeft(1e9, 1e9), 1e9);
}

TEST(BudgetTest, ARequestedNumberOfTrialsIsNotReduced) {
  Budget many(JobOf(1, 2000, 0));
  many.AddRecordedTrials(0, false);
  many.FixTrialLimit();
  EXPECT_EQ(many.TrialsLeft(0), 2000);
  Budget fast(JobOf(1, 2000, 10));  // the limit that is reached first ends the job; a fast board may make all trials
  fast.AddRecordedTrials(0, false);
  fast.FixTrialLimit();
  EXPECT_EQ(fast.TrialsLeft(0), 2000);
}

TEST(BudgetTest, TrialsOfEarlierAttemptsAreSpent) {
  Job job = JobOf(2, 100, 0);
  job.earlier.trials = 80;
  Budget budget(job);
  budget.AddRecordedTrials(70, false);  // the first workloads had more than their share
  budget.AddRecordedTrials(10, false);
  budget.FixTrialLimit();
  EXPECT_FALSE(budget.nothing_left());
  EXPECT_EQ(budget.TrialsLeft(0), 20);
}

TEST(BudgetTest, ASecondRunOfTheSameCommandHasNothingToDo) {
  Budget budget(JobOf(2, 100, 0));
  budget.AddRecordedTrials(90, true);
  budget.AddRecordedTrials(15, true);
  budget.FixTrialLimit();
  EXPECT_TRUE(budget.nothing_left());
}

TEST(BudgetTest, AnInterruptedRunResumesWithTheRest) {
  Budget budget(JobOf(2, 100, 0));
  budget.AddRecordedTrials(40, false);
  budget.AddRecordedTrials(0, false);
  budget.FixTrialLimit();
  EXPECT_EQ(budget.TrialsLeft(0), 60);
}

TEST(BudgetTest, ANewWorkloadAmongTunedOnesGetsItsShare) {
  Budget budget(JobOf(2, 100, 0));
  budget.AddRecordedTrials(5000, true);  // another model contains the workload too
  budget.AddRecordedTrials(0, false);
  budget.FixTrialLimit();
  EXPECT_EQ(budget.TrialsLeft(0), 50);
}

TEST(BudgetTest, TrialsOfOtherModelsTakeNothingFromOtherWorkloads) {
  Budget budget(JobOf(2, 100, 0));
  budget.AddRecordedTrials(5000, true);
  budget.AddRecordedTrials(15, true);
  budget.FixTrialLimit();
  EXPECT_FALSE(budget.nothing_left());
  EXPECT_EQ(budget.TrialsLeft(0), 35);
}

TEST(BudgetTest, TimeCountsEarlierAttemptsAndTheEnd) {
  Job job = JobOf(1, 0, 60);
  job.earlier.seconds = 40;
  Budget budget(job);
  EXPECT_DOUBLE_EQ(budget.SecondsLeft(10, 5), 5);
  EXPECT_DOUBLE_EQ(budget.SecondsLeft(15, 5), 0);
  EXPECT_DOUBLE_EQ(budget.SecondsLeft(21, 0), -1);
  EXPECT_DOUBLE_EQ(budget.SecondsLeft(1, 1000), 4) << "the end gets a quarter of the time at most";
}

TEST(BudgetTest, TimeAloneAlsoComesToAnEnd) {
  Budget budget(JobOf(2, 0, 10));
  budget.AddRecordedTrials(100, true);
  budget.AddRecordedTrials(80, true);
  budget.FixTrialLimit();
  EXPECT_TRUE(budget.nothing_left());
  Budget longer(JobOf(2, 0, 600));
  longer.AddRecordedTrials(100, true);
  longer.AddRecordedTrials(80, true);
  longer.FixTrialLimit();
  EXPECT_FALSE(longer.nothing_left());
}

TEST(BudgetTest, HoursAreSpentHoweverMuchTheRecordsHold) {
  Job resumed = JobOf(2, 0, 10);
  resumed.earlier.seconds = 5;
  for (const Job& job : {JobOf(2, 0, 8 * 3600), JobOf(2, 0, 0), resumed}) {
    Budget budget(job);
    budget.AddRecordedTrials(300, true);
    budget.AddRecordedTrials(2000, true);
    budget.FixTrialLimit();
    EXPECT_FALSE(budget.nothing_left());
  }
}

}  // namespace
}  // namespace hone::tuner
