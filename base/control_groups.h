// SPDX-License-Identifier: Apache-2.0
// What the control groups of this process, of either version, leave it of the machine, as the kernel's files tell.
// Nothing but the C++ library, since the runtime that ships with a model takes it too.
#ifndef HONE_BASE_CONTROL_GROUPS_H_
#define HONE_BASE_CONTROL_GROUPS_H_

#include <filesystem>
#include <string>
#include <vector>

namespace hone {

// Folders of the control groups that this process is in, its own and those above: of version 2, and of those of version
// 1 the one with this controller. A container may see its own group as the topmost one, whatever the path says. A group
// that an agent has made for a part of itself (device_agent/sandbox/control_group.h) does not count: it is made of what
// the agent may use. root: the folder under which /proc and /sys are found.
std::vector<std::filesystem::path> ControlGroupsOf(const std::string& controller, const std::string& root = "/");

// Of how many CPUs the folder of one group allows the whole time; infinite where that is not limited.
double GroupCpus(const std::filesystem::path& group);
// Of how many CPUs this process may use the whole time, as far as its groups limit it.
double HostCpus(const std::string& root = "/");

}  // namespace hone

#endif  // HONE_BASE_CONTROL_GROUPS_H_
