// SPDX-License-Identifier: Apache-2.0
// Supervises one child to its end and enters its results into Progress. Checks every number of its messages, judges the
// result memory itself, and kills a child that is silent, takes more time than kernels can need, or makes a forbidden
// system call.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_CHILD_SUPERVISOR_H_
#define HONE_DEVICE_AGENT_LAUNCHER_CHILD_SUPERVISOR_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "device_agent/devices/device.h"
#include "device_agent/launcher/child_process.h"
#include "device_agent/launcher/progress.h"
#include "device_agent/visit/message.h"
#include "device_agent/visit/result_memory.h"

namespace hone::agent {

// How the supervision of a child ended.
struct ChildEnd {
  enum {
    kDone,              // it has finished its task
    kReplace,           // a candidate failed; another child must continue
    kBatchFailed,       // the batch cannot be measured; see `error`
    kOutOfTime,         // killed at Options::kill_at
    kCancelled,         // Options::cancel_fd became readable
    kRecheckReference,  // outputs differ from a reference that another batch computed; compute this batch's own
  } what;
  std::string error;  // set for kBatchFailed
};

class ChildSupervisor {
 public:
  struct Options {
    double kill_at = 0;  // SecondsNow by which the child must have ended
    // SecondsNow at which the visit ends. A child may report kDone with candidates left only if the next one might not
    // fit before.
    double deadline = 0;
    int cancel_fd = -1;  // readable when the visit is to end; -1: never
    // Shared with the child; null for a building child, which has no results.
    ResultMemory* result_memory = nullptr;
    // The reference's outputs, as ReferenceData has them. Null: the child computes them, and only guard zones are
    // judged.
    const char* expected = nullptr;
    char* computed = nullptr;  // where the outputs go that the child computes; null if `expected` is given
    // Whether another batch's reference computed `expected`. Then a difference ends the child as kRecheckReference.
    bool expected_from_other_batch = false;
  };
  // All arguments must outlive the supervisor.
  ChildSupervisor(Progress& progress, const VisitBatch& batch, const Device& device, const Options& options);

  // Handles the messages of the child until it has ended, is done or is cancelled. It may still run then; the
  // destructor of ChildProcess kills it.
  ChildEnd Supervise(ChildProcess& child);

 private:
  ChildEnd BlameCandidate(const VisitFailure& blame);
  ChildEnd JudgeEnd(ChildProcess& child);
  ChildEnd BlameForbiddenCall(ChildProcess& child);
  VisitFailure TimeoutFailure() const;
  bool BeginStep(const VisitMessage& message);
  std::optional<ChildEnd> HandleMessage(const VisitMessage& message, ChildProcess& child);
  std::optional<ChildEnd> JudgeResults(const VisitMessage& message, ChildProcess& child);
  std::optional<ChildEnd> JudgeTimes(const VisitMessage& message, ChildProcess& child);
  std::optional<ChildEnd> JudgeDone() const;
  std::optional<VisitFailure> CheckGuards(const VisitMessage& message);
  double ClampLimit(double seconds) const;
  double AllowedCallSeconds() const;
  double AllowedSeconds() const;
  double SecondsLeft() const;
  // What this child spent on one candidate, or on none.
  struct Spent {
    double calling = 0, loading = 0;  // seconds, without the step under way
    int steps = 0;
  };
  const Spent& spent() const { return spent_[static_cast<size_t>(current_ + 1)]; }

  Progress& progress_;
  const VisitBatch& batch_;
  const double load_seconds_;
  const Options options_;
  double limit_ = 30;
  double begun_;  // SecondsNow at the beginning of the step under way
  // SecondsNow of the answer that ended the last candidate's turn; the next candidate cannot have begun earlier. A
  // message does not tell that time, because it may be read late.
  double candidate_begun_ = 0;
  std::vector<Spent> spent_;  // first for no candidate, then by candidate
  int current_ = -1;
  bool loading_ = false;
  bool failed_one_ = false;
  VisitMessage::Type set_up_ = {};  // the setup message that came last
  // Results that were judged: of which candidate (-1: the reference), at how many points, and their largest error.
  int shown_candidate_ = -1;
  size_t points_shown_ = 0;
  double max_error_ = 0;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_CHILD_SUPERVISOR_H_
