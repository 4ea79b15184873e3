// SPDX-License-Identifier: Apache-2.0
// The budget of a job: trials and seconds, less those that earlier attempts and earlier runs have spent.
//
// A new job has nothing left to do if the records already hold as many trials as it would make. So tuning an unchanged
// model again costs nothing. A job that resumes after an earlier attempt may spend the rest. Pure arithmetic. Start
// with AddRecordedTrials, then FixTrialLimit.
#ifndef HONE_TUNER_BUDGET_H_
#define HONE_TUNER_BUDGET_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "tuner/job.h"

namespace hone::tuner {

class Budget {
 public:
  explicit Budget(const Job& job)
      : trials_(job.trials > 0 ? job.trials : kUnlimited),
        seconds_(job.seconds.value_or(std::numeric_limits<double>::infinity())),
        workloads_(std::max(1.0, static_cast<double>(job.workloads.size()))),
        spent_trials_(job.earlier.trials),
        spent_seconds_(job.earlier.seconds) {}

  // The average number of trials that a run with this budget makes for a workload. A time limit counts as
  // kTrialsPerSecond trials a second. Infinite if the job has no limit.
  double TrialsPerWorkload() const {
    const double by_trials =
        trials_ == kUnlimited ? std::numeric_limits<double>::infinity() : static_cast<double>(trials_) / workloads_;
    return std::min(by_trials, seconds_ * kTrialsPerSecond / workloads_);
  }

  // Counts the trials of one workload in the records. tried: each schedule with a time or a failure counts once. Each
  // disturbed visit of a schedule that had no outcome before counts too, because it was a trial that cost time.
  // confirmed: the workload's winner has been confirmed.
  void AddRecordedTrials(int64_t tried, bool confirmed) {
    recorded_.push_back({static_cast<double>(tried), confirmed});
  }

  // Fixes the number of trials of this attempt. Call it after all workloads were counted. Trials of earlier attempts of
  // the same job are in the records too, so only a job without earlier attempts can have nothing left.
  void FixTrialLimit() {
    nothing_left_ = spent_trials_ == 0 && spent_seconds_ == 0 && Left(TrialsPerWorkload()) < 1;
    if (trials_ == kUnlimited) return;
    const auto left = static_cast<int64_t>(Left(static_cast<double>(trials_) / workloads_) + 0.5);
    trials_ = std::max<int64_t>(0, std::min(trials_ - spent_trials_, left));
  }
  bool nothing_left() const { return nothing_left_; }

  // begun: trials of this attempt, including those under way.
  int64_t TrialsLeft(int64_t begun) const { return std::max<int64_t>(0, trials_ - begun); }
  // The seconds that the search may still take after this attempt has taken `seconds`. reserve: seconds that confirming
  // will need; at most a quarter of the budget is reserved. Negative: overdrawn; infinite: no limit.
  double SecondsLeft(double seconds, double reserve) const {
    return seconds_ - spent_seconds_ - seconds - std::min(reserve, seconds_ / 4);
  }

 private:
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 2;
  static constexpr double kTrialsPerSecond = 15;  // a modest rate

  // The trials of one workload in the records; see AddRecordedTrials.
  struct RecordedTrials {
    double tried;
    bool confirmed;
  };
  // The trials left if every workload is to have `each`. A workload without a confirmed winner keeps its missing
  // trials, even if others had more than their share. A workload with more trials than one run would spend was also
  // tuned for other models; only its share counts against this budget.
  double Left(double each) const {
    const double most = each * workloads_;
    double all = most, unconfirmed = 0;
    for (const auto& [tried, confirmed] : recorded_) {
      all -= tried > most ? each : tried;
      if (!confirmed) unconfirmed += std::max(0.0, each - tried);
    }
    return std::max(all, unconfirmed);
  }

  int64_t trials_;        // the job's limit; after FixTrialLimit that of this attempt
  double seconds_;        // the job's limit; infinite: none
  double workloads_;      // their number, at least 1
  int64_t spent_trials_;  // by earlier attempts
  double spent_seconds_;
  std::vector<RecordedTrials> recorded_;
  bool nothing_left_ = false;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_BUDGET_H_
