// SPDX-License-Identifier: Apache-2.0
// What a device with lanes can do at best, measured: f32 multiply-adds, and reading from its memory and its cache. The
// counterpart of base/roofline.h; takes some tenths of a second, while nothing else runs.
#ifndef HONE_DRIVERS_LANE_ROOFLINE_H_
#define HONE_DRIVERS_LANE_ROOFLINE_H_

#include <filesystem>

#include "drivers/lane_drivers.h"

namespace hone::drivers {

struct LaneRoofline {
  double flops_per_second = 0;  // a multiply-add counts as two
  int64_t cache_bytes = 0;      // working sets up to this size were read at cache_bytes_per_second; 0: it has no cache
  double cache_bytes_per_second = 0;
  double memory_bytes_per_second = 0;
};

// cache_folder: as in BuildOptions. kTimeout: a kernel had not ended by the deadline, and what it uses stays as it is
// until the process ends. For every driver of lane_drivers.h.
template <typename Driver>
Error MeasureRoofline(const typename Driver::Device& device, const std::filesystem::path& cache_folder,
                      LaneRoofline* roofline, Deadline deadline = Deadline::max());

}  // namespace hone::drivers

#endif  // HONE_DRIVERS_LANE_ROOFLINE_H_
