// SPDX-License-Identifier: Apache-2.0
// The memory of an agent that waits for work. It must be small because a board runs other programs beside it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/farm/process_farm.h"

namespace hone::farm {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif

std::vector<pid_t> WithDescendants(pid_t pid) {
  std::vector<pid_t> all = {pid};
  for (size_t i = 0; i < all.size(); ++i) {
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", all[i]), error)) {
      std::ifstream children(task.path() / "children");
      for (pid_t child; children >> child;) all.push_back(child);
    }
  }
  return all;
}

int64_t Kilobytes(pid_t pid, const std::string& name) {
  std::ifstream file(fmt::format("/proc/{}/smaps_rollup", pid));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1));
  }
  ADD_FAILURE() << "no " << name << " of process " << pid;
  return 0;
}

// Sums the agent's own memory and what its launchers, which run the same program, add. The bound is a fifth above the
// figure in docs/guides/raspberry-pi.md because libraries differ between systems.
TEST_F(FarmProcessTest, AnIdleAgentTakesLittleMemory) {
  if (kInstrumented) GTEST_SKIP() << "a sanitizer has memory of its own";
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  ASSERT_TRUE(Eventually([&] { return !Devices().empty(); })) << agent->Log();
  const std::vector<pid_t> processes = WithDescendants(agent->pid());
  EXPECT_GE(processes.size(), 2u) << "its launcher";
  int64_t kilobytes = 0;
  for (const pid_t pid : processes) kilobytes += Kilobytes(pid, pid == agent->pid() ? "Rss" : "Anonymous");
  printf("%zu processes, %.1f MB\n", processes.size(), static_cast<double>(kilobytes) / 1e3);
  EXPECT_LT(kilobytes, 24'000);
}

}  // namespace
}  // namespace hone::farm
