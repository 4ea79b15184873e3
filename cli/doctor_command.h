// SPDX-License-Identifier: Apache-2.0
// `hone doctor`: reports what spoils timings or security on this machine, and how to fix it
// (device_agent/doctor/doctor.h).
#ifndef HONE_CLI_DOCTOR_COMMAND_H_
#define HONE_CLI_DOCTOR_COMMAND_H_

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace hone::cli {

void AddDoctorCommand(CLI::App& app, absl::Status* result);

}  // namespace hone::cli

#endif  // HONE_CLI_DOCTOR_COMMAND_H_
