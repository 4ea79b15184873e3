// SPDX-License-Identifier: Apache-2.0
// The text and the JSON of a job: lines of text for users, and the documented JSON document for scripts.
//
// Pure functions. The display of running jobs is in job_view.h.
#ifndef HONE_CLI_JOB_TEXT_H_
#define HONE_CLI_JOB_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "hone/v1/job.pb.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

std::string StateName(v1::JobState state);
// The latency of a package on a device as one line, with its newline.
std::string RunLine(const std::string& package, const std::string& device,
                    const v1::PackageReport& report);  // "running"
bool HasEnded(v1::JobState state);
// A short title of the job: "net.onnx for arm64 -mcpu=cortex-a72 on rpi4".
std::string TitleOf(const v1::JobSpec& spec);
std::string TitleOf(const v1::WorkloadSpec& spec);  // "conv2d 14x14x256 (3x3x256)"
// The gain of the whole model, "1.34x (1.32 to 1.36) measured on rpi4/cpu: 12.1 ms -> 9.0 ms", or why it was not
// measured.
std::string MeasuredGain(const v1::ModelConfirmation& confirmation);
std::string Clock(double seconds);                      // "1:02:03", "2:03"
std::string Failures(const v1::JobProgress& progress);  // "12% failed (3 crashed, 9 compile_error)"

// The document of `hone tune --json`. Its times are sums over the model's kernels, but for those of `confirmation`.
nlohmann::ordered_json JobToJson(const v1::Job& job);
// The document of a group of jobs. For a single job, the document of JobToJson.
nlohmann::ordered_json JobsToJson(const std::vector<v1::Job>& jobs);
// The facts of JobsToJson as lines of text.
std::string JobsToText(const std::vector<v1::Job>& jobs);
// A table with one line per job. The last column is what the job waits for, or why it failed.
std::string JobsTable(const std::vector<v1::Job>& jobs);
// The error of a command that watched the jobs to their end: that of the first job that failed, or that was cancelled
// by another command. OK if there is none. cancelled_here: this command cancelled the jobs itself.
absl::Status FirstJobFailure(const std::vector<v1::Job>& jobs, bool cancelled_here = false);

}  // namespace hone::cli

#endif  // HONE_CLI_JOB_TEXT_H_
