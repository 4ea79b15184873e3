// SPDX-License-Identifier: Apache-2.0
// A fixed piece of work on one CPU, the same in every build of the agent. Timed beside candidates, it shows when the
// CPU itself becomes slower or faster. Not a measurement of the peak: that is base/roofline.h.
#ifndef HONE_DEVICE_AGENT_DEVICES_CPU_REFERENCE_LOOP_H_
#define HONE_DEVICE_AGENT_DEVICES_CPU_REFERENCE_LOOP_H_

namespace hone::agent {

// Seconds of the loop: some tens of microseconds of multiply-adds on data in the first-level cache. The fastest of 3
// runs counts, so that an interrupt does not look like a slow clock.
double ReferenceLoopSeconds();

// Whether the loop computes the right result; false means a broken CPU.
bool ReferenceLoopIsRight();

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_CPU_REFERENCE_LOOP_H_
