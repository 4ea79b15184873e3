// SPDX-License-Identifier: Apache-2.0
// The task scheduler decides which workload of a model gets the next round of trials.
//
// Every workload gets one round first. Those that take most of the model's time go first, so that a small budget is
// spent on them. Then the workload with the largest expected gain for the whole model goes next. The gain depends on
// its recent improvement, its distance from the lower bound of its time, and its number of calls. Converged workloads
// get no more rounds, and negligible ones none until all others have converged. Pure state without a clock; not
// thread-safe. Start with Next. The gradient follows the task scheduler of Zheng et al., "Ansor", OSDI 2020, section 6.
#ifndef HONE_TUNER_TASK_SCHEDULER_H_
#define HONE_TUNER_TASK_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hone::tuner {

class TaskScheduler {
 public:
  struct Task {
    double count = 1;                     // calls in one run of the model
    double default_estimate_seconds = 0;  // analytic cost model's estimate for the default schedule
    // Lower bound of the time of one call as the workload is written. Algorithms with fewer operations (Winograd) and
    // tensor instructions may be faster.
    double lower_bound_seconds = 0;
    std::optional<double> known_seconds = std::nullopt;  // best of earlier runs, which replace its first round; or none
    int known_rounds = 1;                                // estimated number of rounds in these earlier runs
  };
  struct Options {
    int64_t first_batch = 16;  // trials of a task's first round
    int64_t batch = 24;        // trials of every later round
    // Share of the model's time. The smallest tasks that together take no more are negligible: their first batch is
    // smaller, and later rounds go to others.
    double negligible_share = 0.02;
    bool by_gain = true;  // false: all tasks take turns
  };

  TaskScheduler(std::vector<Task> tasks, Options options);

  // Begins the next round: a task and its number of trials. nullopt: no task has anything to gain, or an open round
  // must be finished first.
  struct Round {
    size_t task;
    int64_t trials;
  };
  std::optional<Round> Next();
  // Ends a round. best_seconds: the task's best time so far; empty: it has none. A task without a time after two rounds
  // is closed.
  void Finish(size_t task, std::optional<double> best_seconds);
  // Takes back the round that was just begun, which has no candidates. The task gets no round until another of its
  // rounds is finished. If none is open it never gets one again, so use Close then.
  void Hold(size_t task);
  // Excludes the task from all further rounds.
  void Close(size_t task) { states_[task].closed = true; }
  bool closed(size_t task) const { return states_[task].closed; }

 private:
  struct State {
    std::vector<double> best;           // best seconds after each finished round that had a time
    int begun = 0, finished = 0;        // rounds
    bool held = false, closed = false;  // see Hold and Close
  };

  // The seconds of all calls of each task in one run of the model.
  std::vector<double> Seconds() const;
  std::vector<bool> Negligible(const std::vector<double>& seconds) const;
  std::optional<size_t> FirstRound(const std::vector<double>& seconds) const;
  std::optional<size_t> NextRound(const std::vector<double>& seconds, const std::vector<bool>& negligible) const;
  double Gain(size_t task, double seconds) const;

  const std::vector<Task> tasks_;
  const Options options_;
  std::vector<State> states_;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_TASK_SCHEDULER_H_
