// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupts.h"

#include <atomic>

#include "absl/time/clock.h"

namespace hone::cli {
namespace {

// 0: no signal; 1: one Ctrl-C has arrived; 2: the command must end at once. It is global because a signal handler can
// set only a global variable.
std::atomic<int> urgency = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler must not wait for a lock");

constexpr absl::Duration kPollPeriod = absl::Milliseconds(50);

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

StopOnInterrupt::StopOnInterrupt(const Interrupts& interrupts)
    : poller_([this, &interrupts](const std::stop_token& end) {
        while (!end.stop_requested() && !interrupts.WasInterrupted()) absl::SleepFor(kPollPeriod);
        if (interrupts.WasInterrupted()) stop_.request_stop();
      }) {}

}  // namespace hone::cli
