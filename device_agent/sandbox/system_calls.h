// SPDX-License-Identifier: Apache-2.0
// The system calls that a child may make: an allow-list with a reason for each. Any other call ends the child, and the
// launcher learns its name.
//
// A filter (seccomp) passes the calls that running kernels need. Any other call stops, and the launcher, which holds
// the filter's listener, decides: calls that only setup needs continue until setup is over; all others are the child's
// end. So the code that made the call cannot influence the decision. If the system gives no listener, or one that
// cannot let calls continue, a forbidden call raises SIGSYS and a second filter ends the setup phase. Not here: which
// files and processes an allowed call can reach (namespaces.h, landlock.h).
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
    // The value to compare with: `value`, the process's own number, or the descriptor of its channel to the launcher.
    enum class Value { kGiven, kOwnProcess, kChannel };
    unsigned argument = 0;  // index of the call's argument, from 0
    uint64_t mask = 0;      // 0: no condition
    uint64_t value = 0;
    Value what = Value::kGiven;
  };
  const char* name;
  const char* reason;
  Condition first = {}, second = {};
  int refused_with = 0;  // not 0: the call fails with this errno, and the child continues
};

// How a call that is not allowed is stopped.
enum class CallFilter {
  kNone,      // not at all: the system supports no filter
  kSignal,    // SIGSYS
  kListener,  // the holder of the listener decides; without a listener as kSignal
};

// What a child loads before its setup is over.
enum class SetupCalls {
  kKernels,   // shared objects, which others have placed in files
  kPackages,  // also the code of packages, which the runtime places in files of memory
};

// Installs the filter in this process and all processes that it starts. kSignal is also the fallback for kListener, and
// is tried for kNone too. channel: the only socket that they may use. driver: calls of the device's driver, allowed at
// any time. If there are any, the calls of setup stay allowed too, because drivers need them at any time; else they are
// allowed until the end of setup. Returns the listener, which must be sent to the launcher, or -1 if a forbidden call
// raises SIGSYS. kUnavailable: no filter is possible.
absl::StatusOr<int> AllowSystemCalls(CallFilter filter, std::span<const SystemCall> driver, int channel,
                                     SetupCalls setup = SetupCalls::kKernels);

// Ends the setup phase for all threads: the calls that only setup needs are forbidden from then on. With a listener
// this does nothing, because the launcher enforces it; with calls of a driver neither, because setup calls then stay
// allowed.
absl::Status EndSetup(std::span<const SystemCall> driver, int channel, int listener);

// A call that stopped at the filter.
struct StoppedCall {
  uint64_t id = 0;
  std::string name;        // "ptrace"
  bool for_setup = false;  // whether setup needs it
};
// kUnavailable: the stopped call has ended, or its thread.
absl::StatusOr<StoppedCall> ReceiveStoppedCall(int listener, SetupCalls setup = SetupCalls::kKernels);
// False if the system cannot let a stopped call continue (before Linux 5.5); the caller then stays stopped.
bool ContinueStoppedCall(int listener, const StoppedCall& call);

std::string SystemCallName(int number);  // "call 999" if the name is not known here

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_SANDBOX_SYSTEM_CALLS_H_
