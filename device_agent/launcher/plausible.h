// SPDX-License-Identifier: Apache-2.0
// Whether a kernel can have been so fast: no device is faster than its peak, whatever a process says of its own time.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_PLAUSIBLE_H_
#define HONE_DEVICE_AGENT_LAUNCHER_PLAUSIBLE_H_

#include <atomic>

#include "hone/v1/measure.pb.h"

namespace hone::agent {

// Seconds that no kernel of the batch can beat on a device whose measured peak is `peak_gflops` of f32; far below what
// any reaches. 0 where the peak is not known.
double CallSecondsMin(const v1::Batch& batch, double peak_gflops);

// The peak of a device: the highest that any of its tests has measured, since one that others disturb finds too little.
// For several threads.
class MeasuredPeak {
 public:
  explicit MeasuredPeak(double gflops) : gflops_(gflops) {}
  void Add(double gflops);
  double gflops() const { return gflops_; }  // 0: not known

 private:
  std::atomic<double> gflops_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_PLAUSIBLE_H_
