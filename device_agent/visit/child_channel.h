// SPDX-License-Identifier: Apache-2.0
// A child's end of its channel to the launcher: sends the messages of visit/message.h and receives the answers.
#ifndef HONE_DEVICE_AGENT_VISIT_CHILD_CHANNEL_H_
#define HONE_DEVICE_AGENT_VISIT_CHILD_CHANNEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "device_agent/visit/batch.h"
#include "device_agent/visit/message.h"

namespace hone::agent {

inline constexpr double kSlackSeconds = 0.3;  // added to the limits of calls that the policy gives

// Send neither allocates nor locks, because signal handlers use it.
class ChildChannel {
 public:
  explicit ChildChannel(int channel) : channel_(channel) {}
  // Announce that the candidate (-1: none) is loaded or called. If no message follows within `limit_seconds`, it hangs.
  void BeginLoading(int candidate, double limit_seconds) { Begin(candidate, limit_seconds, true); }
  void BeginCalling(int candidate, double limit_seconds) { Begin(candidate, limit_seconds, false); }
  void SendFailure(int candidate, const VisitFailure& failure);
  void SendBatchFailure(const std::string& text);
  // seconds: of one call, per repeat of `calls` calls; those beyond kRepeatsMax are not sent.
  void SendTimes(int candidate, int64_t calls, bool interleaved, const std::vector<double>& seconds);
  // Sends `listener` of the system call filter (or -1: none) to the launcher and closes it here.
  void SendConfined(int listener) const;
  void SendStarted() const { SendType(VisitMessage::Type::kStarted); }
  void SendReady() const { SendType(VisitMessage::Type::kReady); }
  void SendResultsStored(int candidate) const;
  // Waits for the answer to SendResultsStored or to the first SendTimes of a candidate. Ends the process if the
  // launcher is gone.
  VisitAnswer ReceiveAnswer() const;
  void SendReferenceSeconds(double seconds);
  void SendDone() const { SendType(VisitMessage::Type::kDone); }
  void Send(const VisitMessage& message) const;
  int candidate() const { return candidate_; }

 private:
  void Begin(int candidate, double limit_seconds, bool loading);
  void SendType(VisitMessage::Type type) const;

  int channel_;
  int candidate_ = -1;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_CHILD_CHANNEL_H_
