// SPDX-License-Identifier: Apache-2.0
#include "device_agent/sandbox/control_group.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "base/steady_time.h"

namespace hone::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "hone-";  // "hone-PID-NAME": of the process PID
constexpr absl::Duration kEndWaitMax = absl::Seconds(2);

// A file of a group must be written by a single write().
absl::Status Write(const fs::path& file, std::string_view text) {
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const bool written = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const std::string why = strerror(errno);
  if (fd >= 0) close(fd);
  if (written) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("cannot write '{}' to {}: {}", text, file.string(), why));
}

std::vector<pid_t> ProcessesIn(const fs::path& folder) {
  std::vector<pid_t> pids;
  std::ifstream file(folder / "cgroup.procs");
  for (pid_t pid; file >> pid;) pids.push_back(pid);
  return pids;
}

// Linux before 5.14 has no cgroup.kill; there processes are killed one by one until none is left.
void KillAll(const fs::path& folder) {
  if (Write(folder / "cgroup.kill", "1").ok()) return;
  for (const pid_t pid : ProcessesIn(folder)) {
    if (pid > 0) kill(pid, SIGKILL);
  }
}

void End(const fs::path& folder) {
  const absl::Time until = SteadyNow() + kEndWaitMax;
  while (!ProcessesIn(folder).empty() && SteadyNow() < until) {
    KillAll(folder);
    absl::SleepFor(absl::Milliseconds(1));
  }
  while (rmdir(folder.c_str()) != 0 && errno == EBUSY && SteadyNow() < until) absl::SleepFor(absl::Milliseconds(1));
}

// The name of a group contains its agent's process, which tells groups of killed agents from those of living ones.
void EndAbandoned(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const char* const digits = name.data() + kPrefix.size();
    pid_t pid = 0;
    const auto [end, problem] = std::from_chars(digits, name.data() + name.size(), pid);
    if (problem == std::errc() && *end == '-' && pid > 0 && kill(pid, 0) != 0 && errno == ESRCH) End(entry.path());
  }
}

// Whether systemd has marked the group as delegated.
bool IsDelegated(const fs::path& folder) {
  for (const char* name : {"user.delegate", "trusted.delegate"}) {
    char value = '0';
    if (getxattr(folder.c_str(), name, &value, 1) == 1 && value == '1') return true;
  }
  return false;
}

// The folder of the group below the mount point of the version 2 file system, or "".
fs::path FolderOf(std::string_view group) {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const std::vector<std::string> halves = absl::StrSplit(line, " - ");
    if (halves.size() != 2 || !halves[1].starts_with("cgroup2 ")) continue;
    const std::vector<std::string> fields = absl::StrSplit(halves[0], ' ');
    if (fields.size() < 5 || fields[3] != "/") continue;
    return fs::path(fields[4]) / fs::path(group).relative_path();
  }
  return {};
}

}  // namespace

ControlGroup::ControlGroup(ControlGroup&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), failed_limits_(std::move(other.failed_limits_)) {}

ControlGroup& ControlGroup::operator=(ControlGroup&& other) noexcept {
  if (folder_ == other.folder_) folder_.clear();  // made again under its name: it is the other's to end
  std::swap(folder_, other.folder_);
  std::swap(failed_limits_, other.failed_limits_);
  return *this;
}

ControlGroup::~ControlGroup() {
  if (!folder_.empty()) End(folder_);
}

int ControlGroup::OpenProcsFile() const { return open((folder_ / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC); }

bool ControlGroup::HasProcesses() const { return !ProcessesIn(folder_).empty(); }

void ControlGroup::SetLimit(const std::string& file, const std::string& value, const std::string& what) {
  if (Write(folder_ / file, value).ok()) return;
  failed_limits_ += fmt::format("{}{}", failed_limits_.empty() ? "" : ", ", what);
}

absl::StatusOr<fs::path> ControlGroups::OwnFolder() {
  std::string group;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) group = line.substr(3);
  }
  const fs::path folder = group.empty() || group.starts_with("/..") ? fs::path() : FolderOf(group);
  if (folder.empty()) return absl::FailedPreconditionError("this system does not use control groups version 2");
  // The top group belongs to root if no service manager has divided it.
  const bool own = IsDelegated(folder) || (group == "/" && geteuid() == 0);
  if (own && access((folder / "cgroup.procs").c_str(), W_OK) == 0) return folder;
  return absl::FailedPreconditionError(
      fmt::format("the agent may not create groups below the control group {} (systemd: Delegate=yes)", group));
}

absl::StatusOr<ControlGroups> ControlGroups::TakeOver(const fs::path& folder) {
  EndAbandoned(folder);
  ControlGroups groups(folder);
  HONE_ASSIGN_OR_RETURN(ControlGroup own, groups.Make("agent", {}));
  groups.own_ = std::exchange(own.folder_, {});  // not to be ended: this process is in it
  HONE_RETURN_IF_ERROR(Write(groups.own_ / "cgroup.procs", "0"));
  // Make reports controllers that are missing, or that processes in this group block.
  for (const char* controller : {"+memory", "+pids"}) (void)Write(folder / "cgroup.subtree_control", controller);
  return groups;
}

ControlGroups::ControlGroups(ControlGroups&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), own_(std::exchange(other.own_, {})) {}

ControlGroups& ControlGroups::operator=(ControlGroups&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(own_, other.own_);
  return *this;
}

ControlGroups::~ControlGroups() {
  if (own_.empty() || !Write(folder_ / "cgroup.procs", "0").ok()) return;
  rmdir(own_.c_str());
}

absl::StatusOr<ControlGroup> ControlGroups::Make(const std::string& name, const GroupLimits& limits) const {
  const fs::path folder = folder_ / fmt::format("{}{}-{}", kPrefix, getpid(), name);
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    return absl::UnavailableError(
        fmt::format("cannot make the control group {}: {}", folder.string(), strerror(errno)));
  }
  ControlGroup group(folder);
  if (limits.memory_bytes > 0) {
    group.SetLimit("memory.max", std::to_string(limits.memory_bytes), "memory");
    (void)Write(folder / "memory.swap.max", "0");  // not there on systems that do not swap
  }
  if (limits.tasks > 0) group.SetLimit("pids.max", std::to_string(limits.tasks), "tasks");
  return group;
}

}  // namespace hone::agent
