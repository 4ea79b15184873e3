// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/tracker_options.h"
#include "device_agent/doctor/doctor.h"
#include "pki/identity_folder.h"

namespace hone::cli {
namespace {

struct DoctorCommandOptions {
  TrackerOptions tracker;
  bool json = false;
};

absl::Status Doctor(const DoctorCommandOptions& options) {
  agent::DoctorOptions doctor{options.tracker.identity, options.tracker.address, false};
  if (doctor.identity.empty()) {
    HONE_ASSIGN_OR_RETURN(doctor.identity, pki::DefaultFolder(Role::kClient));
  }
  const std::vector<agent::Finding> findings = agent::Examine(doctor);
  HONE_RETURN_IF_ERROR(PrintText(options.json ? FindingsAsJson(findings) : FindingsAsText(findings)));
  if (IsAllFine(findings)) return absl::OkStatus();
  return absl::FailedPreconditionError("at least one check is bad; the line 'fix' below the check says what to do");
}

}  // namespace

void AddDoctorCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<DoctorCommandOptions>();
  CLI::App* command =
      app.add_subcommand("doctor", "find what harms timings or security on this machine, and how to fix it");
  options->tracker.AddTo(command, TrackerOptions::Need::kOptional);
  command->add_flag("--json", options->json, "print one JSON document and nothing else");
  command->callback([options, result] { *result = Doctor(*options); });
}

}  // namespace hone::cli
