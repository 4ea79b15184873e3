// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as a stop of calls that block, such as the transfer of a file.
#include "cli/interrupts.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace hone::cli {
namespace {

TEST(Interrupts, CtrlCRequestsAStop) {
  const Interrupts interrupts;
  const StopOnInterrupt stop(interrupts);
  EXPECT_FALSE(stop.token().stop_requested());
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any stopped;
  raise(SIGINT);
  stopped.wait(lock, stop.token(), [] { return false; });  // for ever without the stop
  EXPECT_TRUE(interrupts.WasInterrupted());
  EXPECT_FALSE(interrupts.MustEndAtOnce());
}

TEST(Interrupts, ACommandWithoutCtrlCEndsWithoutAStop) {
  const Interrupts interrupts;
  std::stop_token token;
  {
    const StopOnInterrupt stop(interrupts);
    token = stop.token();
  }
  EXPECT_FALSE(token.stop_requested());
}

}  // namespace
}  // namespace hone::cli
