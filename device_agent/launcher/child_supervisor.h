// SPDX-License-Identifier: Apache-2.0
// Follows one child to its end and books what it says: believes no number without checking it, looks at the result
// memory itself, and ends what is silent, spends more time than a kernel can need, or makes a forbidden system call.
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

struct ChildEnd {
  enum { kDone, kReplace, kBatchFailed, kOutOfTime, kCancelled, kRecheckReference } what;
  std::string error;  // kBatchFailed
};

class ChildSupervisor {
 public:
  struct Options {
    double kill_at = 0;                     // when the child must have ended, of SecondsNow
    double deadline = 0;                    // before which it must not leave candidates out, of SecondsNow
    int cancel_fd = -1;                     // or -1
    ResultMemory* result_memory = nullptr;  // null: it shows none
    const char* expected =
        nullptr;  // the outputs, as LayOut says; null: it computes them, and only its guards are judged
    bool doubtful =
        false;  // `expected` came with another batch: the child whose outputs differ ends as kRecheckReference
  };
  // All must outlive it.
  ChildSupervisor(Progress& progress, const VisitBatch& batch, const Device& device, const Options& options);

  ChildEnd Follow(ChildProcess& child);

 private:
  ChildEnd Blamed(const VisitFailure& blame);
  ChildEnd Ended(ChildProcess& child);
  ChildEnd Forbidden(ChildProcess& child);
  VisitFailure Silence() const;
  bool Begun(const VisitMessage& message);
  std::optional<ChildEnd> Take(const VisitMessage& message, ChildProcess& child);
  std::optional<ChildEnd> Judge(const VisitMessage& message, ChildProcess& child);
  std::optional<ChildEnd> TakeTimes(const VisitMessage& message, ChildProcess& child);
  std::optional<ChildEnd> TakeDone() const;
  std::optional<VisitFailure> Look(const VisitMessage& message);
  double Clamp(double seconds) const;
  double CallAllowance() const;
  double Allowance() const;
  double Left() const;
  // In this child, for one candidate, or for none.
  struct Spent {
    double calling = 0, loading = 0;  // seconds, without the last step
    int steps = 0;
  };
  const Spent& spent() const { return spent_[static_cast<size_t>(current_ + 1)]; }

  Progress& progress_;
  const VisitBatch& batch_;
  const double load_seconds_;
  const Options options_;
  double limit_ = 30;
  double begun_;  // when the last step was begun
  // When the last candidate's turn was over, by our answer: the next one's cannot have begun before. A message says
  // less, as it may be read late.
  double turn_begun_ = 0;
  std::vector<Spent> spent_;  // for none, then by candidate
  int current_ = -1;
  bool loading_ = false;
  bool failed_one_ = false;
  VisitMessage::Type set_up_ = {};  // how far it is
  bool shown_ = false;              // it has shown the reference's outputs
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_CHILD_SUPERVISOR_H_
