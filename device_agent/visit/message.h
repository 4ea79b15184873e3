// SPDX-License-Identifier: Apache-2.0
// What a measuring child tells the launcher: packets on a socket, each one of these structs.
//
// The child may be broken by a kernel at any moment: the launcher believes no number here without checking it, and what
// was sent before a crash stays readable after it. Same binary on both ends, so the layout is no protocol.
#ifndef HONE_DEVICE_AGENT_VISIT_MESSAGE_H_
#define HONE_DEVICE_AGENT_VISIT_MESSAGE_H_

#include <cstdint>
#include <type_traits>

namespace hone::agent {

inline constexpr int kRepeatsMax = 64;  // in one message

struct VisitMessage {
  enum class Type : int32_t {
    kConfined = 1,  // the first; the listener for its system calls comes with it, if there is one
    kStarted,       // its device is started: it waits for its task
    kReady,         // all is set up: from now on kernels run
    kBegin,         // about to work on `candidate` (-1: on none); nothing more for `limit_seconds` means it hangs
    kFailed,        // `candidate` failed with `failure_kind` and `text`; candidate -1: the batch cannot be measured
    kFault,         // a signal, from its handler; the child exits after it
    kShown,         // the result memory holds what `candidate` (-1: the reference) has computed; an answer is awaited
    kTimes,      // these repeats are to be appended; the first time of a candidate, the result memory holds what lies
                 // around its buffers now, and an answer is awaited
    kReference,  // repeats of the reference loop
    kDone,
  };
  Type type;
  int32_t candidate;
  double limit_seconds;
  int32_t loading;       // kBegin: 1 while its code is built and found, which takes as long as the device says
  int32_t failure_kind;  // FailureKind
  // kFault
  int32_t signal;
  int32_t is_write;  // 1 yes, 0 no, -1 unknown
  int32_t place;     // Place, 0 when the address lies in none of our buffers
  int64_t distance;
  // kTimes, kReference
  int64_t calls;        // per repeat; kFault of SIGSYS: the number of the call
  int32_t interleaved;  // 1: taken in the last round, in turns
  int32_t count;
  double seconds[kRepeatsMax];
  char text[192];  // kFailed: the message; kFault: name of the buffer
};
static_assert(std::is_trivially_copyable_v<VisitMessage>);

// What the launcher answers, as one packet.
enum class VisitAnswer : int32_t {
  kGood = 1,  // so far
  kFailed,    // the candidate has, and the process may go on with the next
  kLost,      // the candidate has, and the process is of no use any more
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_MESSAGE_H_
