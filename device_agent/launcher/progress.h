// SPDX-License-Identifier: Apache-2.0
// What is known of a batch while its children come and go: which candidates are verified, their times, how they failed.
//
// Takes from a child only what can be true, and no more of it than a result can hold: no number of messages makes the
// launcher or a result larger.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_PROGRESS_H_
#define HONE_DEVICE_AGENT_LAUNCHER_PROGRESS_H_

#include <cstddef>
#include <vector>

#include "device_agent/visit/batch.h"
#include "device_agent/visit/message.h"
#include "device_agent/visit/task.h"

namespace hone::agent {

class Progress {
 public:
  explicit Progress(const VisitBatch& batch);

  std::vector<int> PendingCandidates() const;  // neither timed nor failed
  std::vector<Verified> VerifiedCandidates() const;
  bool IsKnown(int candidate) const { return candidate >= 0 && candidate < static_cast<int>(states_.size()); }
  bool HasFailed(int candidate) const { return IsKnown(candidate) && states_[candidate].stage == State::kFailed; }
  // Whether its first times are still to come, so that the result memory must be looked at.
  bool IsUntimed(int candidate) const { return IsKnown(candidate) && states_[candidate].timing.seconds.empty(); }

  void Fail(int candidate, VisitFailure failure);
  // Its output was right, as the launcher has seen.
  void MarkVerified(int candidate, double max_error);
  // Adds repeats, which have taken no longer than `seconds_max` together. False when they cannot be true: of one whose
  // output nobody has found right, too many, or too long.
  bool AddTimes(const VisitMessage& message, double seconds_max);
  bool AddReference(const VisitMessage& message);
  void AddLoadSeconds(double seconds);

  VisitResult Result() const;
  double load_seconds() const;  // of a candidate until it could be called: the median; 0 of none
  const VisitPolicy& policy() const { return policy_; }

 private:
  struct State {
    enum { kPending, kRight, kTimed, kFailed } stage = kPending;
    VisitFailure failure;
    VisitTiming timing;
  };

  const VisitPolicy& policy_;
  std::vector<State> states_;
  std::vector<double> reference_, load_seconds_;
  double started_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_PROGRESS_H_
