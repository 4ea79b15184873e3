// SPDX-License-Identifier: Apache-2.0
// A process that writes until it is killed (SIGKILL) at a given moment.
#ifndef HONE_TESTS_ANOMALY_RECORDS_KILLED_WRITER_H_
#define HONE_TESTS_ANOMALY_RECORDS_KILLED_WRITER_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "base/status.h"

namespace hone {

// write_for_ever: runs in the child and never returns. It sends a Report through the pipe for everything that is on the
// disk. life: time until the kill, from the child's start or from its first Report. On a slow machine kStart kills
// while the child opens its files; kFirstReport kills between writes there too. told: called in this process for each
// Report, also after the kill. The test fails if the child ends on its own.
enum class LifeFrom { kStart, kFirstReport };

template <typename Report>
void KillWriter(const std::function<void(int pipe)>& write_for_ever, LifeFrom from, std::chrono::microseconds life,
                const std::function<void(const Report&)>& told) {
  int ends[2];
  HONE_CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  HONE_CHECK(child >= 0);
  if (child == 0) {
    close(ends[0]);
    write_for_ever(ends[1]);
    _exit(1);
  }
  close(ends[1]);
  Report report;
  const auto hear = [&] { return read(ends[0], &report, sizeof report) == sizeof report; };
  if (from == LifeFrom::kFirstReport && hear()) told(report);
  std::thread killer([&] {
    std::this_thread::sleep_for(life);
    HONE_CHECK(kill(child, SIGKILL) == 0);
  });
  while (hear()) told(report);
  killer.join();
  int status = 0;
  HONE_CHECK(waitpid(child, &status, 0) == child);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself with " << WEXITSTATUS(status);
  close(ends[0]);
}

}  // namespace hone

#endif  // HONE_TESTS_ANOMALY_RECORDS_KILLED_WRITER_H_
