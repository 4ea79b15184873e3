#include "tuner/task_scheduler.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hone::tuner {
namespace {

constexpr double kTrustInPast = 0.3;  // against the hope that there is more to gain
constexpr int kWindow = 3;            // rounds that the past means

}  // namespace

TaskScheduler::TaskScheduler(std::vector<Task> tasks, Options options)
    : tasks_(std::move(tasks)), options_(options), states_(tasks_.size()) {
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].known_seconds.has_value()) states_[i] = {{*tasks_[i].known_seconds}, 1, 1};
  }
}

double TaskScheduler::Seconds(size_t task) const {
  return states_[task].best.empty() ? tasks_[task].expected_seconds : states_[task].best.back();
}

double TaskScheduler::Share(size_t task) const {
  double sum = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) sum += tasks_[i].count * Seconds(i);
  return sum > 0 ? tasks_[task].count * Seconds(task) / sum : 1;
}

// Seconds of the model that one more round of this task should save; or, for turns, more the fewer rounds it had.
double TaskScheduler::Gain(size_t task) const {
  const State& state = states_[task];
  if (!options_.by_gain) return -state.begun;
  // Where a first round was lost, the second may find what that should have.
  const std::vector<double> expected = {tasks_[task].expected_seconds};
  const std::vector<double>& past = state.best.empty() ? expected : state.best;
  const double best = past.back();
  const auto rounds = static_cast<int>(past.size());
  const int window = std::min(kWindow, rounds - 1);
  const double before = past[static_cast<size_t>(rounds - 1 - window)];
  const double slope = window > 0 ? (before - best) / window : best / 2;
  const double room = std::max(0.0, best - tasks_[task].least_seconds);
  const double hope = std::min(best / rounds, room) / rounds;
  // Rounds on their way will take their share of it.
  const int open = state.begun - state.finished;
  return tasks_[task].count * (kTrustInPast * slope + (1 - kTrustInPast) * hope) / (1 + 2 * open);
}

std::optional<TaskScheduler::Round> TaskScheduler::Next() {
  std::optional<size_t> chosen;
  for (size_t i = 0; i < tasks_.size() && !chosen.has_value(); ++i) {
    if (states_[i].begun == 0 && !states_[i].closed) chosen = i;
  }
  const bool first = chosen.has_value();
  double most = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < tasks_.size() && !first; ++i) {
    if (states_[i].closed || states_[i].held) continue;
    // The first outcomes decide what comes next; and two rounds ahead of the news is enough.
    const int open = states_[i].begun - states_[i].finished;
    if (open > 1 || (open > 0 && states_[i].best.empty())) continue;
    if (states_[i].finished > 0 && Share(i) < options_.negligible_share) continue;
    const double gain = Gain(i);
    if (gain > most) {
      most = gain;
      chosen = i;
    }
  }
  if (!chosen.has_value()) return std::nullopt;
  ++states_[*chosen].begun;
  const bool small = Share(*chosen) < options_.negligible_share;
  const int64_t trials = first ? options_.first_batch : options_.batch;
  return Round{*chosen, small ? std::max<int64_t>(1, trials / 3) : trials};
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
