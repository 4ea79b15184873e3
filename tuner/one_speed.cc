// SPDX-License-Identifier: Apache-2.0
#include "tuner/one_speed.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/median.h"
#include "tuner/belief.h"
#include "tuner/task.h"

namespace hone::tuner {
namespace {

using PastVisit = std::vector<PastTrial*>;           // the trials of one visit that have times
using Beliefs = std::map<std::string_view, Belief>;  // by schedule

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

// The factor by which the visit's times must be divided; nullopt: it was disturbed. Updates `pace` to it.
std::optional<double> PaceOf(const PastVisit& visit, const std::string& standard, Beliefs& beliefs, Pace& pace) {
  std::vector<double> paces;
  std::pair<Belief*, double> met = {nullptr, 0};
  std::optional<double> by_default;
  bool final = false;
  for (const PastTrial* trial : visit) {
    final |= trial->confirmed;
    const auto belief = beliefs.find(trial->schedule);
    if (belief == beliefs.end()) continue;
    const double seconds = *SecondsOf(trial->outcome);
    met = {&belief->second, seconds};
    paces.push_back(seconds / belief->second.seconds);
    if (trial->schedule == standard) by_default = paces.back();
  }
  if (paces.empty()) return pace.now();
  if (paces.size() == 1 && !by_default.has_value() && !final) return pace.Meet(*met.first, met.second);
  pace.Set(final && by_default.has_value() ? *by_default : Median(std::move(paces)));
  return pace.now();
}

// Divides the times of a visit by `pace`, updates the latency estimates, and scales the trials' times to them.
void Take(const PastVisit& visit, double pace, Beliefs& beliefs) {
  std::vector<const Outcome*> newcomers;
  for (const PastTrial* trial : visit) {
    if (!beliefs.contains(trial->schedule)) newcomers.push_back(&trial->outcome);
  }
  const double slowest = SlowestInTurns(newcomers);
  for (PastTrial* trial : visit) {
    const double timed = *SecondsOf(trial->outcome);
    Belief believed = {SecondsBeside(trial->outcome, slowest) / pace, trial->confirmed ? kConfirmed : 1};
    const auto [known, added] = beliefs.try_emplace(trial->schedule, believed);
    if (!added) {
      believed.seconds = timed / pace;
      if (believed.times >= known->second.times) known->second = believed;
    }
    for (double& seconds : trial->outcome.seconds) seconds *= believed.seconds / timed;
  }
}

}  // namespace

void BringToOneSpeed(std::vector<PastTrial>& past, const std::string& winner, const std::string& standard) {
  const std::vector<PastVisit> visits = VisitsOf(past);
  Beliefs beliefs;  // latency estimates at the speed of the first visit
  Pace pace;
  // The winner's last trial: whether it was confirmed, and when it was measured.
  std::pair<bool, absl::Time> newest = {false, absl::InfinitePast()};
  double winner_seconds = 0;
  for (const PastVisit& visit : visits) {
    const std::optional<double> divisor = PaceOf(visit, standard, beliefs, pace);
    for (const PastTrial* trial : visit) {
      const std::pair<bool, absl::Time> when = {trial->confirmed, trial->measured_at};
      if (trial->schedule != winner || when < newest) continue;
      newest = when;
      winner_seconds = *SecondsOf(trial->outcome);
    }
    if (divisor.has_value()) {
      Take(visit, *divisor, beliefs);
    } else {
      for (PastTrial* trial : visit) trial->outcome.seconds.clear();
    }
  }
  const auto known = beliefs.find(winner);
  if (known == beliefs.end()) return;
  for (const PastVisit& visit : visits) {
    for (PastTrial* trial : visit) {
      for (double& seconds : trial->outcome.seconds) seconds *= winner_seconds / known->second.seconds;
    }
  }
}

}  // namespace hone::tuner
