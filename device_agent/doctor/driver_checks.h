// SPDX-License-Identifier: Apache-2.0
// Which devices with lanes the drivers of this machine find, for `doctor`. It is a GPU owner's first question.
#ifndef HONE_DEVICE_AGENT_DOCTOR_DRIVER_CHECKS_H_
#define HONE_DEVICE_AGENT_DOCTOR_DRIVER_CHECKS_H_

#include <vector>

#include "device_agent/doctor/finding.h"

namespace hone::agent {

// `file` is the driver library for dlopen. Without a device the finding is a note with the driver's reason.
Finding CheckCuda(const char* file);
Finding CheckOpenCl(const char* file);

// All of them, with the names under which drivers are installed.
std::vector<Finding> CheckDrivers();

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DOCTOR_DRIVER_CHECKS_H_
