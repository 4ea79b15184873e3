// SPDX-License-Identifier: Apache-2.0
// What devices with lanes say of themselves, and what of the test of themselves is the same for all.
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

// Processes that build kernels side by side: one for each CPU, as a driver's compiler has one lock for a whole process.
inline int CountBuilders() {
  constexpr long kMost = 16;  // each has a context of its own, of a few hundred megabytes
  return static_cast<int>(std::clamp<long>(sysconf(_SC_NPROCESSORS_ONLN), 1, kMost));
}

// A name as one word: "RTX-4090".
inline std::string Word(std::string_view text) {
  std::string word(text.substr(0, text.find_last_not_of(' ') + 1));
  std::replace(word.begin(), word.end(), ' ', '-');
  return word.empty() ? "unknown" : word;
}

// That each of its two parts may take, which takes milliseconds, and seconds where a driver compiles: what hangs ends
// the test with its part. The agent says nothing to its tracker while it tests, which takes it for lost after 15 s.
inline constexpr std::chrono::seconds kLongestOfPart{14};

// How fast and how steady the fixed kernel runs, and whether its result is right.
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

// Whether the device may be well although it could not be measured: others may have its memory, or its compiler may
// not take the kernels.
inline bool SaysNothingOfTheDevice(drivers::Trouble trouble) {
  return trouble == drivers::Trouble::kMemory || trouble == drivers::Trouble::kProgram ||
         trouble == drivers::Trouble::kAbsent;
}

// That, and what the device can do at best, which stays unknown where it cannot be measured.
template <typename Driver>
absl::Status TestLanes(const typename Driver::Device& device, const std::string& folder, SelfTestResult& test,
                       std::chrono::milliseconds longest_of_part = kLongestOfPart) {
  const auto deadline = [&] { return std::chrono::steady_clock::now() + longest_of_part; };
  HONE_RETURN_IF_ERROR(TestReference<Driver>(device, folder, deadline(), test));
  drivers::LaneRoofline roofline;
  const drivers::Error measured = drivers::MeasureRoofline<Driver>(device, folder, &roofline, deadline());
  if (!measured.ok()) return SaysNothingOfTheDevice(measured.trouble) ? absl::OkStatus() : ToStatus(measured);
  test.peak_gflops = roofline.flops_per_second * 1e-9;
  test.bandwidth_gbps = roofline.memory_bytes_per_second * 1e-9;
  return absl::OkStatus();
}

// All of it, on a device that was opened or could not be.
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
