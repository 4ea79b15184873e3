// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/progress.h"

#include <algorithm>
#include <utility>

#include "base/median.h"
#include "device_agent/visit/seconds_now.h"

namespace hone::agent {
namespace {

constexpr size_t kTimesMax = 512;            // of one candidate: far more than a visit takes
constexpr size_t kReferenceTimesMax = 4096;  // of the device's own loop
constexpr size_t kLoadTimesMax = 4096;       // as many as tell how long one takes

// Whether all times are positive and finite, and fit into `seconds_max` together.
bool Plausible(const VisitMessage& message, double seconds_max) {
  if (message.count < 1 || message.count > kRepeatsMax) return false;
  double sum = 0;
  for (int i = 0; i < message.count; ++i) {
    if (!(message.seconds[i] > 0)) return false;
    sum += message.seconds[i] * static_cast<double>(std::max<int64_t>(1, message.calls));
  }
  return sum <= seconds_max;
}

}  // namespace

Progress::Progress(const VisitBatch& batch)
    : policy_(batch.policy), states_(batch.candidates.size()), started_(SecondsNow()) {}

std::vector<int> Progress::PendingCandidates() const {
  std::vector<int> pending;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].stage == State::kPending || states_[i].stage == State::kVerified) {
      pending.push_back(static_cast<int>(i));
    }
  }
  return pending;
}

std::vector<VerifiedCandidate> Progress::VerifiedCandidates() const {
  std::vector<VerifiedCandidate> verified;
  for (size_t i = 0; i < states_.size(); ++i) {
    const State& state = states_[i];
    if (state.stage != State::kTimed) continue;
    verified.push_back({static_cast<int>(i), state.timing.calls_per_repeat, Median(state.timing.seconds)});
  }
  return verified;
}

void Progress::Fail(int candidate, VisitFailure failure) {
  State& state = states_[static_cast<size_t>(candidate)];
  if (state.stage == State::kFailed) return;
  state.stage = State::kFailed;
  state.failure = std::move(failure);
}

void Progress::MarkVerified(int candidate, double max_error) {
  State& state = states_[static_cast<size_t>(candidate)];
  if (state.stage != State::kPending) return;
  state.stage = State::kVerified;
  state.timing.max_error = max_error;
}

bool Progress::AddTimes(const VisitMessage& message, double seconds_max) {
  if (!IsKnown(message.candidate) || !Plausible(message, seconds_max) || message.calls < 1) return false;
  State& state = states_[static_cast<size_t>(message.candidate)];
  VisitTiming& timing = state.timing;
  if (state.stage == State::kFailed || state.stage == State::kPending) return false;
  if (state.stage == State::kVerified) timing.calls_per_repeat = message.calls;
  if (timing.calls_per_repeat != message.calls) return false;
  state.stage = State::kTimed;
  if (message.interleaved != 0) {
    // A round that had to be repeated replaces the one before it.
    timing.seconds.resize(std::min(timing.seconds.size(), static_cast<size_t>(timing.first_interleaved)));
    timing.first_interleaved = static_cast<int>(timing.seconds.size());
  }
  if (timing.seconds.size() + static_cast<size_t>(message.count) > kTimesMax) return false;
  timing.seconds.insert(timing.seconds.end(), message.seconds, message.seconds + message.count);
  if (message.interleaved == 0) timing.first_interleaved = static_cast<int>(timing.seconds.size());
  return true;
}

bool Progress::AddReference(const VisitMessage& message) {
  if (!Plausible(message, SecondsNow() - started_) || reference_.size() >= kReferenceTimesMax) return false;
  reference_.insert(reference_.end(), message.seconds, message.seconds + message.count);
  return true;
}

void Progress::AddLoadSeconds(double seconds) {
  if (load_seconds_.size() < kLoadTimesMax) load_seconds_.push_back(seconds);
}

double Progress::load_seconds() const { return load_seconds_.empty() ? 0 : Median(load_seconds_); }

VisitResult Progress::Result() const {
  VisitResult result;
  if (!reference_.empty()) {
    const double median = Median(reference_);
    const auto [least, most] = std::minmax_element(reference_.begin(), reference_.end());
    result.reference_seconds = median;
    result.drift = std::max(*most / median - 1, 1 - *least / median);
  }
  for (const State& state : states_) {
    VisitOutcome& outcome = result.outcomes.emplace_back();  // empty if there was no time for it
    if (state.stage == State::kTimed) outcome = state.timing;
    if (state.stage == State::kFailed) outcome = state.failure;
  }
  result.seconds = SecondsNow() - started_;
  return result;
}

}  // namespace hone::agent
