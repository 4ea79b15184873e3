// SPDX-License-Identifier: Apache-2.0
// `hone-agent doctor` and `hone doctor`: says what spoils timings or security on this machine, and what mends it.
// What is looked at: machine_checks.h, driver_checks.h, identity_checks.h.
#ifndef HONE_DEVICE_AGENT_DOCTOR_DOCTOR_H_
#define HONE_DEVICE_AGENT_DOCTOR_DOCTOR_H_

#include <filesystem>
#include <string>
#include <vector>

#include "device_agent/doctor/finding.h"

namespace hone::agent {

struct DoctorOptions {
  std::filesystem::path identity;  // folder
  std::string tracker;             // HOST:PORT; empty: the one that was joined
  bool renews_itself = false;      // whose certificate it is: an agent's
};

std::vector<Finding> Examine(const DoctorOptions& options);

bool AllFine(const std::vector<Finding>& findings);  // notes are fine
std::string FindingsAsText(const std::vector<Finding>& findings);
std::string FindingsAsJson(const std::vector<Finding>& findings);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DOCTOR_DOCTOR_H_
