// SPDX-License-Identifier: Apache-2.0
#include "tuner/task_scheduler.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/median.h"

namespace hone::tuner {
namespace {

constexpr double kTrustInPast = 0.3;  // against the hope that there is more to gain
constexpr int kWindow = 3;            // rounds that the past means

}  // namespace

TaskScheduler::TaskScheduler(std::vector<Task> tasks, Options options)
    : tasks_(std::move(tasks)), options_(options), states_(tasks_.size()) {
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = tasks_[i];
    if (!task.known_seconds.has_value()) continue;
    states_[i] = {std::vector<double>(static_cast<size_t>(task.known_rounds), *task.known_seconds), task.known_rounds,
                  task.known_rounds};
  }
}

// By the best so far; without one, by the draft, corrected by how wrong it was about the others.
std::vector<double> TaskScheduler::Seconds() const {
  std::vector<double> errors;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const std::vector<double>& best = states_[i].best;
    if (!best.empty() && tasks_[i].expected_seconds > 0) errors.push_back(best.front() / tasks_[i].expected_seconds);
  }
  const double error = errors.empty() ? 1 : Median(std::move(errors));
  std::vector<double> seconds;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const std::vector<double>& best = states_[i].best;
    seconds.push_back(tasks_[i].count * (best.empty() ? tasks_[i].expected_seconds * error : best.back()));
  }
  return seconds;
}

std::vector<bool> TaskScheduler::Negligible(const std::vector<double>& seconds) const {
  std::vector<size_t> order(seconds.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return seconds[a] < seconds[b]; });
  double left = options_.negligible_share * std::accumulate(seconds.begin(), seconds.end(), 0.0);
  std::vector<bool> negligible(seconds.size());
  for (const size_t i : order) {
    left -= seconds[i];
    negligible[i] = left >= 0;
  }
  return negligible;
}

// Seconds of the model that one more round of this task should save, of the `seconds` that it takes; or, for turns,
// more the fewer rounds it had.
double TaskScheduler::Gain(size_t task, double seconds) const {
  const State& state = states_[task];
  if (!options_.by_gain) return -state.begun;
  // Where a first round was lost, the second may find what that should have.
  const double best = seconds / tasks_[task].count;
  const auto rounds = static_cast<int>(std::max<size_t>(1, state.best.size()));
  const int window = std::min(kWindow, rounds - 1);
  const double slope = window > 0 ? (state.best[static_cast<size_t>(rounds - 1 - window)] - best) / window : best / 2;
  // Who is below the least has found a better way, and how far that leads nobody knows.
  const double least = tasks_[task].least_seconds;
  const double room = best > least ? best - least : best;
  const double hope = std::min(best / rounds, room) / rounds;
  // Rounds on their way will take their share of it.
  const int open = state.begun - state.finished;
  return tasks_[task].count * (kTrustInPast * slope + (1 - kTrustInPast) * hope) / (1 + 2 * open);
}

std::optional<size_t> TaskScheduler::FirstRound(const std::vector<double>& seconds) const {
  std::optional<size_t> chosen;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (states_[i].begun > 0 || states_[i].closed) continue;
    if (!chosen.has_value() || (options_.by_gain && seconds[i] > seconds[*chosen])) chosen = i;
  }
  return chosen;
}

std::optional<size_t> TaskScheduler::NextRound(const std::vector<double>& seconds,
                                               const std::vector<bool>& negligible) const {
  bool others = false;
  for (size_t i = 0; i < tasks_.size(); ++i) others |= !negligible[i] && !states_[i].closed;
  std::optional<size_t> chosen;
  double most = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const State& state = states_[i];
    if (state.closed || state.held || (negligible[i] && others)) continue;
    // The first outcomes decide what comes next; and two rounds ahead of the news is enough.
    const int open = state.begun - state.finished;
    if (open > 1 || (open > 0 && state.best.empty())) continue;
    const double gain = Gain(i, seconds[i]);
    if (gain > most) {
      most = gain;
      chosen = i;
    }
  }
  return chosen;
}

std::optional<TaskScheduler::Round> TaskScheduler::Next() {
  const std::vector<double> seconds = Seconds();
  const std::vector<bool> negligible = Negligible(seconds);
  std::optional<size_t> chosen = FirstRound(seconds);
  const bool first = chosen.has_value();
  if (!first) chosen = NextRound(seconds, negligible);
  if (!chosen.has_value()) return std::nullopt;
  ++states_[*chosen].begun;
  if (!first) return Round{*chosen, options_.batch};
  return Round{*chosen, negligible[*chosen] ? std::max<int64_t>(1, options_.first_batch / 3) : options_.first_batch};
}

void TaskScheduler::Hold(size_t task) {
  --states_[task].begun;
  states_[task].held = true;
}

void TaskScheduler::Finish(size_t task, std::optional<double> best_seconds) {
  State& state = states_[task];
  ++state.finished;
  state.held = false;
  if (best_seconds.has_value()) state.best.push_back(*best_seconds);
  // Nothing of its first two rounds ran at all: its workload is beyond us.
  if (state.best.empty() && state.finished >= 2) state.closed = true;
}

}  // namespace hone::tuner
