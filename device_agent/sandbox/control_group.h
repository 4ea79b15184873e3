// SPDX-License-Identifier: Apache-2.0
// Control groups (cgroup v2): a launcher and all that it starts are in one, which limits their memory and number
// together, and which ends all of them at once, whatever they did not to be found.
//
// Only where the system has given the agent its own group to divide ("delegated"; systemd: Delegate=yes). No level of
// the sandbox asks for it (docs/decisions/0143). Source of files and rules: the kernel's cgroup-v2.rst, "Delegation"
// and "No Internal Process Constraint". Start at ControlGroups::Take.
#ifndef HONE_DEVICE_AGENT_SANDBOX_CONTROL_GROUP_H_
#define HONE_DEVICE_AGENT_SANDBOX_CONTROL_GROUP_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::agent {

// One group, without processes until somebody enters it.
class ControlGroup {
 public:
  explicit ControlGroup(std::filesystem::path folder) : folder_(std::move(folder)) {}
  ControlGroup(ControlGroup&& other) noexcept;
  ControlGroup& operator=(ControlGroup&& other) noexcept;
  // Kills all processes in it, waits until they are gone (two seconds at most), and removes it.
  ~ControlGroup();

  // For a process that is to enter: it writes "0" there. Closed on exec; the caller's. -1: cannot be opened.
  int OpenEntrance() const;
  bool HasProcesses() const;
  // What it does not limit, though asked: "memory, tasks"; empty: all is limited.
  const std::string& unlimited() const { return unlimited_; }

 private:
  friend class ControlGroups;
  void Limit(const std::string& file, const std::string& value, const std::string& what);

  std::filesystem::path folder_;  // empty: moved from
  std::string unlimited_;
};

struct GroupLimits {
  int64_t memory_bytes = 0;  // of all its processes; nothing is swapped out
  int64_t tasks = 0;         // processes and threads
};

// Those of this process.
class ControlGroups {
 public:
  // The folder of the group that this process is in. kFailedPrecondition: it is not this process's to divide, and why.
  static absl::StatusOr<std::filesystem::path> OwnFolder();

  // Divides the group in `folder`: moves this process into one below it, since a group that limits those below must
  // have no processes itself, and ends what earlier processes that are gone have left there.
  static absl::StatusOr<ControlGroups> Take(const std::filesystem::path& folder);
  ControlGroups(ControlGroups&& other) noexcept;
  ControlGroups& operator=(ControlGroups&& other) noexcept;
  // Moves this process back, where that can be; else whoever takes the group next removes what is left.
  ~ControlGroups();

  // An empty group; name: a file name, unique in this process.
  absl::StatusOr<ControlGroup> Make(const std::string& name, const GroupLimits& limits) const;

 private:
  explicit ControlGroups(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;  // empty: moved from
  std::filesystem::path own_;     // of this process
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_SANDBOX_CONTROL_GROUP_H_
