// SPDX-License-Identifier: Apache-2.0
#include "device_agent/sandbox/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "base/resource_limit.h"
#include "base/status.h"
#include "device_agent/sandbox/file_system.h"

namespace hone::agent {
namespace {

// The first number of own users, above the ranges of systems, containers and administrators. Each agent has one user.
constexpr uid_t kFirstOwnUser = 0x7000'0000;
constexpr uid_t kNobody = 65534;
constexpr uint64_t kUserTasksMax = 4096;  // threads and processes of the own user

std::string ErrnoText() { return strerror(errno); }

// Opens the writable folders. Each must belong to root, as the agent made it, or to `own` or the user nobody, to which
// an earlier launcher gave it. The path alone proves nothing, because a kernel of that user may have put a link there.
absl::StatusOr<std::vector<int>> OpenWritable(const SandboxPolicy& policy, uid_t own) {
  std::vector<int> folders;
  const auto refused = [](const std::string& path, const std::string& why) {
    return absl::FailedPreconditionError(
        fmt::format("{} is not the folder that the agent made for its driver ({}); find out what replaced it, then "
                    "restart the agent",
                    path, why));
  };
  for (const std::string& path : policy.writable) {
    folders.push_back(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat about{};
    if (folders.back() < 0 || fstat(folders.back(), &about) != 0) return refused(path, ErrnoText());
    if (about.st_uid != 0 && about.st_uid != own && about.st_uid != kNobody) {
      return refused(path, fmt::format("it belongs to user {}", about.st_uid));
    }
  }
  return folders;
}

// The groups that own the device's nodes, such as `render` and `video`. Never root's group.
std::vector<gid_t> GroupsOf(const std::vector<std::string>& nodes) {
  namespace fs = std::filesystem;
  std::set<gid_t> groups;
  const auto add = [&](const fs::path& path) {
    struct stat about{};
    if (stat(path.c_str(), &about) == 0 && S_ISCHR(about.st_mode) && about.st_gid != 0) groups.insert(about.st_gid);
  };
  for (const std::string& node : nodes) {
    add(node);
    std::error_code error;
    for (fs::directory_iterator entry(node, error), end; !error && entry != end; entry.increment(error)) {
      add(entry->path());
    }
  }
  return {groups.begin(), groups.end()};
}

bool SwitchUser(uid_t user, const std::vector<gid_t>& groups, const std::vector<int>& folders) {
  for (const int folder : folders) {
    if (fchown(folder, user, user) != 0) return false;
  }
  // A container may not know all groups.
  const bool grouped = setgroups(groups.size(), groups.data()) == 0 || setgroups(0, nullptr) == 0;
  return grouped && setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0;
}

// Makes a launcher of root an own user. `agent` is the agent's process, whose launchers share a user. In a container
// with few users it becomes the user nobody.
absl::StatusOr<SandboxLayer> LeaveRoot(const SandboxPolicy& policy, pid_t agent) {
  const auto own = kFirstOwnUser + static_cast<uid_t>(agent);
  HONE_ASSIGN_OR_RETURN(const std::vector<int> folders, OpenWritable(policy, own));
  const std::vector<gid_t> groups = GroupsOf(policy.nodes);
  const bool left = SwitchUser(own, groups, folders) || SwitchUser(kNobody, groups, folders);
  SandboxLayer layer{Layer::kOwnUser, left, left ? fmt::format("user {}", getuid()) : ErrnoText()};
  for (const int folder : folders) close(folder);
  return layer;
}

void WriteText(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = write(fd, text.data(), text.size());
  close(fd);
}

bool EnterUserNamespace() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER) != 0) return false;
  WriteText("/proc/self/setgroups", "deny");
  WriteText("/proc/self/uid_map", fmt::format("{} {} 1", kNobody, user));
  WriteText("/proc/self/gid_map", fmt::format("{} {} 1", kNobody, group));
  return true;
}

void DropCapabilities() {
  for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; ++capability) {
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  syscall(SYS_capset, &header, none.data());
}

bool HasCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> held{};
  if (syscall(SYS_capget, &header, held.data()) != 0) return true;
  for (const auto& half : held) {
    if ((half.effective | half.permitted) != 0) return true;
  }
  return false;
}

// The work of the old process. It closes all files, so that the agent notices the launcher's end at once.
[[noreturn]] void AwaitEnd(pid_t pid, int alive) {
  CloseFiles(0, alive);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) _exit(128 + WTERMSIG(status));
  _exit(WEXITSTATUS(status));
}

// Enters a process namespace. Returns, in the new process, a pipe that closes when the old process ends, because the
// old one is invisible from the namespace. -1: no namespace; this is still the old process.
int EnterProcesses(SandboxLayer& layer) {
  const pid_t agent = getppid();
  std::array<int, 2> alive{};
  if (unshare(CLONE_NEWPID) != 0 || pipe2(alive.data(), O_CLOEXEC) != 0) {
    layer.detail = ErrnoText();
    return -1;
  }
  const pid_t pid = fork();
  if (pid < 0) {
    layer.detail = ErrnoText();
    return -1;
  }
  if (pid > 0) {
    EndWithParent(agent);  // again: a new user namespace has cleared it
    AwaitEnd(pid, alive[1]);
  }
  close(alive[1]);
  layer.holds = true;
  return alive[0];
}

// Whether the new process of EnterProcesses could mount its own /proc.
bool MayHaveOwnProc() {
  const pid_t pid = fork();
  if (pid == 0) {
    if (unshare(CLONE_NEWPID) != 0) _exit(1);
    const pid_t first = fork();
    if (first == 0) _exit(MountOwnProc().ok() ? 0 : 1);
    int status = 1;
    waitpid(first, &status, 0);
    _exit(status == 0 ? 0 : 1);
  }
  int status = 1;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return pid > 0 && status == 0;
}

SandboxLayer Enter(Layer layer, int flag) {
  const bool entered = unshare(flag) == 0;
  return {layer, entered, entered ? "" : ErrnoText()};
}

}  // namespace

void EndWithParent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent) _exit(1);  // it died before the line above
}

void CloseFiles(int first, int kept) {
  const bool before = kept == first || syscall(SYS_close_range, first, kept - 1, 0) == 0;
  if (before && syscall(SYS_close_range, kept + 1, ~0U, 0) == 0) return;
  // For Linux before 5.9, and containers that forbid the call. /proc/self/fd may be hidden by the sandbox.
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  for (int file = first; static_cast<rlim_t>(file) < files.rlim_cur; ++file) {
    if (file != kept) close(file);
  }
}

absl::Status EnterNamespaces(const SandboxPolicy& policy, std::vector<SandboxLayer>& layers) {
  const bool root = geteuid() == 0;
  const pid_t agent = getppid();
  SandboxLayer user{Layer::kOwnUser, false,
                    "the launcher keeps the agent's user; only an agent of root can change to another"};
  SandboxLayer network = Enter(Layer::kNetwork, CLONE_NEWNET);
  const bool unaided = network.holds;
  bool own_tasks = root;
  if (!unaided) {
    if (root) {
      HONE_ASSIGN_OR_RETURN(user, LeaveRoot(policy, agent));
    }
    own_tasks |= EnterUserNamespace();
    network = Enter(Layer::kNetwork, CLONE_NEWNET);
  }
  const SandboxLayer ipc = Enter(Layer::kIpc, CLONE_NEWIPC);
  SandboxLayer files{Layer::kFiles, false, "the driver's compiler runs programs that read many files of the system"};
  if (policy.calls.empty()) files = Enter(Layer::kFiles, CLONE_NEWNS);
  SandboxLayer processes{Layer::kProcesses, false, ""};
  int alive = -1;
  if (!policy.writes_thread_names || MayHaveOwnProc()) {
    alive = EnterProcesses(processes);
  } else {
    processes.detail = "the driver writes into /proc, and the system allows no separate /proc";
  }
  if (policy.writes_thread_names && processes.holds) MountOwnProc().IgnoreError();
  if (files.holds) {
    if (const absl::Status entered = MountPolicyRoot(policy); !entered.ok()) {
      files = {Layer::kFiles, false, std::string(entered.message())};
    }
  }
  if (root && unaided) {
    HONE_ASSIGN_OR_RETURN(user, LeaveRoot(policy, agent));
  }
  DropCapabilities();
  const bool bare = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && !HasCapabilities();
  if (own_tasks) LimitResource(RLIMIT_NPROC, kUserTasksMax);
  if (alive >= 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    pollfd gone{alive, POLLIN, 0};
    if (poll(&gone, 1, 0) != 0) _exit(1);
  } else {
    EndWithParent(agent);
  }
  const SandboxLayer privileges{Layer::kNoPrivileges, bare, bare ? "" : "some capabilities could not be dropped"};
  layers.insert(layers.end(), {privileges, user, processes, network, ipc, files});
  return absl::OkStatus();
}

}  // namespace hone::agent
