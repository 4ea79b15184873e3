// SPDX-License-Identifier: Apache-2.0
// Which devices with lanes the drivers of this machine find, for `doctor`: whoever sets up a GPU asks that first.
#ifndef HONE_DEVICE_AGENT_DOCTOR_DRIVER_CHECKS_H_
#define HONE_DEVICE_AGENT_DOCTOR_DRIVER_CHECKS_H_

#include <vector>

#include "device_agent/doctor/finding.h"

namespace hone::agent {

// The files: as dlopen takes them. A note where there is no device, with the driver's reason.
Finding CheckCuda(const char* file);
Finding CheckOpenCl(const char* file);

// All of them, by the names under which drivers are installed.
std::vector<Finding> CheckDrivers();

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DOCTOR_DRIVER_CHECKS_H_
