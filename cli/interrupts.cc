// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupts.h"

namespace hone::cli {
namespace {

// 0: no signal; 1: one Ctrl-C has arrived; 2: the command must end at once. It is global because a signal handler can
// set only a global variable.
volatile sig_atomic_t urgency = 0;

}  // namespace

Interrupts::Interrupts() {
  urgency = 0;
  struct sigaction action = {};
  action.sa_handler = [](int signal) { urgency = signal == SIGINT && urgency == 0 ? 1 : 2; };
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

Interrupts::~Interrupts() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

bool Interrupts::WasInterrupted() const { return urgency > 0; }

bool Interrupts::MustEndAtOnce() const { return urgency > 1; }

}  // namespace hone::cli
