// SPDX-License-Identifier: Apache-2.0
// Whether a board says that it slows its CPUs down, for heat or for want of power.
//
// Only what a board states outright: times tell the rest (golden.h). What is asked: the firmware of a Raspberry Pi;
// what Linux does to cool processors down (cooling devices, on Jetson and other boards of Arm); the counters of the
// thermal interrupts of x86. Not the frequency: it also falls where nothing is wrong. Start at Throttling::Seen.
#ifndef HONE_DEVICE_AGENT_DEVICES_CPU_THROTTLING_H_
#define HONE_DEVICE_AGENT_DEVICES_CPU_THROTTLING_H_

#include <cstdint>
#include <string>

namespace hone::agent {

// Not thread-safe.
class Throttling {
 public:
  // root: the folder under which /sys is found, so that tests can show other boards.
  explicit Throttling(std::string root = "/");

  // It slows down now, or, where only a counter tells, has done so since the last call (the first: since the
  // constructor). False where it does not say.
  bool Seen();

 private:
  std::string root_;
  int64_t counted_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_CPU_THROTTLING_H_
