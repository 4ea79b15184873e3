// SPDX-License-Identifier: Apache-2.0
#include "tuner/task_scheduler.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/median.h"

namespace hone::tuner {
namespace {

constexpr double kTrustInPast = 0.3;  // weight of the recent improvement; the rest is the weight of the possible one
constexpr int kWindow = 3;            // last rounds whose improvement counts as recent

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

// Uses the best time of a task so far. Without one it uses the analytic estimate, corrected by the median error of the
// estimates of other tasks.
std::vector<double> TaskScheduler::Seconds() const {
  std::vector<double> errors;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const std::vector<double>& best = states_[i].best;
    if (!best.empty() && tasks_[i].default_estimate_seconds > 0)
      errors.push_back(best.front() / tasks_[i].default_estimate_seconds);
  }
  const double error = errors.empty() ? 1 : Median(std::move(errors));
  std::vector<double> seconds;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const std::vector<double>& best = states_[i].best;
    seconds.push_back(tasks_[i].count * (best.empty() ? tasks_[i].default_estimate_seconds * error : best.back()));
  }
  return seconds;
}

// Marks the smallest tasks that together take no more than negligible_share of all seconds.
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

// The seconds of one run of the model that another round of this task should save. seconds: what the task's calls take
// in such a run. Without by_gain, a rank that is higher the fewer rounds the task had.
double TaskScheduler::Gain(size_t task, double seconds) const {
  const State& state = states_[task];
  if (!options_.by_gain) return -state.begun;
  // If the first round was lost, the second one counts as the first.
  const double best = seconds / tasks_[task].count;
  const auto rounds = static_cast<int>(std::max<size_t>(1, state.best.size()));
  const int window = std::min(kWindow, rounds - 1);
  const double slope = window > 0 ? (state.best[static_cast<size_t>(rounds - 1 - window)] - best) / window : best / 2;
  // A time below the lower bound comes from a better algorithm, for which there is no bound.
  const double least = tasks_[task].lower_bound_seconds;
  const double room = best > least ? best - least : best;
  const double hope = std::min(best / rounds, room) / rounds;
  // Open rounds will make part of the gain.
  const int open = state.begun - state.finished;
  return tasks_[task].count * (kTrustInPast * slope + (1 - kTrustInPast) * hope) / (1 + 2 * open);
}

// The largest task without a round; nullopt: all have begun one or are closed.
std::optional<size_t> TaskScheduler::FirstRound(const std::vector<double>& seconds) const {
  std::optional<size_t> chosen;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (states_[i].begun > 0 || states_[i].closed) continue;
    if (!chosen.has_value() || (options_.by_gain && seconds[i] > seconds[*chosen])) chosen = i;
  }
  return chosen;
}

// The task with the largest gain that may have another round. Negligible tasks only if all others are closed.
std::optional<size_t> TaskScheduler::NextRound(const std::vector<double>& seconds,
                                               const std::vector<bool>& negligible) const {
  bool others = false;
  for (size_t i = 0; i < tasks_.size(); ++i) others |= !negligible[i] && !states_[i].closed;
  std::optional<size_t> chosen;
  double most = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const State& state = states_[i];
    if (state.closed || state.held || (negligible[i] && others)) continue;
    // The second round needs the outcomes of the first. Later ones may be two ahead of the outcomes.
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
  // No candidate of the first two rounds has a time, so more rounds will not find one either.
  if (state.best.empty() && state.finished >= 2) state.closed = true;
}

}  // namespace hone::tuner
