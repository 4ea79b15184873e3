// SPDX-License-Identifier: Apache-2.0
#include "device_agent/sandbox/control_group.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

#include "base/temporary_folder.h"

namespace hone::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string Read(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// A process that has left its parent's session and group, and forked; all of them hold the write end of the pipe.
class Stray {
 public:
  explicit Stray(int entrance) {
    EXPECT_EQ(pipe(pipe_.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      if (write(entrance, "0", 1) != 1) _exit(1);
      setsid();
      fork();
      signal(SIGTERM, SIG_IGN);
      [[maybe_unused]] const ssize_t told = write(pipe_[1], "r", 1);
      for (;;) pause();
    }
    close(pipe_[1]);
    char ready = 0;
    for (int i = 0; i < 2; ++i) EXPECT_EQ(read(pipe_[0], &ready, 1), 1);
  }
  ~Stray() {
    kill(-pid_, SIGKILL);  // it leads its session
    waitpid(pid_, nullptr, 0);
    close(pipe_[0]);
  }
  // Whether all of them are, within ten seconds.
  bool Gone() {
    pollfd end{pipe_[0], POLLIN, 0};
    return poll(&end, 1, 10'000) == 1 && (end.revents & POLLHUP) != 0;
  }

 private:
  std::array<int, 2> pipe_{};
  pid_t pid_ = -1;
};

// A folder with the files of a group, where this machine delegates none: what is written where.
TEST(ControlGroupFiles, LimitsAreWritten) {
  const TemporaryFolder folder = *TemporaryFolder::Create();
  const fs::path top = folder.path();
  const auto groups = ControlGroups::TakeOver(top);
  ASSERT_TRUE(groups.ok()) << groups.status();
  const fs::path own = top / ("hone-" + std::to_string(getpid()) + "-agent");
  EXPECT_EQ(Read(own / "cgroup.procs"), "0") << "a group with limits below must be empty";
  EXPECT_THAT(Read(top / "cgroup.subtree_control"), HasSubstr("+pids"));
  const auto group = groups->Make("cpu", {.memory_bytes = 1 << 30, .tasks = 100});
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->failed_limits(), "");
  const fs::path made = top / ("hone-" + std::to_string(getpid()) + "-cpu");
  EXPECT_EQ(Read(made / "memory.max"), "1073741824");
  EXPECT_EQ(Read(made / "memory.swap.max"), "0");
  EXPECT_EQ(Read(made / "pids.max"), "100");
}

// As by a launcher whose first process could not be started.
TEST(ControlGroupFiles, RecreatedGroupIsNotRemoved) {
  const TemporaryFolder folder = *TemporaryFolder::Create();
  const fs::path top = folder.path();
  const auto groups = ControlGroups::TakeOver(top);
  ASSERT_TRUE(groups.ok()) << groups.status();
  const fs::path made = top / ("hone-" + std::to_string(getpid()) + "-cpu");
  auto group = groups->Make("cpu", {});
  ASSERT_TRUE(group.ok()) << group.status();
  group = groups->Make("cpu", {});
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_TRUE(fs::exists(made));
  group = absl::CancelledError("over");
  EXPECT_FALSE(fs::exists(made));
}

TEST(ControlGroupFiles, UnwritableLimitIsReported) {
  EXPECT_FALSE(ControlGroups::TakeOver("/proc/sys/kernel").ok());
  EXPECT_FALSE(ControlGroups::TakeOver("/no/such/folder").ok());
}

class ControlGroupTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<fs::path> folder = ControlGroups::OwnFolder();
    if (!folder.ok()) GTEST_SKIP() << folder.status().message();
    folder_ = *folder;
  }
  fs::path folder_;
};

TEST_F(ControlGroupTest, DestructorKillsAllProcessesOfTheGroup) {
  absl::StatusOr<ControlGroups> groups = ControlGroups::TakeOver(folder_);
  ASSERT_TRUE(groups.ok()) << groups.status();
  auto group = groups->Make("stray", {});
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_FALSE(group->HasProcesses());
  const int entrance = group->OpenProcsFile();
  ASSERT_GE(entrance, 0);
  Stray stray(entrance);
  close(entrance);
  EXPECT_TRUE(group->HasProcesses());
  group = absl::CancelledError("over");
  EXPECT_TRUE(stray.Gone());
  EXPECT_FALSE(fs::exists(folder_ / ("hone-" + std::to_string(getpid()) + "-stray")));
  groups = absl::CancelledError("over");
  EXPECT_FALSE(fs::exists(folder_ / ("hone-" + std::to_string(getpid()) + "-agent")));
}

TEST_F(ControlGroupTest, TakeOverKillsOnlyGroupsOfDeadAgents) {
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  waitpid(dead, nullptr, 0);
  const fs::path left = folder_ / ("hone-" + std::to_string(dead) + "-cpu"),
                 others = folder_ / ("hone-" + std::to_string(getppid()) + "-cpu");
  fs::create_directory(left);
  fs::create_directory(others);
  const int fd = open((left / "cgroup.procs").c_str(), O_WRONLY);
  Stray stray(fd);
  close(fd);
  const auto groups = ControlGroups::TakeOver(folder_);
  EXPECT_TRUE(groups.ok()) << groups.status();
  EXPECT_TRUE(stray.Gone());
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(others)) << "its process lives";
  fs::remove(others);
}

}  // namespace
}  // namespace hone::agent
