// SPDX-License-Identifier: Apache-2.0
// Which workload of a model gets the next round of trials: the one where it should pay most.
//
// Every workload first, once, those that take most of the model's time before the others, so that a budget which ends
// meanwhile was spent on them. Then by expected gain for the whole model: how fast a workload has been improving
// lately, how far it is from what the device can do at best, how often the model runs it. What is converged gets no
// more, and what is too small to matter gets no more until all others are. Pure state, no clock, no threads. Start with
// Next. The gradient follows the task scheduler of Zheng et al., "Ansor", OSDI 2020, section 6.
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
    double count = 1;             // times the model runs it
    double expected_seconds = 0;  // of the default, by the draft
    // Computing as the workload is written. Fewer operations (Winograd) or instructions for matrices may do better.
    double least_seconds = 0;
    std::optional<double> known_seconds = std::nullopt;  // the best of earlier runs: its first round is behind it
    int known_rounds = 1;                                // about as many as these runs have spent on it
  };
  struct Options {
    int64_t first_batch = 16;
    int64_t batch = 24;
    // Of the model's time: the smallest tasks that take no more together have a small first batch, and others go first.
    double negligible_share = 0.02;
    bool by_gain = true;  // otherwise each in its turn
  };

  TaskScheduler(std::vector<Task> tasks, Options options);

  // A task and how many trials it gets; nullopt when no task has anything to gain, or not before some open round is
  // finished. Counts the round as begun.
  struct Round {
    size_t task;
    int64_t trials;
  };
  std::optional<Round> Next();
  // The round's end: the best time known now, if there is one.
  void Finish(size_t task, std::optional<double> best_seconds);
  // The round that was just begun has nothing to try: none of this task before another round of it is finished.
  void Hold(size_t task);
  // No round of this task any more.
  void Close(size_t task) { states_[task].closed = true; }
  bool closed(size_t task) const { return states_[task].closed; }

 private:
  struct State {
    std::vector<double> best;  // after each finished round
    int begun = 0, finished = 0;
    bool held = false, closed = false;
  };

  std::vector<double> Seconds() const;  // of all calls of each task in one run of the model
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
