// Whether a kernel can have been so fast: no device is faster than its peak, whatever a process says of its own time.
#ifndef HONE_DEVICE_AGENT_PLAUSIBLE_H_
#define HONE_DEVICE_AGENT_PLAUSIBLE_H_

#include "hone/v1/measure.pb.h"

namespace hone::agent {

// Seconds that no kernel of the batch can beat on a device whose measured peak is `peak_gflops` of f32; far below what
// any reaches. 0 where the peak is not known.
double LeastSeconds(const v1::Batch& batch, double peak_gflops);

// Timings that are faster become failures of their kind.
void RefuseImplausible(const v1::Batch& batch, double peak_gflops, v1::BatchResult& result);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_PLAUSIBLE_H_
