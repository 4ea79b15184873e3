// SPDX-License-Identifier: Apache-2.0
// For drivers of devices with lanes: their errors as absl::Status, and a fixed kernel that shows when the device itself
// becomes slower.
#ifndef HONE_DEVICE_AGENT_DEVICES_LANES_REFERENCE_KERNEL_H_
#define HONE_DEVICE_AGENT_DEVICES_LANES_REFERENCE_KERNEL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "drivers/lane_drivers.h"

namespace hone::agent {

// kUnavailable: no such library or device here. kFailedPrecondition: another process has the device for itself.
// kInvalidArgument: the device refuses the program or the launch. kDeadlineExceeded: it did not end in time and still
// runs. kResourceExhausted: no memory. kInternal: the device or its driver failed.
absl::Status ToStatus(const drivers::Error& error);

// For calls in a visit, where the launcher kills a child that hangs.
inline constexpr drivers::Deadline kNoDeadline = drivers::Deadline::max();

// Seconds of the repeats by the device's clock if it is plausible, else by the host's clock.
template <typename Timing>
double SecondsOf(const Timing& timing) {
  double seconds = 0;
  for (const double repeat : timing.device_seconds) {
    if (!(repeat > 0)) return timing.wall_seconds;
    seconds += repeat;
  }
  return seconds > 0 && seconds <= timing.wall_seconds ? seconds : timing.wall_seconds;
}

// The fixed kernel, in the language of each driver. After kDeadlineExceeded it runs until the process ends.
template <typename Driver>
class ReferenceKernel {
 public:
  // deadline: when all its runs must have ended.
  static absl::StatusOr<ReferenceKernel> Create(const typename Driver::Device& device, const std::string& folder,
                                                drivers::Deadline deadline);
  absl::StatusOr<double> Time() const;  // seconds; the fastest of 3 runs
  // Whether it computes the right result; false means a broken device.
  absl::StatusOr<bool> IsRight() const;

 private:
  absl::Status Run() const;
  absl::Status Ended(const drivers::Error& error) const;
  typename Driver::Launch ToLaunch() const;

  drivers::Deadline deadline_;
  typename Driver::Device device_;
  typename Driver::Program program_;
  typename Driver::Kernel kernel_;
  typename Driver::Buffer output_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_LANES_REFERENCE_KERNEL_H_
