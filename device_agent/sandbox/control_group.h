// SPDX-License-Identifier: Apache-2.0
// Control groups (cgroup v2). A launcher and all its descendants are in one group, which limits their memory and number
// together and kills all of them at once, however they try to hide.
//
// They exist only if the system has delegated the agent's own group to it (systemd: Delegate=yes). No level of the
// sandbox requires them (docs/decisions/0143). Source of files and rules: the kernel's cgroup-v2.rst, "Delegation" and
// "No Internal Process Constraint". Start at ControlGroups::TakeOver.
#ifndef HONE_DEVICE_AGENT_SANDBOX_CONTROL_GROUP_H_
#define HONE_DEVICE_AGENT_SANDBOX_CONTROL_GROUP_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::agent {

// One group. It has no processes until one enters it through OpenProcsFile.
class ControlGroup {
 public:
  explicit ControlGroup(std::filesystem::path folder) : folder_(std::move(folder)) {}
  ControlGroup(ControlGroup&& other) noexcept;
  ControlGroup& operator=(ControlGroup&& other) noexcept;
  // Kills all processes in the group, waits at most two seconds for their end, and removes the group.
  ~ControlGroup();

  // Opens the file into which a process writes "0" to enter the group. The caller owns it; it is closed on exec. -1:
  // failed.
  int OpenProcsFile() const;
  bool HasProcesses() const;
  // The wanted limits that could not be set: "memory, tasks". Empty: all are set.
  const std::string& failed_limits() const { return failed_limits_; }

 private:
  friend class ControlGroups;
  void SetLimit(const std::string& file, const std::string& value, const std::string& what);

  std::filesystem::path folder_;  // empty: moved from
  std::string failed_limits_;
};

// 0: no limit.
struct GroupLimits {
  int64_t memory_bytes = 0;  // of all its processes together; swapping is off
  int64_t tasks = 0;         // processes and threads
};

// The control groups below the group of this process.
class ControlGroups {
 public:
  // The folder of this process's group. kFailedPrecondition: the group is not delegated to this process; the text says
  // why.
  static absl::StatusOr<std::filesystem::path> OwnFolder();

  // Prepares the group in `folder` for subgroups. Moves this process into a subgroup, because a group that limits
  // subgroups must have no processes itself. Removes groups that earlier processes left there.
  static absl::StatusOr<ControlGroups> TakeOver(const std::filesystem::path& folder);
  ControlGroups(ControlGroups&& other) noexcept;
  ControlGroups& operator=(ControlGroups&& other) noexcept;
  // Moves this process back if it can. Otherwise the next TakeOver of the group removes what is left.
  ~ControlGroups();

  // Creates an empty group. `name` is a file name, unique among the living groups of this process. An existing folder
  // of that name is used again. A limit that cannot be set is no error; ControlGroup::failed_limits names it.
  absl::StatusOr<ControlGroup> Make(const std::string& name, const GroupLimits& limits) const;

 private:
  explicit ControlGroups(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;  // empty: moved from
  std::filesystem::path own_;     // the subgroup of this process
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_SANDBOX_CONTROL_GROUP_H_
