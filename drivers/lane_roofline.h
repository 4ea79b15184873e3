// SPDX-License-Identifier: Apache-2.0
// Measures the roofline of a device with lanes: the highest rates of f32 multiply-adds, and of reads from its memory
// and its cache. The counterpart of base/roofline.h for CPUs. It takes some tenths of a second; nothing else may run on
// the device meanwhile.
#ifndef HONE_DRIVERS_LANE_ROOFLINE_H_
#define HONE_DRIVERS_LANE_ROOFLINE_H_

#include <filesystem>

#include "drivers/lane_drivers.h"

namespace hone::drivers {

struct LaneRoofline {
  double flops_per_second = 0;         // f32; a multiply-add counts as two
  int64_t cache_bytes = 0;             // the working set that was read at cache_bytes_per_second; 0: there is no cache
  double cache_bytes_per_second = 0;   // 0: there is no cache
  double memory_bytes_per_second = 0;  // reads of a working set larger than the cache
};

// Runs the measurement; defined for every driver of lane_drivers.h. cache_folder: as in BuildOptions. kTimeout: a
// kernel had not ended by the deadline; the memory and code that it uses are then never freed.
template <typename Driver>
Error MeasureRoofline(const typename Driver::Device& device, const std::filesystem::path& cache_folder,
                      LaneRoofline* roofline, Deadline deadline = Deadline::max());

}  // namespace hone::drivers

#endif  // HONE_DRIVERS_LANE_ROOFLINE_H_
