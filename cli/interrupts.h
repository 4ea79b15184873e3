// SPDX-License-Identifier: Apache-2.0
// Catches Ctrl-C (SIGINT) and SIGTERM for a command that must clean up before it ends.
//
// While an object of this class lives, the two signals are only recorded and do not end the process. The command polls
// for them. Programs that the command starts get the default handling. At most one object at a time may exist, and only
// the main thread may make and destroy it. Its questions may be asked on any thread.
#ifndef HONE_CLI_INTERRUPTS_H_
#define HONE_CLI_INTERRUPTS_H_

#include <signal.h>

#include <stop_token>
#include <thread>

namespace hone::cli {

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();  // restores the previous handling of the signals
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Whether a signal has arrived since construction.
  bool WasInterrupted() const;
  // Whether the command must end at once: after a second Ctrl-C, or after SIGTERM, whose sender may soon send SIGKILL.
  bool MustEndAtOnce() const;

 private:
  struct sigaction old_int_ = {}, old_term_ = {};
};

// A stop that is requested soon after the first signal, for calls that block for long.
class StopOnInterrupt {
 public:
  // `interrupts` must outlive this object.
  explicit StopOnInterrupt(const Interrupts& interrupts);

  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::jthread poller_;  // the last member: it ends before `stop_`
};

}  // namespace hone::cli

#endif  // HONE_CLI_INTERRUPTS_H_
