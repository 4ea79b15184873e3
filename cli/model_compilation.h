// SPDX-License-Identifier: Apache-2.0
// What all commands that compile a model share: its targets with their recorded schedules, the progress, and what is
// said of kernels without records.
//
// Not here: the compilation (deploy/package/compile_model.h), the options of `hone compile` (compile_command.cc), and
// packages that a command makes only to run them (model_packages.h).
#ifndef HONE_CLI_MODEL_COMPILATION_H_
#define HONE_CLI_MODEL_COMPILATION_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/farm_devices.h"
#include "cli/model_options.h"
#include "cli/progress_line.h"
#include "cli/schedule_lookup.h"
#include "deploy/package/compile_model.h"
#include "records/source.h"

namespace hone::cli {

// A target for each place, with the records of `source` for it; records of the same device are preferred.
std::vector<package::KernelOptions> RecordedTargets(const std::vector<DevicePlace>& places,
                                                    const std::shared_ptr<const records::Source>& source,
                                                    OtherTargets others);
// The targets that the options say, with their records. source: null = default schedules. Usage errors as
// ModelOptions::TargetLists and PlacementOn.
absl::StatusOr<std::vector<package::KernelOptions>> RecordedTargets(
    const ModelOptions& model, const std::shared_ptr<const records::Source>& source, OtherTargets others);

// Has `line` show how many kernels of each target are compiled. `line` must outlive the compilation.
void ShowKernels(ProgressLine& line, std::vector<package::KernelOptions>& targets);

// The sums of kernels and records_used over all programs.
package::ProgramSummary Sum(std::span<const package::ProgramSummary> programs);
// The targets of the programs that use no record for some kernel, for messages.
std::string TargetsWithoutRecords(std::span<const package::ProgramSummary> programs);
// Prints a warning if there are kernels and none of them uses a record. advice: what helps, for the end of the text.
void WarnIfUntuned(const std::string& model, std::span<const package::ProgramSummary> programs,
                   std::string_view advice);

}  // namespace hone::cli

#endif  // HONE_CLI_MODEL_COMPILATION_H_
