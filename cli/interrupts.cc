// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupts.h"

namespace hone::cli {
namespace {

// 1: Ctrl-C has come; 2: the command shall end at once. Set by the signal handler: nothing else can be, there.
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

bool Interrupts::Seen() const { return urgency > 0; }

bool Interrupts::Insists() const { return urgency > 1; }

}  // namespace hone::cli
