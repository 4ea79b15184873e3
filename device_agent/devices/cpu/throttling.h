// SPDX-License-Identifier: Apache-2.0
// Whether a board reports that it throttles its CPUs, because of heat or lack of power.
//
// Sources: the firmware of a Raspberry Pi; Linux's cooling devices (Jetson and other Arm boards); the counters of
// thermal interrupts of x86. The frequency is no source, because it also falls for harmless reasons. The golden kernel
// (agent/golden.h) finds slowness that no source reports. Start at Throttling::IsThrottling.
#ifndef HONE_DEVICE_AGENT_DEVICES_CPU_THROTTLING_H_
#define HONE_DEVICE_AGENT_DEVICES_CPU_THROTTLING_H_

#include <cstdint>
#include <string>

namespace hone::agent {

// Not thread-safe.
class Throttling {
 public:
  // root: the folder that holds /sys, so that tests can present other boards.
  explicit Throttling(std::string root = "/");

  // Whether the board throttles now. If only a counter tells: since the last call, or at first since the constructor.
  // False if the board has none of the sources.
  bool IsThrottling();

 private:
  std::string root_;
  int64_t counted_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_CPU_THROTTLING_H_
