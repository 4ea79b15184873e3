// SPDX-License-Identifier: Apache-2.0
#include "device_agent/child/fault_reports.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <new>

namespace hone::agent {
namespace {

constexpr int kExitAfterFault = 70;
constexpr size_t kFaultStack = 64 * 1024;

// Global, because a signal handler receives no context. Set once per child, before any kernel runs.
struct FaultContext {
  const RegionTable* regions = nullptr;
  const ChildChannel* channel_to_launcher = nullptr;
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
  message.candidate = fault_context.channel_to_launcher->candidate();
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
  fault_context.channel_to_launcher->Send(message);
  _exit(kExitAfterFault);
}

}  // namespace

void ReportFaults(const ChildChannel& channel_to_launcher, const RegionTable& regions) {
  fault_context = {&regions, &channel_to_launcher};
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
