// SPDX-License-Identifier: Apache-2.0
// The messages from a child to the launcher: packets on a socket, each one VisitMessage.
//
// A kernel may corrupt the child at any moment, so the launcher checks every field. Messages sent before a crash stay
// readable after it. Both ends are the same program, so the layout is private.
#ifndef HONE_DEVICE_AGENT_VISIT_MESSAGE_H_
#define HONE_DEVICE_AGENT_VISIT_MESSAGE_H_

#include <cstdint>
#include <type_traits>

namespace hone::agent {

inline constexpr int kRepeatsMax = 64;  // in one message

struct VisitMessage {
  enum class Type : int32_t {
    kConfined = 1,   // the first message; carries the listener of the system call filter, if there is one
    kStarted,        // the device is started; the child waits for its task
    kReady,          // setup is over; from now on kernels run
    kBegin,          // begins a step of `candidate` (-1: none); no message within `limit_seconds` means that it hangs
    kFailed,         // `candidate` failed with `failure_kind` and `text`; candidate -1: the batch cannot be measured
    kFault,          // sent by a signal handler; the child exits after it
    kResultsStored,  // the result memory holds what `candidate` (-1: the reference) has computed; an answer is awaited
    // Repeats of `candidate`, which are added; interleaved ones replace its earlier interleaved ones. With the first
    // kTimes of a candidate the result memory holds the guard zones of its buffers, and an answer is awaited.
    kTimes,
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
  int32_t interleaved;  // 1: taken in the final, interleaved rounds
  int32_t count;
  double seconds[kRepeatsMax];
  char text[192];  // kFailed: the message; kFault: name of the buffer
};
static_assert(std::is_trivially_copyable_v<VisitMessage>);

// The answer of the launcher to kResultsStored and to the first kTimes of a candidate, as one packet.
enum class VisitAnswer : int32_t {
  kGood = 1,  // nothing wrong was found
  kFailed,    // the candidate failed; the child may continue with the next one
  kMustExit,  // the candidate failed and may have damaged the child, which must end
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_MESSAGE_H_
