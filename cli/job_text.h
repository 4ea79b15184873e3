// SPDX-License-Identifier: Apache-2.0
// A job as people and scripts read it: one line of text for each fact, or the JSON document of the command contract.
//
// Values in, text out. What is shown while a job runs is job_view.h's.
#ifndef HONE_CLI_JOB_TEXT_H_
#define HONE_CLI_JOB_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "hone/v1/job.pb.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

std::string StateName(v1::JobState state);  // "running"
bool HasEnded(v1::JobState state);
// What the job is, in few words: "net.onnx for arm64 -mcpu=cortex-a72 on rpi4".
std::string TitleOf(const v1::JobSpec& spec);
std::string TitleOf(const v1::WorkloadSpec& spec);      // "conv2d 14x14x256 (3x3x256)"
std::string Clock(double seconds);                      // "1:02:03", "2:03"
std::string Latency(double seconds);                    // "1.50 ms", "12.3 us": three digits of it
std::string Failures(const v1::JobProgress& progress);  // "12% failed (3 crashed, 9 compile_error)"

// The document of `hone tune --json` (design contract): times are sums over the model's kernels.
nlohmann::ordered_json JobToJson(const v1::Job& job);
// Of all jobs of a group; of one alone, its own document.
nlohmann::ordered_json JobsToJson(const std::vector<v1::Job>& jobs);
// The same for people.
std::string JobsToText(const std::vector<v1::Job>& jobs);
// The same in one line for each, under a heading: what it waits for, or why it failed, is last.
std::string JobsTable(const std::vector<v1::Job>& jobs);
// The error of a command that watched these to their end: the first that failed, or was cancelled where the command has
// not done that itself.
absl::Status FailureAmong(const std::vector<v1::Job>& jobs, bool cancelled_here = false);

}  // namespace hone::cli

#endif  // HONE_CLI_JOB_TEXT_H_
