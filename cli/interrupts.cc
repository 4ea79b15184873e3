#include "cli/interrupts.h"

namespace hone::cli {
namespace {

// Set by the signal handler: nothing else can be, there.
volatile sig_atomic_t seen = 0;

}  // namespace

Interrupts::Interrupts() {
  seen = 0;
  struct sigaction action = {};
  action.sa_handler = [](int) { seen = 1; };
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

Interrupts::~Interrupts() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

bool Interrupts::Seen() const { return seen != 0; }

}  // namespace hone::cli
