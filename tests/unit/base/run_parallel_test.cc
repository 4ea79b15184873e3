// SPDX-License-Identifier: Apache-2.0
#include "base/run_parallel.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

namespace hone {
namespace {

TEST(RunParallelTest, WorksWithTheThreadsThatTheSystemGives) {
  const auto work_alone = [] {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, size_t{1} << 50);  // more than the address space, so no thread can start
    if (pthread_setattr_default_np(&attributes) != 0) _exit(2);
    std::array<std::atomic<int>, 20> times{};
    const absl::Status status = RunParallel(times.size(), 4, [&](size_t i) {
      ++times[i];
      return absl::OkStatus();
    });
    const bool once = std::all_of(times.begin(), times.end(), [](const auto& each) { return each == 1; });
    _exit(status.ok() && once ? 0 : 1);
  };
  EXPECT_EXIT(work_alone(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hone
