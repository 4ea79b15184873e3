// SPDX-License-Identifier: Apache-2.0
// The self-test of devices with lanes, as far as it is the same for all drivers.
#ifndef HONE_DEVICE_AGENT_DEVICES_LANES_SELF_TEST_H_
#define HONE_DEVICE_AGENT_DEVICES_LANES_SELF_TEST_H_

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "device_agent/devices/device_facts.h"
#include "device_agent/devices/lanes/reference_kernel.h"
#include "drivers/lane_roofline.h"

namespace hone::agent {

// The number of processes that compile kernels in parallel: one for each CPU, because a driver's compiler holds one
// lock for a whole process.
inline int HostBuilderProcessesMax() {
  constexpr long kProcessesMax = 16;  // each has a context of its own, of a few hundred megabytes
  return static_cast<int>(std::clamp<long>(sysconf(_SC_NPROCESSORS_ONLN), 1, kProcessesMax));
}

// A name as one word: "RTX-4090".
inline std::string Word(std::string_view text) {
  std::string word(text.substr(0, text.find_last_not_of(' ') + 1));
  std::replace(word.begin(), word.end(), ' ', '-');
  return word.empty() ? "unknown" : word;
}

// The time limit for each of the two parts of the test. A part takes milliseconds, or seconds if a driver compiles; a
// part that hangs fails the test. The agent sends nothing during the test. Its leases end after 15 s of silence.
inline constexpr std::chrono::seconds kTestPartMax{14};

// Times the reference kernel, measures its noise, and checks its result.
template <typename Driver>
absl::Status TestReference(const typename Driver::Device& device, const std::string& folder, drivers::Deadline deadline,
                           SelfTestResult& test) {
  constexpr int kLoops = 15;
  HONE_ASSIGN_OR_RETURN(const ReferenceKernel<Driver> reference,
                        ReferenceKernel<Driver>::Create(device, folder, deadline));
  std::vector<double> seconds;
  for (int i = 0; i < kLoops; ++i) {
    HONE_ASSIGN_OR_RETURN(seconds.emplace_back(), reference.Time());
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[kLoops / 2];
  test.reference_seconds = median;
  test.noise = (seconds[kLoops * 3 / 4] - seconds[kLoops / 4]) / median;
  HONE_ASSIGN_OR_RETURN(const bool right, reference.IsRight());
  if (!right) return absl::InternalError("the reference kernel computes a wrong result: the device is broken");
  return absl::OkStatus();
}

// Whether the device may be healthy although its peak could not be measured: other processes may hold its memory, or
// its compiler may reject the kernels.
inline bool CanBeHealthy(drivers::ErrorKind kind) {
  return kind == drivers::ErrorKind::kMemory || kind == drivers::ErrorKind::kProgram ||
         kind == drivers::ErrorKind::kAbsent;
}

// TestReference, then the peak and the bandwidth, which stay 0 if they cannot be measured.
template <typename Driver>
absl::Status TestLanes(const typename Driver::Device& device, const std::string& folder, SelfTestResult& test,
                       std::chrono::milliseconds part_max = kTestPartMax) {
  const auto deadline = [&] { return std::chrono::steady_clock::now() + part_max; };
  HONE_RETURN_IF_ERROR(TestReference<Driver>(device, folder, deadline(), test));
  drivers::LaneRoofline lanes;
  const drivers::Error measured = drivers::MeasureRoofline<Driver>(device, folder, &lanes, deadline());
  if (!measured.ok()) return CanBeHealthy(measured.kind) ? absl::OkStatus() : ToStatus(measured);
  test.roofline = RooflineWithCache(lanes.flops_per_second, lanes.cache_bytes, lanes.cache_bytes_per_second,
                                    lanes.memory_bytes_per_second);
  return absl::OkStatus();
}

// The whole self-test. `device` may be the error of opening the device.
template <typename Driver>
SelfTestResult SelfTestOf(const absl::StatusOr<typename Driver::Device>& device, const std::string& folder) {
  SelfTestResult test;
  const absl::Status status = device.ok() ? TestLanes<Driver>(*device, folder, test) : device.status();
  test.passed = status.ok();
  test.busy = absl::IsFailedPrecondition(status);
  test.reason = std::string(status.message());
  return test;
}

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_LANES_SELF_TEST_H_
