// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM for a command that puts things in order before it ends.
//
// While one of these lives, the two signals end nothing and are only seen: the command asks now and then. Children that
// it starts are not concerned. One at a time in a process; from the main thread.
#ifndef HONE_CLI_INTERRUPTS_H_
#define HONE_CLI_INTERRUPTS_H_

#include <signal.h>

namespace hone::cli {

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();  // what the signals did before, they do again
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Whether one has come since.
  bool Seen() const;
  // Whether the command shall end at once: after a second Ctrl-C, or SIGTERM, whose sender may not wait for long.
  bool Insists() const;

 private:
  struct sigaction old_int_ = {}, old_term_ = {};
};

}  // namespace hone::cli

#endif  // HONE_CLI_INTERRUPTS_H_
