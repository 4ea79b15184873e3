// SPDX-License-Identifier: Apache-2.0
// Converts the task of a run to the tasks of children, and what children found to the protocol's report. A child counts
// as part of the packages that it runs, so every value is checked.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_PACKAGE_CONVERT_H_
#define HONE_DEVICE_AGENT_LAUNCHER_PACKAGE_CONVERT_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device_agent/visit/package_task.h"
#include "hone/v1/measure.pb.h"
#include "hone/v1/run.pb.h"

namespace hone::agent {

// The task with the names of all packages and the fields that all children share. kInvalidArgument: a fault that the
// tracker does not check. files: how many came with the batch.
absl::StatusOr<PackageTask> ToPackageTask(const v1::Batch& batch, size_t files);

// Whether the findings can be true of a child that had the task and took `seconds` by the launcher's clock.
// kInternal: what is wrong.
absl::Status CheckFindings(const PackageFindings& findings, const PackageTask& task, double seconds);

// Adds the findings of the first run of a package, or of its measurement, to its report. Texts are cleaned.
void AddFirstRun(const PackageRun& run, v1::PackageReport& report);
void AddMeasurement(const PackageRun& run, const PackageTask& task, v1::PackageReport& report);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_PACKAGE_CONVERT_H_
