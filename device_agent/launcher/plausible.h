// SPDX-License-Identifier: Apache-2.0
// The shortest time that a kernel can take, from the device's measured peak. The launcher refuses shorter times,
// because a kernel's process reports its own times and may lie.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_PLAUSIBLE_H_
#define HONE_DEVICE_AGENT_LAUNCHER_PLAUSIBLE_H_

#include <atomic>

#include "hone/v1/measure.pb.h"

namespace hone::agent {

// A lower bound of the seconds of one call of any kernel of the batch, on a device with a measured f32 peak of
// `peak_gflops`. It is far below what real kernels reach. 0 if the peak is not known (0).
double CallSecondsMin(const v1::Batch& batch, double peak_gflops);

// The peak of a device: the highest that any of its self-tests measured, because a disturbed test measures too little.
// Thread-safe.
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
