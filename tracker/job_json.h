// SPDX-License-Identifier: Apache-2.0
// Parts of a job as JSON that commands and the HTTP API print alike. Pure. Not here: the whole documents, which differ
// (cli/job_text.h, tracker/http/json.h).
#ifndef HONE_TRACKER_JOB_JSON_H_
#define HONE_TRACKER_JOB_JSON_H_

#include <nlohmann/json.hpp>
#include <optional>

#include "hone/v1/job.pb.h"

namespace hone::tracker {

inline constexpr double kMillisecondsPerSecond = 1e3;
// The value, or null where it is not known.
inline nlohmann::ordered_json ValueOrNull(bool known, double value) {
  return known ? nlohmann::ordered_json(value) : nullptr;
}
// How the job spent its time, and how many candidates reached each stage.
nlohmann::ordered_json SpentToJson(const v1::TimeSpent& spent);
// The state of the notice of `hone submit --notify`; null for a job without one.
nlohmann::ordered_json NoticeToJson(const v1::Job& job);
// The least seconds that one run of the package can take on the device, by its roofline: the sum over all calls.
// Nullopt: the work of the package or the roofline of the device is not known.
std::optional<double> RooflineSeconds(const v1::PackageReport& package, const v1::RunReport& report);
// A run of packages: what was asked for, and the report once there is one. Null for a job that tunes.
nlohmann::ordered_json RunToJson(const v1::Job& job);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_JOB_JSON_H_
