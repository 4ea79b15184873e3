// SPDX-License-Identifier: Apache-2.0
// A child process that compiles. If it crashes, hangs or runs out of memory, this process goes on.
//
// The child gets a short environment (base/short_environment.h), because what it compiles comes from other users. The
// system kills it when the thread that started it ends. Used by one thread. Start with Start.
#ifndef HONE_TUNER_CHILD_PROCESS_H_
#define HONE_TUNER_CHILD_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::tuner {

class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> command;  // the path of a program, and its arguments
    int descriptor = -1;               // stays open in the child; -1: none does, but the standard ones
    uint64_t memory_max = 0;           // bytes of memory that it may use; 0: no limit
  };
  // kUnavailable: no process could be made. A program that cannot be run ends at once, with status 127.
  static absl::StatusOr<ChildProcess> Start(const Options& options);

  ChildProcess() = default;  // no process
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~ChildProcess() { Kill(); }

  bool started() const { return pid_ >= 0; }
  // Whether the process has ended. It is not reaped, so that its pid is not reused yet.
  bool Ended() const;
  // Kills the process and the programs that it runs, if it is alive, and reaps it. Returns its wait status; 0 if there
  // is no process.
  int Kill();

 private:
  pid_t pid_ = -1;
};

// "was killed by signal 9 (Killed)", or "ended with status 1".
std::string DescribeEnd(int wait_status);

}  // namespace hone::tuner

#endif  // HONE_TUNER_CHILD_PROCESS_H_
