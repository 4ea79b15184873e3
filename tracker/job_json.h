// SPDX-License-Identifier: Apache-2.0
// Parts of a job as JSON that commands and the HTTP API print alike. Pure. Not here: the whole documents, which differ
// (cli/job_text.h, tracker/http/json.h).
#ifndef HONE_TRACKER_JOB_JSON_H_
#define HONE_TRACKER_JOB_JSON_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "hone/v1/job.pb.h"

namespace hone::tracker {

inline constexpr double kMillisecondsPerSecond = 1e3;
// The models that the job is about: the names of its model's file or of its packages, without ".onnx" or ".hone", each
// once. So a package belongs to the model whose file has its name.
std::vector<std::string> ModelsOf(const v1::JobSpec& spec);
// The value, or null where it is not known.
inline nlohmann::ordered_json ValueOrNull(bool known, double value) {
  return known ? nlohmann::ordered_json(value) : nullptr;
}
nlohmann::ordered_json TimeToJson(absl::Time time);  // "2026-11-23T07:00:00.000Z"
nlohmann::ordered_json FileToJson(const v1::FileName& file);
nlohmann::ordered_json EnvironmentToJson(const v1::RunEnvironment& environment);
// The time until the running job reaches its first limit, at its present speed. nullopt: it does not run, has no limit,
// or its clock stands still because it waits.
std::optional<absl::Duration> TimeLeft(const v1::Job& job, absl::Time now);
// How the job spent its time, and how many candidates reached each stage.
nlohmann::ordered_json SpentToJson(const v1::TimeSpent& spent);
// The state of the notice of `hone submit --notify`; null for a job without one.
nlohmann::ordered_json NoticeToJson(const v1::Job& job);
// The least seconds that one run of the package can take on the device, by its roofline: the sum over all calls.
// Nullopt: the work of the package or the roofline of the device is not known.
std::optional<double> RooflineSeconds(const v1::PackageReport& package, const v1::RunReport& report);
// A run of packages: what was asked for, and the report once there is one. Null for a job that tunes.
nlohmann::ordered_json RunToJson(const v1::Job& job);

// Whether the ratio of the sums of kernel times contradicts that of the whole model: it is outside of the interval and
// differs from the measured ratio by more than 5%.
bool KernelsDisagree(const v1::ModelConfirmation& confirmation);
// The run of the whole model at the end of a tuning job; null while there is none.
nlohmann::ordered_json ConfirmationToJson(const v1::Job& job);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_JOB_JSON_H_
