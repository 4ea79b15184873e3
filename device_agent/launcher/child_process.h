// SPDX-License-Identifier: Apache-2.0
// One measuring child under watch: fork it, read its packets one by one, kill it when it falls silent for longer than
// it said it would, and say in words how it ended.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_CHILD_PROCESS_H_
#define HONE_DEVICE_AGENT_LAUNCHER_CHILD_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "device_agent/visit/message.h"

namespace hone::agent {

class ChildProcess {
 public:
  enum class Event { kMessage, kSilent, kEnded, kCancelled, kForbidden };

  // Forks; `body` runs in the child with its end of the channel and must not return. The child ends when the thread
  // that calls this does. kUnavailable: no process or socket.
  static absl::StatusOr<ChildProcess> Start(const std::function<void(int channel)>& body);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();  // kills it if it lives

  // `cancel_fd` is readable (kCancelled), or else: the next packet, nothing for `seconds` (kSilent), the child is gone
  // and every packet was read (kEnded), or it stands at a system call that it may not make (kForbidden).
  Event Next(VisitMessage& message, double seconds, int cancel_fd);
  const std::string& forbidden() const { return forbidden_; }  // the name of that call
  // From now on it may make only the calls that running kernels need.
  void EndSetup() { setting_up_ = false; }
  // To a message that awaits an answer.
  void Answer(VisitAnswer answer) const;
  // What it is to work on: a packet that files come with, which stay open here. If it has ended, Next still has what it
  // said before.
  void HandOver(std::span<const char> packet, std::span<const int> files);
  double begun() const { return begun_; }  // of SecondsNow: when it was handed its work
  void Kill();
  // After kEnded or Kill: "was killed by SIGSEGV", "ended with status 3". Waits for it.
  std::string Ending();
  // After Ending, of one that nobody here has killed: the system did, as it does where memory is short.
  bool lost() const { return lost_; }

 private:
  ChildProcess(pid_t pid, int channel) : pid_(pid), channel_(channel) {}
  ssize_t Receive(VisitMessage& message);
  bool Stopped();

  pid_t pid_;
  int channel_;
  int listener_ = -1;  // system_calls.h; of the child's first packet
  bool setting_up_ = true, first_ = true, killed_ = false, lost_ = false;
  double begun_ = 0;
  std::string forbidden_;
};

std::string SignalName(int signal);  // "SIGSEGV"

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_CHILD_PROCESS_H_
