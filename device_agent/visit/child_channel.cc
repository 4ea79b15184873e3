// SPDX-License-Identifier: Apache-2.0
#include "device_agent/visit/child_channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "device_agent/visit/pass_files.h"

namespace hone::agent {

void ChildChannel::Send(const VisitMessage& message) const { send(channel_, &message, sizeof(message), MSG_NOSIGNAL); }

void ChildChannel::Begin(int candidate, double limit_seconds, bool loading) {
  candidate_ = candidate;
  VisitMessage message{};
  message.type = VisitMessage::Type::kBegin;
  message.candidate = candidate;
  message.limit_seconds = limit_seconds;
  message.loading = loading;
  Send(message);
}

void ChildChannel::SendFailure(int candidate, const VisitFailure& failure) {
  VisitMessage message{};
  message.type = VisitMessage::Type::kFailed;
  message.candidate = candidate;
  message.failure_kind = static_cast<int32_t>(failure.kind);
  failure.text.copy(message.text, sizeof(message.text) - 1);
  Send(message);
}

void ChildChannel::SendBatchFailure(const std::string& text) { SendFailure(-1, {FailureKind::kCrashed, text}); }

void ChildChannel::SendConfined(int listener) const {
  VisitMessage message{};
  message.type = VisitMessage::Type::kConfined;
  if (listener < 0) return Send(message);
  SendWithFiles(channel_, std::as_bytes(std::span(&message, 1)), std::span(&listener, 1));
  close(listener);
}

void ChildChannel::SendType(VisitMessage::Type type) const {
  VisitMessage message{};
  message.type = type;
  Send(message);
}

void ChildChannel::SendResultsStored(int candidate) const {
  VisitMessage message{};
  message.type = VisitMessage::Type::kResultsStored;
  message.candidate = candidate;
  Send(message);
}

VisitAnswer ChildChannel::ReceiveAnswer() const {
  int32_t answer = 0;
  ssize_t size = 0;
  while ((size = recv(channel_, &answer, sizeof(answer), 0)) < 0 && errno == EINTR) {
  }
  if (size != sizeof(answer)) _exit(1);
  return static_cast<VisitAnswer>(answer);
}

void ChildChannel::SendTimes(int candidate, int64_t calls, bool interleaved, const std::vector<double>& seconds) {
  VisitMessage message{};
  message.type = VisitMessage::Type::kTimes;
  message.candidate = candidate;
  message.calls = calls;
  message.interleaved = interleaved;
  message.count = static_cast<int32_t>(std::min<size_t>(seconds.size(), kRepeatsMax));
  std::copy_n(seconds.begin(), message.count, message.seconds);
  Send(message);
}

void ChildChannel::SendReferenceSeconds(double seconds) {
  VisitMessage message{};
  message.type = VisitMessage::Type::kReference;
  message.count = 1;
  message.seconds[0] = seconds;
  Send(message);
}

}  // namespace hone::agent
