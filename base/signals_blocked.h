// SPDX-License-Identifier: Apache-2.0
// Keeps a process's signals away from the threads that a library or a pool starts. Not for waiting for signals. Start
// with SignalsBlocked.
#ifndef HONE_BASE_SIGNALS_BLOCKED_H_
#define HONE_BASE_SIGNALS_BLOCKED_H_

#ifdef __linux__
#include <signal.h>
#endif

namespace hone {

// Blocks signals from construction to destruction, so that threads started in between inherit the blocked mask. Signals
// that are sent to the process then reach the program's own threads, which may wait for them. Signals for faults of a
// thread itself, and SIGPROF of profilers, stay unblocked. On systems other than Linux it does nothing.
class SignalsBlocked {
#ifdef __linux__
 public:
  SignalsBlocked() {
    sigset_t signals;
    sigfillset(&signals);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
      sigdelset(&signals, own);
    }
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
#endif
};

}  // namespace hone

#endif  // HONE_BASE_SIGNALS_BLOCKED_H_
