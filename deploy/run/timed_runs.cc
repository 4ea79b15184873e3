// SPDX-License-Identifier: Apache-2.0
#include "deploy/run/timed_runs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/median.h"
#include "base/seconds_since.h"
#include "base/status.h"

namespace hone::run {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWarmUpShare = 0.1;  // duration of the warm-up as a fraction of the measurement's
constexpr double kWarmUpMax = 2;      // seconds for each run; the curve of a long measurement begins with a cool device
constexpr int kTurnsMin = 3;          // minimum number of measured turns
constexpr double kMinute = 60;        // seconds
constexpr double kLastMinuteMin = 5;  // seconds; the runs of a shorter last minute say nothing

}  // namespace

absl::Status TimeInTurns(double seconds, std::span<const Run> runs,
                         const std::function<void(size_t run, double seconds)>& record) {
  const auto count = static_cast<double>(runs.size());
  const double together = seconds * count, warm_up_seconds = std::min(kWarmUpShare * together, kWarmUpMax * count);
  const Clock::time_point warm_up = Clock::now();
  do {
    for (const Run& run : runs) HONE_RETURN_IF_ERROR(run());
  } while (SecondsSince(warm_up) < warm_up_seconds);
  const Clock::time_point begin = Clock::now();
  int turns = 0;
  do {
    for (size_t i = 0; i < runs.size(); ++i) {
      const Clock::time_point start = Clock::now();
      HONE_RETURN_IF_ERROR(runs[i]());
      record(i, SecondsSince(start));
    }
    ++turns;
  } while (SecondsSince(begin) < together || turns < kTurnsMin);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> TimeRuns(double seconds, const Run& run) {
  std::vector<double> times;
  HONE_RETURN_IF_ERROR(TimeInTurns(seconds, std::span(&run, 1), [&](size_t, double taken) { times.push_back(taken); }));
  return times;
}

void SpreadValues::Add(double value) {
  if (count_++ % stride_ != 0) return;
  values_.push_back(value);
  if (values_.size() <= most_) return;
  for (size_t i = 0; 2 * i < values_.size(); ++i) values_[i] = values_[2 * i];
  values_.resize((values_.size() + 1) / 2);
  stride_ *= 2;
}

void MinuteCurve::Add(double now, double seconds) {
  if (std::exchange(empty_, false)) begun_ = now - seconds;
  while (now - begun_ >= kMinute * static_cast<double>(minutes_.size() + 1)) EndMinute();
  present_.Add(seconds);
  last_ = now - begun_;
}

std::vector<MinuteCurve::Minute> MinuteCurve::Take() {
  const bool is_short = last_ - kMinute * static_cast<double>(minutes_.size()) < kLastMinuteMin;
  if (present_.count() > 0 && (minutes_.empty() || !is_short)) EndMinute();
  return std::move(minutes_);
}

void MinuteCurve::EndMinute() {
  minutes_.push_back({present_.count(), present_.values().empty() ? 0 : Median(present_.values())});
  present_ = SpreadValues(most_);
}

}  // namespace hone::run
