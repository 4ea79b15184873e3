// SPDX-License-Identifier: Apache-2.0
// The reports of runs on devices, as text and JSON: what `bench`, `profile` and `run` print with --device.
//
// Pure. Not here: the run (device_run.h), and jobs in general (job_text.h).
#ifndef HONE_CLI_DEVICE_REPORTS_H_
#define HONE_CLI_DEVICE_REPORTS_H_

#include <string>
#include <vector>

#include "hone/v1/job.pb.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

// A document with the runs in order: for each the job and what the API says of a run (docs/API.md).
nlohmann::ordered_json RunsToJson(const std::vector<v1::Job>& jobs);

// A line for each package and device, with what sensors say. Kernels, where they were measured, follow as a table,
// slowest first; minutes as another.
std::string RunsToText(const std::vector<v1::Job>& jobs);

}  // namespace hone::cli

#endif  // HONE_CLI_DEVICE_REPORTS_H_
