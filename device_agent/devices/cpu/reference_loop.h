// SPDX-License-Identifier: Apache-2.0
// A fixed piece of work, the same in every build of the agent: timed beside candidates, it shows when the device itself
// became slower or faster. Not the device's peak: that is base/roofline.h.
#ifndef HONE_DEVICE_AGENT_DEVICES_CPU_REFERENCE_LOOP_H_
#define HONE_DEVICE_AGENT_DEVICES_CPU_REFERENCE_LOOP_H_

namespace hone::agent {

// Seconds of the fixed loop (some tens of microseconds of multiply-adds on data in the first cache); the fastest of 3
// runs, so that an interrupt is not taken for a slow clock.
double ReferenceLoopSeconds();

// Whether the loop computes what it should: false means a broken device.
bool ReferenceLoopIsRight();

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_CPU_REFERENCE_LOOP_H_
