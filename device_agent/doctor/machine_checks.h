// SPDX-License-Identifier: Apache-2.0
// What of this machine spoils timings, or weakens the wall around kernels: one function for each thing, over the
// kernel's files, so that tests can show every machine. For people who set up a board (`doctor`); the agent itself
// measures whatever the machine is like, and the golden kernel (golden.h) notices what changes. Start at CheckMachine.
#ifndef HONE_DEVICE_AGENT_DOCTOR_MACHINE_CHECKS_H_
#define HONE_DEVICE_AGENT_DOCTOR_MACHINE_CHECKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "device_agent/doctor/finding.h"

namespace hone::agent {

// root: the folder under which /proc, /sys and /run are found, ending in a slash.
Finding CheckGovernor(const std::string& root);    // of the clock of the CPUs
Finding CheckTurbo(const std::string& root);       // clocks above what cooling lasts for
Finding CheckThrottling(const std::string& root);  // now, and on a Raspberry Pi since it started
Finding CheckSmt(const std::string& root);         // hardware threads that share a core
Finding CheckSwap(const std::string& root);
Finding CheckLoad(const std::string& root);        // others who compute now
Finding CheckStolenTime(const std::string& root);  // cores that other virtual machines use too
Finding CheckQuota(const std::string& root);       // cores that a container may use for a part of the time
// What the layers of the wall need of the system (docs/SANDBOX.md): those of processes and files, and control groups.
Finding CheckNamespaces(const std::string& root);
Finding CheckLandlock(const std::string& root);
Finding CheckSystemCallFilter(const std::string& root);
Finding CheckControlGroups(const std::string& root);
// synchronized: what the kernel says of its clock.
Finding CheckClock(bool synchronized);
// free_bytes: where results wait for the tracker.
Finding CheckDisk(const std::string& folder, int64_t free_bytes);

// All of them on this machine; folder: where the agent keeps what it has.
std::vector<Finding> CheckMachine(const std::string& folder);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DOCTOR_MACHINE_CHECKS_H_
