// SPDX-License-Identifier: Apache-2.0
// A call of a kernel on a device with lanes: its launches at the current sizes. A part of lane_backend.h.
#ifndef HONE_DEPLOY_RUNTIME_LANE_CALL_H_
#define HONE_DEPLOY_RUNTIME_LANE_CALL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/kernel_interface.h"

namespace hone::runtime {

// Each launch has a kernel of its own, whose arguments are set when it is loaded. Driver: a struct of
// drivers/lane_drivers.h.
template <typename Driver>
struct LaneCall {
  std::vector<typename Driver::Kernel> kernels;
  std::vector<typename Driver::Launch> launches;  // point into kernels; those that have work at the current sizes
  const KernelInterface* interface = nullptr;     // set if the kernel takes sizes; the next two are for such kernels
  std::span<const int64_t> sizes;                 // in KernelSizes
  std::vector<int64_t> values;                    // what its numbers of groups follow from

  // Gives every launch as many groups as the values in `sizes` need. Allocates nothing.
  void UpdateLaunches() {
    if (interface == nullptr) return;
    std::ranges::copy(sizes, values.begin());
    ComputeAll(interface->size_steps, values);
    launches.clear();
    for (size_t i = 0; i < kernels.size(); ++i) {
      const KernelLaunch& launch = interface->main[i];
      const int64_t groups = launch.GroupsFor(values);
      if (groups > 0) launches.push_back({&kernels[i], groups, launch.lanes});
    }
  }
};

// A tensor as an argument of a kernel of a call.
struct LaneUse {
  size_t call, kernel;
  int argument;
};

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_LANE_CALL_H_
