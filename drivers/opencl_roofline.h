// What an OpenCL device can do at best, measured: f32 multiply-adds, and reading from its memory and its cache. The
// counterpart of base/roofline.h for devices; takes some tenths of a second, while nothing else runs.
#ifndef HONE_DRIVERS_OPENCL_ROOFLINE_H_
#define HONE_DRIVERS_OPENCL_ROOFLINE_H_

#include <filesystem>

#include "drivers/opencl.h"

namespace hone::drivers::opencl {

struct MeasuredRoofline {
  double flops_per_second = 0;  // a multiply-add counts as two
  int64_t cache_bytes = 0;      // working sets up to this size were read at cache_bytes_per_second; 0: it has no cache
  double cache_bytes_per_second = 0;
  double memory_bytes_per_second = 0;
};

// cache_folder: as in BuildOptions.
Error MeasureRoofline(const Device& device, const std::filesystem::path& cache_folder, MeasuredRoofline* roofline);

}  // namespace hone::drivers::opencl

#endif  // HONE_DRIVERS_OPENCL_ROOFLINE_H_
