// SPDX-License-Identifier: Apache-2.0
#include "tuner/tune_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/steady_time.h"
#include "base/temporary_folder.h"
#include "compiler/space/space.h"
#include "tests/unit/tuner/pretended_farm.h"
#include "tests/unit/tuner/starter.h"
#include "tuner/task.h"

namespace hone::tuner {
namespace {

using ::testing::HasSubstr;

// Rows of 5 and unrolling by 4 are fastest on this device, whatever the default schedule is.
double PretendedSeconds(const Batch&, const std::string& text) {
  double seconds = 1e-3;
  const space::Decisions decisions = space::ParseDecisions(text).value();
  for (const space::Decision& d : decisions) {
    if (d.name == "rows") seconds *= 1 + 0.1 * std::abs(static_cast<double>(d.value) - 5);
    if (d.name == "unroll") seconds *= d.value == 4 ? 1 : 1.2;
    if (d.name == "vectors") seconds *= 1 + 0.05 * std::abs(static_cast<double>(d.value) - 2);
  }
  return seconds;
}

class TuneLoopTest : public ::testing::Test {
 protected:
  TuneLoopTest() : builders_({{"/proc/self/exe", "--pretend"}, 2, absl::Seconds(20)}) {
    farm_.seconds = PretendedSeconds;
    AddWorkload(64, 96, 128, 3);
    job_.target = "x86_64 -mcpu=x86-64-v3 -threads=2";
    job_.trials = 120;
    job_.seed = 1;
  }

  void AddWorkload(int m, int n, int k, int64_t count) {
    job_.workloads.push_back(MatMul(m, n, k));
    job_.workloads.back().count = count;
  }
  absl::Status Tune() {
    return TuneJob(job_, farm_, builders_, &progress_, [this] { return farm_.Now(); });
  }
  int Finals() const {
    return static_cast<int>(
        std::count_if(farm_.batches.begin(), farm_.batches.end(), [](const auto& b) { return b.final; }));
  }
  // The next run compares the known winners, and the fastest takes `fastest` seconds. The run after it has nothing to
  // do.
  void ExpectOneComparison(double fastest) {
    farm_.batches.clear();
    ASSERT_EQ(Tune(), absl::OkStatus());
    EXPECT_EQ(progress_.trials, 0);
    EXPECT_EQ(Finals(), 1);
    EXPECT_DOUBLE_EQ(*progress_.workloads[0].best_seconds, fastest);
    farm_.batches.clear();
    ASSERT_EQ(Tune(), absl::OkStatus());
    EXPECT_TRUE(farm_.batches.empty()) << "nothing is left to compare";
    EXPECT_DOUBLE_EQ(*progress_.workloads[0].best_seconds, fastest);
  }

  PretendedFarm farm_;
  BuildPool builders_;
  Job job_;
  Progress progress_;
};

TEST_F(TuneLoopTest, FindsWhatTheDeviceLikesAndConfirmsIt) {
  AddWorkload(48, 96, 256, 1);
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_LE(progress_.trials, 120);
  ASSERT_EQ(progress_.workloads.size(), 2u);
  for (const WorkloadProgress& w : progress_.workloads) {
    EXPECT_GT(*w.default_seconds, 1.15e-3) << "the default is not what this device likes";
    EXPECT_LT(*w.best_seconds, 1.12e-3);
    EXPECT_FALSE(w.best_schedule.empty());
    EXPECT_GT(w.trials, 0);
  }
  EXPECT_EQ(Finals(), 2);
  EXPECT_NEAR(*progress_.latency_before_seconds,
              3 * *progress_.workloads[0].default_seconds + *progress_.workloads[1].default_seconds, 1e-9);
  EXPECT_LT(*progress_.latency_after_seconds, *progress_.latency_before_seconds);
  EXPECT_GT(farm_.reports.size(), 0u);
  for (const Batch& batch : farm_.batches) {
    EXPECT_EQ(batch.requirements.fingerprint_digest, "d1") << "all on one kind of device";
    EXPECT_FALSE(batch.artifact.empty());
    EXPECT_FALSE(batch.reference.interface.name.empty());
    EXPECT_EQ(batch.constant_bytes_between_runs, (3 * 96 * 128 + 96 * 256) * 4) << "of the whole model";
  }
}

TEST_F(TuneLoopTest, ReportsHowTheTimeWasSpent) {
  job_.earlier.spent = {.measuring = 1e6, .drawn = 1'000'000};
  double others = 0;
  farm_.on_measure = [&] {
    const std::lock_guard guard(farm_.mutex);
    farm_.now += absl::Seconds(2);
    others += 2;
    return absl::OkStatus();
  };
  ASSERT_EQ(Tune(), absl::OkStatus());
  const TimeSpent& spent = progress_.spent;
  EXPECT_GT(spent.proposing, 0);
  EXPECT_GT(spent.learning, 0);
  EXPECT_GT(spent.building, 0);
  EXPECT_NEAR(spent.waiting, others, 1e-6) << "for a device that is busy";
  EXPECT_NEAR(spent.measuring - 1e6, absl::ToDoubleSeconds(farm_.now - absl::UnixEpoch()) - others, 1e-6)
      << "of earlier attempts too";
  EXPECT_GE(spent.drawn, 1'000'000 + progress_.trials - 1) << "the default is not drawn";
  EXPECT_GT(spent.repeated, 0);
  EXPECT_GE(spent.illegal, 0);
}

TEST_F(TuneLoopTest, WithoutAnyPartOfTheSearchItTriesAllTheSame) {
  job_.options["without"] = "all";
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_EQ(progress_.trials, 120);
  EXPECT_EQ(progress_.spent.learning, 0) << "no model is trained";
  EXPECT_LE(*progress_.workloads[0].best_seconds, *progress_.workloads[0].default_seconds);
  EXPECT_EQ(Finals(), 1);
}

TEST_F(TuneLoopTest, ACandidateNoFasterThanTheDefaultDoesNotWin) {
  farm_.seconds = [](const Batch&, const std::string&) { return 1e-3; };
  ASSERT_EQ(Tune(), absl::OkStatus());
  const auto workload = ir::ParseWorkload(job_.workloads[0].text).value();
  const auto default_schedule = space::Default(workload, target::ParseTarget(job_.target).value());
  EXPECT_EQ(progress_.workloads[0].best_schedule, schedule::Print(default_schedule->schedule));
  EXPECT_EQ(*progress_.workloads[0].best_seconds, *progress_.workloads[0].default_seconds);
}

// The kernels differ only by measurement noise of 1%.
TEST_F(TuneLoopTest, EquallyFastKernelsHaveAboutEqualEstimates) {
  job_.trials = 0;
  job_.seconds = 3600;
  farm_.finalists = 3;
  std::map<std::string, uint64_t> timed;
  farm_.seconds = [&](const Batch&, const std::string& decisions) {
    Random random = Random::Nth(std::hash<std::string>()(decisions), ++timed[decisions]);
    double noise = -6;
    for (int i = 0; i < 12; ++i) noise += random.Uniform();
    return 1e-3 * (1 + 0.01 * noise);
  };
  farm_.batch_error = [](const Batch& batch) { return batch.final ? "the device went away" : ""; };
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_GT(*progress_.workloads[0].best_seconds, 0.95e-3);
  EXPECT_LT(farm_.batches.size(), 40u) << "and the search ends";
}

TEST_F(TuneLoopTest, CandidatesOfASlowVisitAreMeasuredAgain) {
  std::string best;
  farm_.seconds = [&](const Batch& batch, const std::string& decisions) {
    const bool spell = farm_.batches.size() == 3 && !batch.final;
    if (spell && best.empty()) best = decisions;
    return (decisions == best ? 0.9e-3 : PretendedSeconds(batch, decisions)) * (spell ? 2 : 1);
  };
  ASSERT_EQ(Tune(), absl::OkStatus());
  ASSERT_FALSE(best.empty());
  EXPECT_NEAR(*progress_.workloads[0].best_seconds, 0.9e-3 * 1.005, 1e-9) << "the median of its repeats";
  EXPECT_LE(progress_.trials, 120);
}

TEST_F(TuneLoopTest, ASlowDefaultHasItsTimeInTheConfirmation) {
  job_.trials = 0;
  job_.seconds = 100;
  farm_.seconds = [](const Batch& batch, const std::string& decisions) {
    const bool is_default = std::any_of(batch.candidates.begin(), batch.candidates.end(), [&](const BatchCandidate& c) {
      return c.is_default && c.decisions == decisions;
    });
    return is_default ? 2.0 : 300 * PretendedSeconds(batch, decisions);
  };
  ASSERT_EQ(Tune(), absl::OkStatus());
  ASSERT_TRUE(farm_.batches.back().final);
  EXPECT_GT(farm_.batches.back().visit_seconds, 5 * 2.0 + 3 * 5 * 0.3) << "five calls of each";
  EXPECT_LE(farm_.now, absl::UnixEpoch() + absl::Seconds(100 + 10));
}

TEST_F(TuneLoopTest, AResumedJobLearnsFromItsRecordsFirst) {
  job_.trials = 60;
  ASSERT_EQ(Tune(), absl::OkStatus());
  job_.trials = 70;
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_GT(progress_.trials, 0);
  EXPECT_LE(progress_.trials, 10);
  EXPECT_GT(progress_.spent.learning, 0);
}

TEST_F(TuneLoopTest, ASecondRunMeasuresNothing) {
  ASSERT_EQ(Tune(), absl::OkStatus());
  const double best = *progress_.workloads[0].best_seconds;
  farm_.batches.clear();
  progress_ = {};
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_TRUE(farm_.batches.empty());
  EXPECT_EQ(progress_.trials, 0);
  EXPECT_NEAR(*progress_.workloads[0].best_seconds, best, 1e-9);
  EXPECT_TRUE(progress_.latency_before_seconds.has_value());
}

// The run of the whole model is left, for which the results of earlier attempts are needed.
TEST_F(TuneLoopTest, AJobWhoseSearchHasEndedOnlyReadsItsResults) {
  job_.trials = 20;
  job_.measures_model = true;
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_TRUE(progress_.search_ended);
  const std::string best = progress_.workloads[0].best_schedule;
  job_.trials = 120;
  job_.earlier.search_ended = true;
  farm_.batches.clear();
  progress_ = {};
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_TRUE(farm_.batches.empty());
  EXPECT_EQ(progress_.workloads[0].best_schedule, best);
  EXPECT_TRUE(progress_.search_ended);
}

// The newest comparison alone decides, and results of an interrupted run are in no comparison.
TEST_F(TuneLoopTest, CandidatesOfAnInterruptedRunAreConfirmed) {
  job_.trials = 20;
  ASSERT_EQ(Tune(), absl::OkStatus());
  job_.trials = 120;
  const size_t enough = farm_.batches.size() + 3;
  farm_.on_measure = [&] {
    return farm_.batches.size() < enough ? absl::OkStatus() : absl::AbortedError("the lease is lost");
  };
  ASSERT_TRUE(absl::IsAborted(Tune()));
  farm_.on_measure = nullptr;
  std::set<std::string> schedules;
  double fastest = 1;
  for (const PretendedFarm::Record& record : farm_.records) {
    schedules.insert(record.trial.schedule);
    fastest = std::min(fastest, SecondsOf(record.trial.outcome).value_or(1));
  }
  job_.trials = static_cast<int64_t>(schedules.size());
  ExpectOneComparison(fastest);
}

// The newest confirmation alone decides, and the other farm's confirmation did not include the faster kernel.
TEST_F(TuneLoopTest, WinnersOfTwoFarmsAreComparedWhenTheirRecordsAreMerged) {
  ASSERT_EQ(Tune(), absl::OkStatus());
  const double fastest = *progress_.workloads[0].best_seconds;
  const std::vector<PretendedFarm::Record> one = std::exchange(farm_.records, {});
  // The device is busy.
  farm_.seconds = [](const Batch& b, const std::string& text) { return 2 * PretendedSeconds(b, text); };
  job_.options["without"] = "all";
  job_.trials = 5;
  ASSERT_EQ(Tune(), absl::OkStatus());
  ASSERT_GT(*progress_.workloads[0].best_seconds, 2 * fastest);
  const std::vector<PretendedFarm::Record> other = farm_.records;
  farm_.seconds = PretendedSeconds;
  for (const bool first : {true, false}) {
    farm_.records = first ? one : other;
    farm_.records.insert(farm_.records.end(), (first ? other : one).begin(), (first ? other : one).end());
    ExpectOneComparison(fastest);
  }
}

// There are more winners than places in one confirmation.
TEST_F(TuneLoopTest, WinnersOfManyFarmsAreComparedInOneRun) {
  ASSERT_EQ(Tune(), absl::OkStatus());
  const std::vector<PretendedFarm::Record> all = farm_.records;
  const auto default_schedule = std::find_if(all.begin(), all.end(), [](const auto& r) { return r.is_default; });
  std::set<std::string> known;
  for (const PretendedFarm::Record& r : all) {
    if (r.trial.confirmed) known.insert(r.trial.schedule);
  }
  int farms = 0;
  for (const PretendedFarm::Record& r : all) {
    if (farms == 7 || !known.insert(r.trial.schedule).second) continue;
    ++farms;
    for (PretendedFarm::Record confirmed : {*default_schedule, r}) {
      confirmed.trial.outcome = default_schedule->trial.outcome;
      for (double& s : confirmed.trial.outcome.seconds) s *= confirmed.is_default ? 1 : 0.5;
      confirmed.trial.confirmed = true;
      confirmed.trial.batch = "of farm " + std::to_string(farms);
      confirmed.trial.measured_at = farm_.now + absl::Seconds(farms);
      farm_.records.push_back(std::move(confirmed));
    }
  }
  ASSERT_EQ(farms, 7);
  farm_.now += absl::Seconds(60);
  farm_.batches.clear();
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_EQ(Finals(), 3) << "6 of them, as the newest has won, and the winner of the run before: 3 at a time";
  farm_.batches.clear();
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_TRUE(farm_.batches.empty());
}

TEST_F(TuneLoopTest, ASearchThatEndedByItselfIsNotBegunAgain) {
  AddWorkload(8, 16, 16, 1);  // a tiny part of the model's time
  AddWorkload(48, 96, 256, 1);
  const std::string small = job_.workloads[1].digest;
  farm_.seconds = [&](const Batch& batch, const std::string& decisions) {
    // The noise is the same in every run of the test. A lucky winner in the last rounds makes a job search around it
    // once more.
    const double noise = batch.final ? 1 : 1 + 0.1 * Random(std::hash<std::string>()(decisions)).Uniform();
    return PretendedSeconds(batch, decisions) * noise * (batch.workload_digest == small ? 1e-4 : 1);
  };
  job_.trials = 0;
  job_.seconds = 3600;
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_GT(progress_.trials, 100);
  farm_.batches.clear();
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_TRUE(farm_.batches.empty());
  EXPECT_EQ(progress_.trials, 0);
}

TEST_F(TuneLoopTest, TheDefaultTimeIsFromTheWinnersConfirmation) {
  ASSERT_EQ(Tune(), absl::OkStatus());
  const double before = *progress_.workloads[0].default_seconds;
  const Task task = MakeTask(job_.workloads[0], target::ParseTarget(job_.target).value(), 1, 1).value();
  for (size_t i = farm_.records.size(); i-- > 0;) {
    PretendedFarm::Record slower_day = farm_.records[i];
    if (!slower_day.trial.confirmed || slower_day.trial.schedule != task.default_proposal.schedule) continue;
    slower_day.trial.batch += " again";
    slower_day.trial.measured_at += absl::Hours(24);
    for (double& s : slower_day.trial.outcome.seconds) s *= 1.5;
    farm_.records.push_back(std::move(slower_day));
  }
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_NEAR(*progress_.workloads[0].default_seconds, before, 1e-9);
}

TEST_F(TuneLoopTest, AConfirmationOnASlowDeviceIsMadeOnceMore) {
  std::map<std::string, int> finals;
  farm_.seconds = [&](const Batch& batch, const std::string& decisions) {
    // The default takes twice as long in the first confirmation of each workload, which happens on real devices.
    if (batch.final && decisions == batch.candidates[0].decisions) ++finals[batch.workload_digest];
    const bool slow = batch.final && finals[batch.workload_digest] == 1;
    return PretendedSeconds(batch, decisions) * (slow ? 2 : 1);
  };
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_EQ(Finals(), 2 * static_cast<int>(job_.workloads.size()));
  for (const WorkloadProgress& w : progress_.workloads) EXPECT_LT(*w.best_seconds, 1.12e-3) << "the second one counts";
}

TEST_F(TuneLoopTest, ACandidateThatCrashesInTheConfirmationDoesNotWin) {
  farm_.seconds = [](const Batch& batch, const std::string& decisions) {
    const bool is_default = decisions == batch.candidates[0].decisions;
    return batch.final && !is_default ? -1 : PretendedSeconds(batch, decisions);
  };
  const auto crashed = [this] {
    std::set<std::string> schedules;
    for (const PretendedFarm::Record& record : farm_.records) {
      if (record.trial.outcome.failure.has_value()) schedules.insert(record.trial.schedule);
    }
    return schedules;
  };
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_EQ(Finals(), 2) << "what follows the condemned ones is compared, too";
  const std::set<std::string> condemned = crashed();
  EXPECT_GE(condemned.size(), 3u);
  EXPECT_FALSE(progress_.workloads[0].best_schedule.empty());
  EXPECT_FALSE(condemned.contains(progress_.workloads[0].best_schedule));
  farm_.batches.clear();
  ASSERT_EQ(Tune(), absl::OkStatus());
  ASSERT_FALSE(farm_.batches.empty()) << "nothing is confirmed yet";
  for (const Batch& batch : farm_.batches) {
    for (const BatchCandidate& c : batch.candidates) EXPECT_FALSE(condemned.contains(c.schedule)) << c.schedule;
  }
}

TEST_F(TuneLoopTest, ALostFirstBatchIsMeasuredAllTheSame) {
  int batches = 0;
  farm_.batch_error = [&](const Batch&) { return ++batches == 1 ? "the device went away" : ""; };
  ASSERT_EQ(Tune(), absl::OkStatus());
  ASSERT_GE(farm_.batches.size(), 2u);
  const std::vector<BatchCandidate>& lost = farm_.batches[0].candidates;
  const std::vector<BatchCandidate>& next = farm_.batches[1].candidates;
  ASSERT_GE(next.size(), lost.size());
  for (size_t i = 0; i < lost.size(); ++i) EXPECT_EQ(next[i].schedule, lost[i].schedule) << i;
}

TEST_F(TuneLoopTest, AWorkloadWhoseBatchWasLostHasMoreTimeForTheNext) {
  for (const int n : {96, 112, 160}) AddWorkload(48, n, 256, 1);
  job_.seconds = 60;
  job_.options["without"] = "scheduler";
  std::set<std::string> met;
  farm_.batch_error = [&](const Batch& b) { return met.insert(b.workload_digest).second ? "the time was over" : ""; };
  ASSERT_EQ(Tune(), absl::OkStatus());
  for (const JobWorkload& workload : job_.workloads) {
    std::vector<double> limits;
    for (const Batch& batch : farm_.batches) {
      if (batch.workload_digest == workload.digest) limits.push_back(batch.visit_seconds);
    }
    ASSERT_GE(limits.size(), 2u);
    EXPECT_GT(limits[1], 2 * limits[0]);
  }
}

TEST_F(TuneLoopTest, ALargerBudgetResumesFromTheRecords) {
  job_.trials = 40;
  ASSERT_EQ(Tune(), absl::OkStatus());
  const size_t before = farm_.records.size();
  job_.trials = 80;
  farm_.batches.clear();
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_FALSE(farm_.batches.empty());
  EXPECT_LE(progress_.trials, 80 - 40);
  EXPECT_GT(farm_.records.size(), before);
}

TEST_F(TuneLoopTest, AResumedAttemptSearchesDespiteManyRecords) {
  job_.trials = 40;
  ASSERT_EQ(Tune(), absl::OkStatus());
  job_.trials = 0;
  job_.seconds = 2;
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_EQ(progress_.trials, 0) << "another job has done it";
  job_.earlier.seconds = 1;
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_GT(progress_.trials, 0);
}

TEST_F(TuneLoopTest, AnAttemptAfterAnInterruptedOneBeginsNoFirstRoundAgain) {
  AddWorkload(48, 96, 256, 1);
  job_.trials = 400;
  farm_.on_measure = [&] {
    const std::lock_guard guard(farm_.mutex);
    std::set<std::string> measured;
    for (const Batch& batch : farm_.batches) measured.insert(batch.workload_digest);
    return measured.size() < 2 ? absl::OkStatus() : absl::AbortedError("the lease is lost");
  };
  ASSERT_TRUE(absl::IsAborted(Tune()));
  farm_.on_measure = nullptr;
  const auto first_batch = [this](const std::string& digest) -> const Batch& {
    return *std::find_if(farm_.batches.begin(), farm_.batches.end(),
                         [&](const Batch& batch) { return batch.workload_digest == digest; });
  };
  for (const JobWorkload& workload : job_.workloads) {
    EXPECT_LE(first_batch(workload.digest).candidates.size(), 16u);
  }
  farm_.batches.clear();
  ASSERT_EQ(Tune(), absl::OkStatus());
  for (const JobWorkload& workload : job_.workloads) {
    EXPECT_GT(first_batch(workload.digest).candidates.size(), 16u + 1) << "the best so far runs along";
  }
}

// The other workloads are measured only when the winners are confirmed.
TEST_F(TuneLoopTest, FewTrialsGoToTheWorkloadThatTakesMostOfTheTime) {
  for (const int n : {16, 32, 192}) AddWorkload(64, n, 256, n == 192 ? 20 : 1);
  job_.trials = 4;
  ASSERT_EQ(Tune(), absl::OkStatus());
  for (const Batch& batch : farm_.batches) {
    EXPECT_TRUE(batch.final || batch.workload_digest == job_.workloads[3].digest);
  }
  EXPECT_EQ(progress_.workloads[3].trials, 4);
  EXPECT_TRUE(progress_.latency_before_seconds.has_value());
}

TEST_F(TuneLoopTest, RenewsTheLeaseWhileRecordsAreRead) {
  job_.heartbeat = absl::Milliseconds(1);
  farm_.on_records = [&] {
    const int enough = farm_.signs_of_life + 3;
    const absl::Time limit = SteadyNow() + absl::Seconds(60);
    while (farm_.signs_of_life < enough && SteadyNow() < limit) std::this_thread::yield();
    EXPECT_GE(farm_.signs_of_life, enough);
  };
  ASSERT_EQ(Tune(), absl::OkStatus());
}

// Incumbents and confirmations are recorded too, but they are not trials.
TEST_F(TuneLoopTest, InterruptedAttemptsMakeAsManyTrialsAsOneThatIsNot) {
  const auto tried = [&] {
    std::set<std::string> schedules;
    for (const PretendedFarm::Record& record : farm_.records) schedules.insert(record.trial.schedule);
    return schedules.size();
  };
  job_.trials = 90;
  ASSERT_EQ(Tune(), absl::OkStatus());
  const size_t undisturbed = tried();
  EXPECT_EQ(undisturbed, 90u);
  farm_.records.clear();
  for (int attempt = 1; attempt <= 2; ++attempt) {
    const size_t batches = farm_.batches.size() + 2;
    farm_.on_measure = [&, batches] {
      return farm_.batches.size() < batches ? absl::OkStatus() : absl::AbortedError("the lease is lost");
    };
    ASSERT_TRUE(absl::IsAborted(Tune()));
  }
  EXPECT_LT(tried(), undisturbed);
  farm_.on_measure = nullptr;
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_EQ(tried(), undisturbed);
}

TEST_F(TuneLoopTest, TheBudgetOfTrialsIsKept) {
  for (const int64_t trials : {1, 7, 33}) {
    farm_.records.clear();
    job_.trials = trials;
    ASSERT_EQ(Tune(), absl::OkStatus());
    EXPECT_LE(progress_.trials, trials);
    EXPECT_TRUE(progress_.latency_after_seconds.has_value()) << "confirming gives every workload its numbers";
  }
}

TEST_F(TuneLoopTest, TheBudgetOfTimeIsKeptHoweverSlowTheKernels) {
  for (const int n : {96, 112, 160}) AddWorkload(48, n, 256, 1);
  job_.trials = 0;
  for (const double slow : {0.3, 1.0, 2.0}) {
    for (const int64_t budget : {20, 60, 300}) {
      SCOPED_TRACE(testing::Message() << slow << " s a call, " << budget << " s in all");
      farm_.records.clear();
      farm_.batches.clear();
      farm_.now = absl::UnixEpoch();
      farm_.seconds = [&](const Batch& b, const std::string& text) { return 1e3 * slow * PretendedSeconds(b, text); };
      job_.seconds = static_cast<double>(budget);
      ASSERT_EQ(Tune(), absl::OkStatus());
      EXPECT_LE(farm_.now, absl::UnixEpoch() + absl::Seconds(budget + 10));
      EXPECT_TRUE(progress_.latency_after_seconds.has_value()) << "every workload has its first measurement";
      EXPECT_GE(*progress_.latency_before_seconds, *progress_.latency_after_seconds);
      const auto searched = std::count_if(farm_.records.begin(), farm_.records.end(),
                                          [](const auto& record) { return !record.trial.confirmed; });
      EXPECT_GE(searched, progress_.trials) << "an incumbent is recorded too";
      // With less time, the order in which builds end decides whether the last winner is still confirmed.
      if (static_cast<double>(budget) > 400 * slow) {
        EXPECT_EQ(Finals(), 4);
      }
    }
  }
}

TEST_F(TuneLoopTest, FailuresAreCountedAndDoNotStopIt) {
  farm_.seconds = [](const Batch& batch, const std::string& decisions) {
    const double seconds = PretendedSeconds(batch, decisions);
    return std::hash<std::string>()(decisions) % 4 == 1 ? -1.0 : seconds;  // about a quarter of all candidates fail
  };
  ASSERT_EQ(Tune(), absl::OkStatus());
  ASSERT_EQ(progress_.failed.size(), 1u);
  EXPECT_GT(progress_.failed[FailureKind::kCrashed], 0);
  EXPECT_LT(*progress_.workloads[0].best_seconds, 1.15e-3);
}

TEST_F(TuneLoopTest, ACandidateWithADrawbackIsRecordedAndNotLaunched) {
  setenv("HONE_FAKE_DRAWBACK", "its registers do not suffice", 1);
  BuildPool builders({{"/proc/self/exe", "--pretend"}, 2, absl::Seconds(20)});
  const absl::Status tuned = TuneJob(job_, farm_, builders, &progress_, [this] { return farm_.Now(); });
  unsetenv("HONE_FAKE_DRAWBACK");
  ASSERT_EQ(tuned, absl::OkStatus());
  for (const Batch& batch : farm_.batches) {
    for (const BatchCandidate& candidate : batch.candidates) {
      EXPECT_TRUE(candidate.is_default) << candidate.schedule;
    }
  }
  EXPECT_GT(progress_.failed[FailureKind::kScheduleIllegal], 10);
  EXPECT_TRUE(progress_.workloads[0].default_seconds.has_value());
}

TEST_F(TuneLoopTest, ACandidateThatNoWorkerCouldBeginIsNoFailure) {
  const Starter starter;
  starter.FailAfterTheNext();
  BuildPool builders({starter.command(), 2, absl::Seconds(20)});
  ASSERT_EQ(TuneJob(job_, farm_, builders, &progress_, [this] { return farm_.Now(); }), absl::OkStatus());
  EXPECT_GT(progress_.trials, 60);
  EXPECT_TRUE(progress_.failed.empty());
  for (const PretendedFarm::Record& record : farm_.records) EXPECT_FALSE(record.trial.outcome.failure.has_value());
}

// Build workers that compile no candidate until the object is destroyed.
class BlockedBuilders {
 public:
  BlockedBuilders() { setenv("HONE_FAKE_UNTIL", file_.c_str(), 1); }
  ~BlockedBuilders() {
    unsetenv("HONE_FAKE_UNTIL");
    std::ofstream(file_) << "go on";
  }
  BuildPool& pool() { return pool_; }

 private:
  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::filesystem::path file_ = folder_ / "file";
  BuildPool pool_{{{"/proc/self/exe", "--pretend"}, 2, absl::Seconds(20)}};
};

TEST_F(TuneLoopTest, TheBudgetOfTimeIsKeptHoweverSlowTheCompilers) {
  BlockedBuilders builders;
  job_.trials = 0;
  job_.seconds = 600;
  std::atomic<int64_t> seconds = 0;
  const Clock clock = [&] { return absl::FromUnixSeconds(seconds += 20); };
  const absl::Status status = TuneJob(job_, farm_, builders.pool(), &progress_, clock);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nothing could be measured"));
  EXPECT_THAT(progress_.activity, HasSubstr("tuning matmul")) << "it had begun";
  EXPECT_TRUE(farm_.records.empty()) << "no compiler had its time";
}

TEST_F(TuneLoopTest, ACancelledJobWaitsForNoCompiler) {
  BlockedBuilders builders;
  int reports = 0;
  farm_.on_report = [&] { return ++reports > 1 ? absl::CancelledError("the job was cancelled") : absl::OkStatus(); };
  const absl::Status status = TuneJob(job_, farm_, builders.pool(), &progress_, [this] { return farm_.Now(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(farm_.records.empty());
}

TEST_F(TuneLoopTest, WaitsForADevice) {
  farm_.asks_before_device = 2;
  ASSERT_EQ(Tune(), absl::OkStatus());
  ASSERT_GE(farm_.reports.size(), 2u);
  EXPECT_THAT(farm_.reports[0].activity, HasSubstr("waiting for a suitable device"));
}

TEST_F(TuneLoopTest, AJobWithoutADeviceIsRequeued) {
  farm_.asks_before_device = 1'000'000;
  job_.labels["room"] = "lab";
  job_.devices = {"board"};
  job_.device_digest = "kind";
  EXPECT_EQ(Tune().code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(farm_.given_back.has_value());
  EXPECT_EQ(farm_.given_back->architecture, "x86_64");
  EXPECT_EQ(farm_.given_back->labels, job_.labels);
  EXPECT_EQ(farm_.given_back->devices, job_.devices);
  EXPECT_EQ(farm_.given_back->fingerprint_digest, "kind") << "it stays with the kind that has measured";
  EXPECT_TRUE(farm_.batches.empty());
}

// The job's own clock stands still while it waits; the wall clock does not.
TEST_F(TuneLoopTest, AJobEndsAtItsTimeThoughItsBudgetIsNotSpent) {
  job_.trials = 0;
  job_.until = absl::UnixEpoch() + absl::Seconds(60);
  farm_.seconds = [](const Batch& b, const std::string& text) { return 300 * PretendedSeconds(b, text); };
  for (const std::optional<double> budget : {std::optional<double>(1e6), std::optional<double>()}) {
    farm_.records.clear();
    farm_.now = absl::UnixEpoch();
    job_.seconds = budget;
    const absl::Status tuned =
        TuneJob(job_, farm_, builders_, &progress_, [this] { return farm_.Now(); }, [this] { return farm_.Now(); });
    ASSERT_EQ(tuned, absl::OkStatus());
    EXPECT_LE(farm_.now, job_.until + absl::Seconds(10));
    EXPECT_GT(progress_.trials, 0);
  }
}

TEST_F(TuneLoopTest, ACancelledJobStopsAndKeepsItsProgress) {
  std::atomic<int> calls = 0;  // several threads measure visits
  farm_.on_measure = [&] { return ++calls > 2 ? absl::CancelledError("the job was cancelled") : absl::OkStatus(); };
  EXPECT_EQ(Tune().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(farm_.abandoned);
  EXPECT_EQ(Finals(), 0);
  EXPECT_LT(progress_.trials, 120);
}

TEST_F(TuneLoopTest, ALostLeaseEndsTheAttempt) {
  farm_.on_measure = [] { return absl::AbortedError("lease is not live"); };
  EXPECT_EQ(Tune().code(), absl::StatusCode::kAborted);
}

TEST_F(TuneLoopTest, AJobOfWhichNothingCanBeMeasuredFails) {
  farm_.batch_error = [](const Batch&) { return "the reference kernel crashed"; };
  const absl::Status status = Tune();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the reference kernel crashed"));
}

TEST_F(TuneLoopTest, AJobOfWhichEveryCandidateFailsSaysWhereTheFailuresAre) {
  farm_.seconds = [](const Batch&, const std::string&) { return -1.0; };
  const absl::Status status = Tune();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("`hone records query --failed any` (for a farm, with --tracker)"));
}

TEST_F(TuneLoopTest, OneWorkloadThatCannotBeMeasuredDoesNotStopTheOthers) {
  AddWorkload(16, 32, 64, 1);
  const std::string broken = job_.workloads[1].digest;
  farm_.batch_error = [broken](const Batch& b) { return b.workload_digest == broken ? "does not load" : ""; };
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_TRUE(progress_.workloads[0].best_seconds.has_value());
  EXPECT_FALSE(progress_.workloads[1].best_seconds.has_value());
  EXPECT_FALSE(progress_.latency_after_seconds.has_value());
  EXPECT_EQ(progress_.workloads[0].failure_reason, "");
  EXPECT_EQ(progress_.workloads[1].failure_reason, "does not load");
}

TEST_F(TuneLoopTest, AWorkloadWhoseCandidatesAllFailIsTold) {
  AddWorkload(16, 32, 64, 1);
  const std::string broken = job_.workloads[1].digest;
  farm_.seconds = [broken](const Batch& batch, const std::string& text) {
    return batch.workload_digest == broken ? -1 : PretendedSeconds(batch, text);
  };
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_EQ(progress_.workloads[0].failure_reason, "");
  EXPECT_THAT(progress_.workloads[1].failure_reason, HasSubstr("every candidate failed"));
}

TEST_F(TuneLoopTest, UnknownOptionsAndBrokenWorkloadsAreRefused) {
  job_.options["colour"] = "red";
  EXPECT_THAT(std::string(Tune().message()), HasSubstr("colour"));
  job_.options.clear();
  job_.options["space"] = "outer";
  EXPECT_THAT(std::string(Tune().message()), HasSubstr("'outer' is not a family of schedule spaces"));
  job_.options.clear();
  job_.options["without"] = "luck";
  EXPECT_THAT(std::string(Tune().message()), HasSubstr("'luck' is not a part of the search"));
  job_.options.clear();
  job_.workloads[0].text = "workload nonsense";
  const absl::Status status = Tune();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("matmul"));
}

// Rows of 3 with one vector, which no space prefers for this workload.
TEST_F(TuneLoopTest, HintsAreInTheFirstBatch) {
  job_.workloads[0].hints = {"64x96:3x8"};
  ASSERT_EQ(Tune(), absl::OkStatus());
  std::set<std::string> hinted;  // spaces
  for (const BatchCandidate& c : farm_.batches.front().candidates) {
    if (c.decisions.find("vectors=1 ") == std::string::npos) continue;
    if (c.decisions.find(" rows=3 ") != std::string::npos) hinted.insert("template");
    if (c.decisions.find(" s3.0=3 ") != std::string::npos) hinted.insert("sketch");
  }
  EXPECT_THAT(hinted, ::testing::ElementsAre("sketch", "template"));
}

TEST_F(TuneLoopTest, AHintThatIsNoneIsRefused) {
  job_.workloads[0].hints = {"64x96:3x8", "red"};
  const absl::Status status = Tune();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'red'"));
}

TEST_F(TuneLoopTest, OnlySpacesOfTheChosenFamilyAreSearched) {
  for (const std::string family : {"template", "sketch"}) {
    SCOPED_TRACE(family);
    farm_.batches.clear();
    farm_.records.clear();
    job_.options["space"] = family;
    ASSERT_EQ(Tune(), absl::OkStatus());
    EXPECT_GT(progress_.trials, 30);
    EXPECT_TRUE(progress_.workloads[0].default_seconds.has_value())
        << "what compile would use without tuning races too";
    for (const Batch& batch : farm_.batches) {
      for (const BatchCandidate& c : batch.candidates) {
        EXPECT_TRUE(c.is_default || c.decisions.starts_with(family == "sketch" ? "space=0 " : "space=1 "))
            << c.decisions;
      }
    }
  }
}

TEST_F(TuneLoopTest, ASearchOfOneFamilyDoesNotEndThatOfAll) {
  farm_.seconds = [](const Batch&, const std::string&) { return 1e-3; };  // the default is as fast as any other
  job_.trials = 0;
  job_.seconds = 3600;
  for (const std::string family : {"sketch", "template", "all"}) {
    SCOPED_TRACE(family);
    job_.options["space"] = family;
    farm_.batches.clear();
    ASSERT_EQ(Tune(), absl::OkStatus());
    EXPECT_EQ(farm_.batches.empty(), family == "all") << "both families have been searched by then";
    farm_.batches.clear();
    ASSERT_EQ(Tune(), absl::OkStatus());
    EXPECT_TRUE(farm_.batches.empty()) << "and is not begun again";
  }
}

TEST_F(TuneLoopTest, RecordsWithDecisionsThatAreNoMoreStillCount) {
  ASSERT_EQ(Tune(), absl::OkStatus());
  const double best = *progress_.workloads[0].best_seconds;
  for (PretendedFarm::Record& record : farm_.records) {
    record.trial.decisions = "space=17 gone=3 " + record.trial.decisions;
  }
  job_.trials = 180;
  ASSERT_EQ(Tune(), absl::OkStatus());
  EXPECT_LE(*progress_.workloads[0].best_seconds, best);
}

}  // namespace
}  // namespace hone::tuner
