// SPDX-License-Identifier: Apache-2.0
// `hone-agent doctor` and `hone doctor`: report what disturbs timings or weakens security on this machine, and how to
// fix it. The checks are in machine_checks.h, driver_checks.h and identity_checks.h.
#ifndef HONE_DEVICE_AGENT_DOCTOR_DOCTOR_H_
#define HONE_DEVICE_AGENT_DOCTOR_DOCTOR_H_

#include <filesystem>
#include <string>
#include <vector>

#include "device_agent/doctor/finding.h"

namespace hone::agent {

struct DoctorOptions {
  std::filesystem::path identity;   // folder of the identity
  std::string tracker;              // HOST:PORT; empty: the tracker that was joined
  bool renews_certificate = false;  // whether the program renews its certificate, as an agent does
};

// Makes all checks. Without an identity in the folder, the finding is a note, and the tracker is not asked. A tracker
// that does not answer takes some seconds.
std::vector<Finding> Examine(const DoctorOptions& options);

bool IsAllFine(const std::vector<Finding>& findings);  // no kBad; notes are fine
std::string FindingsAsText(const std::vector<Finding>& findings);
std::string FindingsAsJson(const std::vector<Finding>& findings);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DOCTOR_DOCTOR_H_
