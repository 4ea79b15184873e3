// SPDX-License-Identifier: Apache-2.0
#include "device_agent/visit/child_channel.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <span>

#include "device_agent/visit/pass_files.h"

namespace hone::agent {
namespace {

constexpr int kExitAfterFault = 70;
constexpr size_t kFaultStack = 64 * 1024;

// A signal handler is given nothing but the signal: what it needs is found here. Set once per child, before any kernel.
struct FaultContext {
  const RegionTable* regions = nullptr;
  const Voice* voice = nullptr;
};
FaultContext fault_context;

int IsWrite([[maybe_unused]] const void* context) {
#ifdef __x86_64__
  constexpr greg_t kWriteAccess = 2;
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWriteAccess) != 0;
#else
  return -1;
#endif
}

void OnFault(int signal, siginfo_t* details, void* context) {
  VisitMessage message{};
  message.type = VisitMessage::Type::kFault;
  message.candidate = fault_context.voice->candidate();
  message.signal = signal;
  if (signal == SIGSEGV || signal == SIGBUS) {
    message.is_write = IsWrite(context);
    if (const auto hit = fault_context.regions->Locate(details->si_addr)) {
      message.place = static_cast<int32_t>(hit->place);
      message.distance = hit->distance;
      memcpy(message.text, hit->region->name, sizeof(hit->region->name));
    }
  }
  if (signal == SIGSYS) message.calls = details->si_syscall;
  fault_context.voice->Send(message);
  _exit(kExitAfterFault);
}

}  // namespace

void Voice::Send(const VisitMessage& message) const { send(channel_, &message, sizeof(message), MSG_NOSIGNAL); }

void Voice::Begin(int candidate, double limit_seconds, bool loading) {
  candidate_ = candidate;
  VisitMessage message{};
  message.type = VisitMessage::Type::kBegin;
  message.candidate = candidate;
  message.limit_seconds = limit_seconds;
  message.loading = loading;
  Send(message);
}

void Voice::Failed(int candidate, const VisitFailure& failure) {
  VisitMessage message{};
  message.type = VisitMessage::Type::kFailed;
  message.candidate = candidate;
  message.failure_kind = static_cast<int32_t>(failure.kind);
  failure.text.copy(message.text, sizeof(message.text) - 1);
  Send(message);
}

void Voice::BatchFailed(const std::string& text) { Failed(-1, {FailureKind::kCrashed, text}); }

void Voice::Confined(int listener) const {
  VisitMessage message{};
  message.type = VisitMessage::Type::kConfined;
  if (listener < 0) return Send(message);
  SendWithFiles(channel_, std::as_bytes(std::span(&message, 1)), std::span(&listener, 1));
  close(listener);
}

void Voice::Say(VisitMessage::Type type) const {
  VisitMessage message{};
  message.type = type;
  Send(message);
}

void Voice::Shown(int candidate) const {
  VisitMessage message{};
  message.type = VisitMessage::Type::kShown;
  message.candidate = candidate;
  Send(message);
}

VisitAnswer Voice::Answer() const {
  int32_t answer = 0;
  ssize_t size = 0;
  while ((size = recv(channel_, &answer, sizeof(answer), 0)) < 0 && errno == EINTR) {
  }
  if (size != sizeof(answer)) _exit(1);
  return static_cast<VisitAnswer>(answer);
}

void Voice::Times(int candidate, int64_t calls, bool interleaved, const std::vector<double>& seconds) {
  VisitMessage message{};
  message.type = VisitMessage::Type::kTimes;
  message.candidate = candidate;
  message.calls = calls;
  message.interleaved = interleaved;
  message.count = static_cast<int32_t>(std::min<size_t>(seconds.size(), kMaxRepeats));
  std::copy_n(seconds.begin(), message.count, message.seconds);
  Send(message);
}

void Voice::Reference(double seconds) {
  VisitMessage message{};
  message.type = VisitMessage::Type::kReference;
  message.count = 1;
  message.seconds[0] = seconds;
  Send(message);
}

void TellFaults(const Voice& voice, const RegionTable& regions) {
  fault_context = {&regions, &voice};
  stack_t stack{};
  stack.ss_sp = ::operator new(kFaultStack);  // lives as long as the process
  stack.ss_size = kFaultStack;
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS}) {
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace hone::agent
