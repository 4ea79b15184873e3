// SPDX-License-Identifier: Apache-2.0
// The CPU time and the memory that the control groups (cgroups, version 1 or 2) of this process allow it, read from the
// kernel's files. Needs only the C++ library, because the runtime that ships with a model includes it.
#ifndef HONE_BASE_CONTROL_GROUPS_H_
#define HONE_BASE_CONTROL_GROUPS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hone {

// The folders of the control groups of this process: its own group and all groups above, in version 2 and in the
// version 1 hierarchy of `controller`. The topmost folder is always included, because a container may see its own group
// there whatever the path says. Groups that an agent made for its children (device_agent/sandbox/control_group.h) are
// left out, because they only divide what the agent may use. root: the folder that contains proc and sys, with a slash
// at its end.
std::vector<std::filesystem::path> ControlGroupFolders(const std::string& controller, const std::string& root = "/");

// The CPU quota of one group, in CPUs: 1.5 is the full time of one and a half CPUs. Infinite if the group sets no
// limit.
double GroupCpuQuota(const std::filesystem::path& group);
// The CPU quota of this process: the smallest quota of its groups, in CPUs. Infinite if no group sets a limit.
double ProcessCpuQuota(const std::string& root = "/");

// The bytes of memory that this process may use: those of the machine, or the smallest limit of its groups.
int64_t UsableMemory(const std::string& root = "/");

}  // namespace hone

#endif  // HONE_BASE_CONTROL_GROUPS_H_
