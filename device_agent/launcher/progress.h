// SPDX-License-Identifier: Apache-2.0
// The state of a batch during a visit, across its children: which candidates are verified, their times, and their
// failures.
//
// It accepts only values that can be true, and a bounded number of them, so that a child's messages cannot exhaust the
// launcher's memory.
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

  std::vector<int> PendingCandidates() const;  // indices of those neither timed nor failed
  std::vector<VerifiedCandidate> VerifiedCandidates()
      const;  // verified and timed; verified ones without times are pending
  bool IsKnown(int candidate) const { return candidate >= 0 && candidate < static_cast<int>(states_.size()); }
  bool HasFailed(int candidate) const { return IsKnown(candidate) && states_[candidate].stage == State::kFailed; }
  // Whether it has no times yet. With its first times the guard zones in the result memory must be checked.
  bool IsUntimed(int candidate) const { return IsKnown(candidate) && states_[candidate].timing.seconds.empty(); }

  void Fail(int candidate, VisitFailure failure);
  // Notes that the launcher found its outputs right.
  void MarkVerified(int candidate, double max_error);
  // Adds repeats, which together took at most `seconds_max` by the launcher's clock. Interleaved repeats replace
  // earlier interleaved ones of the candidate, because lost rounds are repeated as a whole. False if the repeats cannot
  // be true: they sum up to more, are too many, have another number of calls than before, or belong to a candidate
  // whose outputs were not found right.
  bool AddTimes(const VisitMessage& message, double seconds_max);
  // Adds repeats of the reference loop. False: they sum up to more than the visit has taken, or are too many.
  bool AddReference(const VisitMessage& message);
  void AddLoadSeconds(double seconds);

  VisitResult Result() const;
  double load_seconds() const;  // median time to load a candidate; 0: none was loaded
  const VisitPolicy& policy() const { return policy_; }

 private:
  struct State {
    enum { kPending, kVerified, kTimed, kFailed } stage = kPending;
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
