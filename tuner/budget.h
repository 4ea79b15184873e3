// SPDX-License-Identifier: Apache-2.0
// How much may be spent on a job: trials and seconds, less what earlier attempts and earlier runs have spent.
//
// A new job whose records hold as many trials as it would make itself has nothing left to do: tuning again costs
// nothing where nothing changed. A job that goes on after an earlier attempt has what that one left. Pure arithmetic.
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

  // Trials that a run like this one makes for a workload on average; a time limit is turned into trials at a modest
  // rate. Infinite where neither is given.
  double TrialsPerWorkload() const {
    const double by_trials =
        trials_ == kUnlimited ? std::numeric_limits<double>::infinity() : static_cast<double>(trials_) / workloads_;
    return std::min(by_trials, seconds_ * kTrialsPerSecond / workloads_);
  }

  // tried: how many trials of a workload the records hold: each schedule that taught something once, however often it
  // ran along or was confirmed, and each disturbed visit of one that had not yet. settled: its winner has been
  // confirmed.
  void CountRemembered(int64_t tried, bool settled) { remembered_.push_back({static_cast<double>(tried), settled}); }

  // To be called after all workloads were counted. Earlier attempts of this job are in the records like earlier runs:
  // only to a job without any do they say that its work is done.
  void SettleTrials() {
    nothing_left_ = spent_trials_ == 0 && spent_seconds_ == 0 && Left(TrialsPerWorkload()) < 1;
    if (trials_ == kUnlimited) return;
    const auto left = static_cast<int64_t>(Left(static_cast<double>(trials_) / workloads_) + 0.5);
    trials_ = std::max<int64_t>(0, std::min(trials_ - spent_trials_, left));
  }
  bool nothing_left() const { return nothing_left_; }

  // begun: trials of this attempt, those under way included.
  int64_t TrialsLeft(int64_t begun) const { return std::max<int64_t>(0, trials_ - begun); }
  // What is left when this attempt has taken `seconds`, less what its end will need (but never more than a quarter of
  // all); negative when it is overdrawn, infinite without a limit.
  double SecondsLeft(double seconds, double reserve) const {
    return seconds_ - spent_seconds_ - seconds - std::min(reserve, seconds_ / 4);
  }

 private:
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 2;
  static constexpr double kTrialsPerSecond = 15;

  struct Remembered {
    double tried;
    bool settled;
  };
  // Of `each` trials for every workload. What others have too much takes nothing from one that is not settled. One that
  // has more than a run like this makes for all of them was tuned with other models, too: it counts with its share.
  double Left(double each) const {
    const double most = each * workloads_;
    double all = most, unsettled = 0;
    for (const auto& [tried, settled] : remembered_) {
      all -= tried > most ? each : tried;
      if (!settled) unsettled += std::max(0.0, each - tried);
    }
    return std::max(all, unsettled);
  }

  int64_t trials_;
  double seconds_;
  double workloads_;
  int64_t spent_trials_;
  double spent_seconds_;
  std::vector<Remembered> remembered_;
  bool nothing_left_ = false;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_BUDGET_H_
