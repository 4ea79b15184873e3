// SPDX-License-Identifier: Apache-2.0
// Checks of this machine for `doctor`: what disturbs timings, and what weakens the sandbox around kernels. Each
// function reads files of the operating system below a root, so that tests can present any machine. The agent itself
// measures on any machine; the golden kernel (agent/golden.h) notices changes. Start at CheckMachine.
#ifndef HONE_DEVICE_AGENT_DOCTOR_MACHINE_CHECKS_H_
#define HONE_DEVICE_AGENT_DOCTOR_MACHINE_CHECKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "device_agent/doctor/finding.h"

namespace hone::agent {

// root: the folder that holds /proc, /sys and /run; ends in a slash.
Finding CheckGovernor(const std::string& root);    // the frequency governor of the CPUs
Finding CheckTurbo(const std::string& root);       // clock rates that cooling cannot sustain
Finding CheckThrottling(const std::string& root);  // at present, and on a Raspberry Pi since its boot
Finding CheckSmt(const std::string& root);         // hardware threads that share a core
Finding CheckSwap(const std::string& root);
Finding CheckLoad(const std::string& root);        // other processes that compute now
Finding CheckStolenTime(const std::string& root);  // cores shared with other virtual machines
Finding CheckQuota(const std::string& root);       // cores that a container may use only part of the time
// What the layers of the sandbox (docs/SANDBOX.md) need from the system.
Finding CheckNamespaces(const std::string& root);
Finding CheckLandlock(const std::string& root);
Finding CheckSystemCallFilter(const std::string& root);
Finding CheckControlGroups(const std::string& root);
// synchronized: whether the kernel reports that its clock is synchronized.
Finding CheckClock(bool synchronized);
// free_bytes: of the file system of `folder`, where results wait for the tracker.
Finding CheckDisk(const std::string& folder, int64_t free_bytes);

// All of them on this machine. folder: the agent's folder for its state.
std::vector<Finding> CheckMachine(const std::string& folder);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DOCTOR_MACHINE_CHECKS_H_
