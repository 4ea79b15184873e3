// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/names.h"

#include "tracker/enum_name.h"

namespace hone::tracker {

std::string StateName(v1::JobState state) { return EnumName(v1::JobState_Name(state), "JOB_STATE_", state); }
std::string ActivityName(v1::DeviceActivity activity) {
  return EnumName(v1::DeviceActivity_Name(activity), "DEVICE_ACTIVITY_", activity);
}
std::string HealthName(v1::DeviceHealth health) {
  return EnumName(v1::DeviceHealth_Name(health), "DEVICE_HEALTH_", health);
}
std::string HealthName(const v1::Device& device) {
  const bool waits = device.health() == v1::DEVICE_HEALTH_QUARANTINED && device.state().self_test().pending();
  return waits ? std::string(kWaitingHealth) : HealthName(device.health());
}
std::string OutcomeName(v1::FailureKind kind) {
  return kind == v1::FAILURE_KIND_UNSPECIFIED ? "timed" : EnumName(v1::FailureKind_Name(kind), "FAILURE_KIND_", kind);
}

}  // namespace hone::tracker
