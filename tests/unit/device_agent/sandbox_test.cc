// What a driver must still be able to do behind the wall. What kernels must not: tests/wall.
#include "device_agent/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "device_agent/lanes/calls_of_drivers.h"
#include "gtest/gtest.h"

namespace hone::agent {
namespace {

int ExitCodeOf(pid_t pid) {
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The error of naming another thread, as NVIDIA's driver does when it starts: by its file in /proc, opened anew.
int NameAThread() {
  std::atomic<int> number = 0;
  std::atomic<bool> named = false;
  std::thread thread([&] {
    number = gettid();
    number.notify_all();
    named.wait(false);
  });
  number.wait(0);
  const std::string path = "/proc/self/task/" + std::to_string(number) + "/comm";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  const int error = file < 0 ? errno : write(file, "named", 5) == 5 ? 0 : EIO;
  close(file);
  named = true;
  named.notify_all();
  thread.join();
  return error;
}

TEST(Sandbox, DriversNameTheirThreads) {
  SandboxPolicy policy;
  policy.readable = {"/proc/cpuinfo"};
  policy.calls = kCallsOfDrivers;
  policy.own_address_space = true;
  policy.names_threads = true;
  policy.open_files = 256;
  const pid_t launcher = fork();
  if (launcher == 0) {
    ConfineLauncher(policy);
    const pid_t child = fork();
    if (child == 0) _exit(ConfineChild(policy, {}).ok() ? NameAThread() : 255);
    _exit(ExitCodeOf(child));
  }
  EXPECT_EQ(ExitCodeOf(launcher), 0);
}

}  // namespace
}  // namespace hone::agent
