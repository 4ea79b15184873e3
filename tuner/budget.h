// How much may be spent on a job: trials and seconds, less what earlier attempts and earlier runs have spent.
//
// A run whose records hold as many trials as it would make itself has nothing left to do: tuning again costs nothing
// where nothing changed. Pure arithmetic.
#ifndef HONE_TUNER_BUDGET_H_
#define HONE_TUNER_BUDGET_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tuner/job.h"

namespace hone::tuner {

class Budget {
 public:
  explicit Budget(const Job& job)
      : trials_(job.trials > 0 ? job.trials : kUnlimited),
        seconds_(job.seconds.value_or(std::numeric_limits<double>::infinity())),
        workloads_(std::max(1.0, static_cast<double>(job.workloads.size()))),
        spent_seconds_(job.earlier.seconds) {}

  // Trials that a run like this one makes for a workload on average; a time limit is turned into trials at a modest
  // rate, and ends where more has been seen to bring nothing.
  double TrialsPerWorkload() const {
    const double by_time = std::min(seconds_ * kTrialsPerSecond / workloads_, kEnoughTrials);
    return std::min(static_cast<double>(trials_) / workloads_, by_time);
  }

  // Counts what the records hold of a workload. settled: its winner has been confirmed.
  void CountRemembered(int64_t records, bool settled) {
    remembered_ += records;
    if (!settled) open_ += std::max(0.0, TrialsPerWorkload() - static_cast<double>(records));
  }

  // To be called after all workloads were counted. Earlier attempts of this job are in the records like earlier runs.
  void SettleTrials() {
    const double wanted = TrialsPerWorkload() * workloads_;
    const double left = std::max(wanted - static_cast<double>(remembered_), open_);
    nothing_left_ = left < 1;
    if (trials_ != kUnlimited) trials_ = std::min(trials_, static_cast<int64_t>(left + 0.5));
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
  static constexpr double kEnoughTrials = 250;

  int64_t trials_;
  double seconds_;
  double workloads_;
  double spent_seconds_;
  int64_t remembered_ = 0;
  double open_ = 0;
  bool nothing_left_ = false;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_BUDGET_H_
