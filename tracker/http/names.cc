#include "tracker/http/names.h"

#include <string_view>

namespace hone::tracker {
namespace {

// "JOB_STATE_QUEUED" without "JOB_STATE_", in lower case.
std::string Short(std::string_view name, std::string_view prefix) {
  if (name.substr(0, prefix.size()) == prefix) name.remove_prefix(prefix.size());
  std::string text;
  for (const char c : name) text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

}  // namespace

std::string StateName(v1::JobState state) { return Short(v1::JobState_Name(state), "JOB_STATE_"); }
std::string ActivityName(v1::DeviceActivity activity) {
  return Short(v1::DeviceActivity_Name(activity), "DEVICE_ACTIVITY_");
}
std::string HealthName(v1::DeviceHealth health) { return Short(v1::DeviceHealth_Name(health), "DEVICE_HEALTH_"); }
std::string OutcomeName(v1::FailureKind kind) {
  return kind == v1::FAILURE_KIND_UNSPECIFIED ? "timed" : Short(v1::FailureKind_Name(kind), "FAILURE_KIND_");
}

}  // namespace hone::tracker
