// SPDX-License-Identifier: Apache-2.0
// Internal to compiler/target: measures the roofline of a device with lanes, for the entries of such kinds of target.
#ifndef HONE_COMPILER_TARGET_DEVICE_ROOFLINE_H_
#define HONE_COMPILER_TARGET_DEVICE_ROOFLINE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/roofline.h"
#include "compiler/target/target.h"
#include "drivers/lane_roofline.h"

namespace hone::target {

// The roofline of the device that the target names. Unavailable, with the driver's text: there is no such device, or it
// failed. Driver is a type of drivers/lane_drivers.h. threads: unused; the entries have the parameter for CPUs.
template <typename Driver>
absl::StatusOr<Roofline> RooflineOfDevice(const Target& target, int /*threads*/) {
  typename Driver::Library library;
  typename Driver::Device device;
  drivers::LaneRoofline measured;
  drivers::Error error = Driver::Library::Load(&library);
  if (error.ok()) error = library.Open(target.device, &device);
  if (error.ok()) error = drivers::MeasureRoofline<Driver>(device, {}, &measured);
  if (!error.ok()) return absl::UnavailableError(error.text);
  return RooflineWithCache(measured.flops_per_second, measured.cache_bytes, measured.cache_bytes_per_second,
                           measured.memory_bytes_per_second);
}

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_DEVICE_ROOFLINE_H_
