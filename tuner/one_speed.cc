// SPDX-License-Identifier: Apache-2.0
#include "tuner/one_speed.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/median.h"
#include "tuner/speed_factor.h"
#include "tuner/task.h"

namespace hone::tuner {
namespace {

using PastVisit = std::vector<PastTrial*>;                      // the trials of one visit that have times
using Estimates = std::map<std::string_view, LatencyEstimate>;  // by schedule

std::vector<PastVisit> VisitsOf(std::vector<PastTrial>& past) {
  std::vector<PastVisit> visits;
  std::map<std::string_view, size_t> places;  // by batch
  for (PastTrial& trial : past) {
    if (trial.batch.empty() || SecondsOf(trial.outcome).value_or(0) <= 0) continue;
    const auto [place, added] = places.try_emplace(trial.batch, visits.size());
    if (added) visits.emplace_back();
    visits[place->second].push_back(&trial);
  }
  return visits;
}

// The factor by which the visit's times must be divided; nullopt: it was disturbed. Updates `speed_factor` to it.
std::optional<double> SpeedFactorOf(const PastVisit& visit, const std::string& default_schedule, Estimates& estimates,
                                    SpeedFactor& speed_factor) {
  std::vector<double> factors;
  std::pair<LatencyEstimate*, double> met = {nullptr, 0};
  std::optional<double> by_default;
  bool final = false;
  for (const PastTrial* trial : visit) {
    final |= trial->confirmed;
    const auto estimate = estimates.find(trial->schedule);
    if (estimate == estimates.end()) continue;
    const double seconds = *SecondsOf(trial->outcome);
    met = {&estimate->second, seconds};
    factors.push_back(seconds / estimate->second.seconds);
    if (trial->schedule == default_schedule) by_default = factors.back();
  }
  if (factors.empty()) return speed_factor.value();
  if (factors.size() == 1 && !by_default.has_value() && !final) return speed_factor.Update(*met.first, met.second);
  speed_factor.Set(final && by_default.has_value() ? *by_default : Median(std::move(factors)));
  return speed_factor.value();
}

// Divides the times of a visit by `speed_factor`, updates the latency estimates, and scales the trials' times to them.
void Take(const PastVisit& visit, double speed_factor, Estimates& estimates) {
  std::vector<const Outcome*> newcomers;
  for (const PastTrial* trial : visit) {
    if (!estimates.contains(trial->schedule)) newcomers.push_back(&trial->outcome);
  }
  const double slowest = SlowestInterleaved(newcomers);
  for (PastTrial* trial : visit) {
    const double timed = *SecondsOf(trial->outcome);
    LatencyEstimate updated = {ComparableSeconds(trial->outcome, slowest) / speed_factor,
                               trial->confirmed ? kConfirmedTimings : 1};
    const auto [known, added] = estimates.try_emplace(trial->schedule, updated);
    if (!added) {
      updated.seconds = timed / speed_factor;
      if (updated.timings >= known->second.timings) known->second = updated;
    }
    for (double& seconds : trial->outcome.seconds) seconds *= updated.seconds / timed;
  }
}

}  // namespace

void ScaleToOneSpeed(std::vector<PastTrial>& past, const std::string& winner, const std::string& default_schedule) {
  const std::vector<PastVisit> visits = VisitsOf(past);
  Estimates estimates;  // latency estimates at the speed of the first visit
  SpeedFactor speed_factor;
  // The winner's last trial: whether it was confirmed, and when it was measured.
  std::pair<bool, absl::Time> newest = {false, absl::InfinitePast()};
  double winner_seconds = 0;
  for (const PastVisit& visit : visits) {
    const std::optional<double> divisor = SpeedFactorOf(visit, default_schedule, estimates, speed_factor);
    for (const PastTrial* trial : visit) {
      const std::pair<bool, absl::Time> when = {trial->confirmed, trial->measured_at};
      if (trial->schedule != winner || when < newest) continue;
      newest = when;
      winner_seconds = *SecondsOf(trial->outcome);
    }
    if (divisor.has_value()) {
      Take(visit, *divisor, estimates);
    } else {
      for (PastTrial* trial : visit) trial->outcome.seconds.clear();
    }
  }
  const auto known = estimates.find(winner);
  if (known == estimates.end()) return;
  for (const PastVisit& visit : visits) {
    for (PastTrial* trial : visit) {
      for (double& seconds : trial->outcome.seconds) seconds *= winner_seconds / known->second.seconds;
    }
  }
}

}  // namespace hone::tuner
