// SPDX-License-Identifier: Apache-2.0
// Names of protocol enum values in metrics and JSON: "queued", "measuring", "wrong_output".
#ifndef HONE_TRACKER_HTTP_NAMES_H_
#define HONE_TRACKER_HTTP_NAMES_H_

#include <string>
#include <string_view>

#include "hone/v1/admin.pb.h"
#include "hone/v1/job.pb.h"

namespace hone::tracker {

inline constexpr std::string_view kWaitingHealth = "waiting";

std::string StateName(v1::JobState state);
std::string ActivityName(v1::DeviceActivity activity);
std::string HealthName(v1::DeviceHealth health);
// The same, or kWaitingHealth while the device only waits for its turn to test itself.
std::string HealthName(const v1::Device& device);
std::string OutcomeName(v1::FailureKind kind);  // "timed" for FAILURE_KIND_UNSPECIFIED

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_NAMES_H_
