// SPDX-License-Identifier: Apache-2.0
#include "cli/local_device_monitor.h"

#include <fmt/format.h>

#include "cli/farm_devices.h"
#include "tracker/queue/matches.h"

namespace hone::cli {

void LocalDeviceMonitor::UpdateJob(const v1::Job& job) {
  const std::string& wanted = job.waiting_for();
  const bool absent = wanted.starts_with(tracker::kNoDevicePrefix);
  wanted_ = absent ? wanted : "";
  if (!absent) last_no_other_device_ = SteadyNow();
}

absl::Status LocalDeviceMonitor::Check() {
  const absl::StatusOr<v1::ListDevicesResponse> known = client_.Devices();
  return CheckAnswer(known.ok() ? *known : v1::ListDevicesResponse(), SteadyNow());
}

absl::Status LocalDeviceMonitor::CheckAnswer(const v1::ListDevicesResponse& known, absl::Time now) {
  if (known.devices()
          .empty()) {  // the device or the tracker has not started yet, or the tracker did not answer: no limit runs
    last_working_ = last_no_other_device_ = now;
    return absl::OkStatus();
  }
  const v1::Device& device = known.devices(0);
  const bool pending = device.state().self_test().pending();  // it begins when another program of this machine ends
  if (pending || (device.health() != v1::DEVICE_HEALTH_QUARANTINED && device.health() != v1::DEVICE_HEALTH_UNWALLED)) {
    last_working_ = now;
    if (wanted_.empty() || device.health() != v1::DEVICE_HEALTH_GOOD) last_no_other_device_ = now;
    if (last_working_ - last_no_other_device_ < limits_.failed_test) return absl::OkStatus();
    return absl::FailedPreconditionError(
        fmt::format("{} cannot run the tuned kernels, which need {}; give a --target of this machine, or the --tracker "
                    "of a farm that has such a device",
                    NameOf(device), wanted_));
  }
  const bool failed = !device.state().self_test().passed();
  if (now - last_working_ < (failed ? limits_.failed_test : limits_.quarantine)) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("{} gets no work: {}; earlier results are kept", NameOf(device), device.health_reason()));
}

}  // namespace hone::cli
