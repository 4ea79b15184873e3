// SPDX-License-Identifier: Apache-2.0
// A child process, seen from the launcher: forks it, reads its messages one by one, decides about its system calls,
// kills it, and says how it ended. ChildSupervisor (child_supervisor.h) judges the messages.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_CHILD_PROCESS_H_
#define HONE_DEVICE_AGENT_LAUNCHER_CHILD_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "device_agent/sandbox/system_calls.h"
#include "device_agent/visit/message.h"

namespace hone::agent {

class ChildProcess {
 public:
  enum class Event { kMessage, kSilent, kEnded, kCancelled, kForbidden };

  // Forks. `body` runs in the child with its end of the channel and must not return. The system kills the child when
  // the calling thread ends. kUnavailable: no process or no socket.
  // setup: the calls that it may make until EndSetup.
  static absl::StatusOr<ChildProcess> Start(const std::function<void(int channel)>& body,
                                            SetupCalls setup = SetupCalls::kKernels);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();  // kills the child and waits for its end

  // Waits for the next event. kCancelled: `cancel_fd` (or -1) is readable, which goes first. kMessage: `message` was
  // received. kSilent: nothing came for `seconds`. kEnded: the child is gone and all its messages were read.
  // kForbidden: it is stopped at a system call that it may not make.
  Event Next(VisitMessage& message, double seconds, int cancel_fd);
  const std::string& forbidden() const { return forbidden_; }  // the name of that call
  // Ends the setup phase: the child may then make only the system calls that running kernels need.
  void EndSetup() { setting_up_ = false; }
  // Answers a kResultsStored message or the first kTimes message of a candidate.
  void Answer(VisitAnswer answer) const;
  // Sends the task packet with `files`, which stay open in this process. If the child has ended, Next still returns the
  // messages that it sent before.
  void SendTask(std::span<const char> packet, std::span<const int> files);
  double begun() const { return begun_; }  // SecondsNow at SendTask; 0 before
  void Kill();
  // Call it after kEnded or Kill. Waits for the child's end and describes it: "was killed by SIGSEGV", "ended with
  // status 3".
  std::string AwaitEnd();
  // Valid after AwaitEnd: whether the system killed the child, as it does when memory is short, and not the launcher.
  bool killed_by_system() const { return lost_; }

 private:
  ChildProcess(pid_t pid, int channel, SetupCalls setup) : pid_(pid), channel_(channel), setup_(setup) {}
  ssize_t Receive(VisitMessage& message);
  bool Stopped();

  pid_t pid_;
  int channel_;
  int listener_ = -1;  // of the system call filter (system_calls.h); came with the first message; -1: none
  SetupCalls setup_;
  bool setting_up_ = true, first_ = true, killed_ = false, lost_ = false;
  double begun_ = 0;
  std::string forbidden_;
};

std::string SignalName(int signal);  // "SIGSEGV"

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_CHILD_PROCESS_H_
