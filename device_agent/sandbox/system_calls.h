// SPDX-License-Identifier: Apache-2.0
// Which calls of the system a child may make: an allow-list, each with its reason. Any other ends the child, and its
// name is known to the launcher.
//
// A filter (seccomp) lets the calls through that running kernels need. What is not in it stops, and whoever holds the
// listener is asked: a call that only setting up needs goes on until setting up is over; the rest is the end. So what
// happens after is not in the hands of the code that made the call. Where the system has no listener to give, or one
// that lets no call go on, a forbidden call raises SIGSYS instead, and a second filter ends setting up. Not here: what
// files and processes a call that is allowed can reach (namespaces.h, landlock.h).
#ifndef HONE_DEVICE_AGENT_SANDBOX_SYSTEM_CALLS_H_
#define HONE_DEVICE_AGENT_SANDBOX_SYSTEM_CALLS_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::agent {

// One call that is allowed, if `argument & mask == value` for each condition with a mask.
struct SystemCall {
  struct Condition {
    enum class Value { kGiven, kOwnProcess, kChannel };
    unsigned argument = 0;
    uint64_t mask = 0;  // 0: no condition
    uint64_t value = 0;
    Value what = Value::kGiven;
  };
  const char* name;
  const char* reason;
  Condition first = {}, second = {};
  int refused_with = 0;  // not 0: it fails with this error, and the child lives on
};

// What stops a call that is not allowed.
enum class CallFilter {
  kNone,      // nothing: the system takes no filter
  kSignal,    // SIGSYS
  kListener,  // whoever has the listener decides; where the system gives none, as kSignal
};

// For this process and all it starts, from now on. channel: the only socket it may speak on. driver: what the device's
// driver calls beyond what setting up needs, at any time; if empty, setting up has an end. Returns the listener, which
// is to be sent to the launcher, or -1 where a forbidden call raises SIGSYS. kUnavailable: no filter at all.
absl::StatusOr<int> AllowSystemCalls(CallFilter filter, std::span<const SystemCall> driver, int channel);

// Setting up is over, for all threads: what only it needs is forbidden from now on. Where there is a listener, whoever
// has it sees to that.
absl::Status EndSetup(std::span<const SystemCall> driver, int channel, int listener);

// What a listener has to say.
struct StoppedCall {
  uint64_t id = 0;
  std::string name;        // "ptrace"
  bool for_setup = false;  // setting up needs it
};
// kUnavailable: nobody stands there any more.
absl::StatusOr<StoppedCall> ReceiveStoppedCall(int listener);
// False where the system's listeners cannot do that (before Linux 5.5): the caller stands there for ever.
bool LetContinue(int listener, const StoppedCall& call);

std::string NameOfCall(int number);  // "call 999" where it has none here

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_SANDBOX_SYSTEM_CALLS_H_
