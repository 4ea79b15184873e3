#include "cli/own_device.h"

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "cli/farm_devices.h"

namespace hone::cli {

absl::Status OwnDevice::Check() {
  const absl::StatusOr<v1::ListDevicesResponse> known = client_.Devices();
  if (!known.ok() || known->devices().empty()) return absl::OkStatus();  // not there yet, or the tracker is not
  const v1::Device& device = known->devices(0);
  if (device.health() != v1::DEVICE_HEALTH_QUARANTINED && device.health() != v1::DEVICE_HEALTH_UNWALLED) {
    well_ = absl::Now();
    return absl::OkStatus();
  }
  const bool failed = !device.state().self_test().passed();
  if (absl::Now() - well_ < (failed ? limits_.failed_test : limits_.quarantine)) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("{} gets no work: {}; what was measured before is kept", NameOf(device), device.health_reason()));
}

}  // namespace hone::cli
