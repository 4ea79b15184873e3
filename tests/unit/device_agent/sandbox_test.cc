// SPDX-License-Identifier: Apache-2.0
// The sandbox must leave a driver all that it needs. tests/sandbox checks what it must deny to kernels.
#include "device_agent/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/temporary_folder.h"
#include "device_agent/devices/lanes/driver_system_calls.h"
#include "device_agent/launcher/confine_launcher.h"
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

// The error of waiting for other processes, as it does too, and of finding a service that is not there.
int Listen() {
  const int waiting = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un name{AF_UNIX, {'\0', 'n', 'a', 'm', 'e'}};
  const auto* const address = reinterpret_cast<const sockaddr*>(&name);
  const socklen_t bytes = offsetof(sockaddr_un, sun_path) + 5;
  if (waiting < 0 || bind(waiting, address, bytes) != 0 || listen(waiting, 8) != 0) return errno;
  if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EACCES) return EPROTO;
  if (socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0 || errno != EACCES) return EPROTO;  // it speaks to any name
  return connect(waiting, address, bytes) != 0 && errno == ENOENT ? 0 : EISCONN;
}

constexpr char kFolderOfNodes[] = "/etc";  // in place of /dev/dri: one that every system has

// The error of listing nodes, as drivers of several cards do.
int ListNodes() {
  const int folder = open(kFolderOfNodes, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return errno;
  close(folder);
  return 0;
}

std::string node_of_a_group;  // set by the test that needs it

int UseNodeOfAGroup() {
  const int node = open(node_of_a_group.c_str(), O_RDWR | O_CLOEXEC);
  return node < 0 ? errno : 0;
}

// Runs the work in a sandboxed child of a device with a driver and returns its result.
int InAChild(int (*work)()) {
  SandboxPolicy policy;
  policy.readable = {"/proc/cpuinfo"};
  policy.nodes = {"/dev/no-such-node", kFolderOfNodes};
  if (!node_of_a_group.empty()) policy.nodes.push_back(node_of_a_group);
  policy.calls = kDriverSystemCalls;
  policy.unlimited_address_space = true;
  policy.writes_thread_names = true;
  policy.open_files = 256;
  const pid_t launcher = fork();
  if (launcher == 0) {
    if (!ConfineLauncher(policy).ok()) _exit(255);
    const pid_t child = fork();
    if (child == 0) _exit(ConfineChild(policy, {}).ok() ? work() : 255);
    _exit(ExitCodeOf(child));
  }
  return ExitCodeOf(launcher);
}

TEST(Sandbox, DriversNameTheirThreads) { EXPECT_EQ(InAChild(NameAThread), 0); }

TEST(Sandbox, DriversListTheirNodes) { EXPECT_EQ(InAChild(ListNodes), 0); }

// As /dev/kfd and /dev/dri/renderD128 have it.
TEST(Sandbox, AnAgentOfRootUsesNodesOfGroups) {
  constexpr gid_t kGroup = 54321;
  if (geteuid() != 0) GTEST_SKIP() << "an ordinary user has its own groups";
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  ASSERT_EQ(chmod(folder.path().c_str(), 0711), 0);
  const std::string node = folder / "node";
  if (mknod(node.c_str(), S_IFCHR, makedev(1, 3)) != 0 || chown(node.c_str(), 0, kGroup) != 0) {
    GTEST_SKIP() << "this container forbids making nodes";
  }
  ASSERT_EQ(chmod(node.c_str(), 0660), 0);
  node_of_a_group = node;
  const int as_root = UseNodeOfAGroup(), within = InAChild(UseNodeOfAGroup);
  node_of_a_group.clear();
  if (as_root != 0) GTEST_SKIP() << "nodes in folders for temporary files are of no use here";
  EXPECT_EQ(within, 0);
}

TEST(Sandbox, DriversMayListen) { EXPECT_EQ(InAChild(Listen), 0); }

}  // namespace
}  // namespace hone::agent
