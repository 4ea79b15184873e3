// A fixed piece of work, the same in every build of the agent: timed beside candidates, it shows when the device itself
// became slower or faster. Also the numbers of the self-test: peak arithmetic and bandwidth.
#ifndef HONE_DEVICE_AGENT_REFERENCE_LOOP_H_
#define HONE_DEVICE_AGENT_REFERENCE_LOOP_H_

#include "base/kernel_abi.h"

namespace hone::agent {

// Seconds of the fixed loop (some tens of microseconds of multiply-adds on data in the first cache); the fastest of 3
// runs, so that an interrupt is not taken for a slow clock.
double ReferenceLoopSeconds();

// Whether the loop computes what it should: false means a broken device.
bool ReferenceLoopIsRight();

// f32 multiply-adds as GFLOP/s and memory read in GB/s, over `threads` parallel tasks. What plain C++ reaches: a
// yardstick to compare devices and days with, not the roofline. Takes about 20 ms each.
double MeasureGflops(HoneParallel* parallel, int threads);
double MeasureBandwidth(HoneParallel* parallel, int threads);

double SecondsNow();  // of a steady clock

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_REFERENCE_LOOP_H_
