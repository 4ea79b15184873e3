// SPDX-License-Identifier: Apache-2.0
// Values that all drivers of devices with lanes share: how a program is built, what is launched, and what a measurement
// gives. The handles of each driver are in drivers/opencl.h and drivers/cuda.h.
#ifndef HONE_DRIVERS_LAUNCH_H_
#define HONE_DRIVERS_LAUNCH_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hone::drivers {

using Deadline = std::chrono::steady_clock::time_point;

struct BuildOptions {
  // Further options of the OpenCL compiler, after those that Build sets. CUDA ignores them.
  std::string extra_options = {};
  // Where compiled code is cached (binary_cache.h); empty: nowhere. An OpenCL driver that caches by itself ignores it.
  std::filesystem::path cache_folder = {};
};

// One run of a kernel over `groups` groups of `lanes` lanes. A CUDA kernel whose code waits for the launch before it
// (griddepcontrol.wait) may start before that launch has ended.
template <typename Kernel>
struct LaunchOf {
  const Kernel* kernel = nullptr;  // not owned
  int64_t groups = 0, lanes = 0;
};

struct Timing {
  // Per repeat, by the device's clock, until its last launch has ended: with OpenCL from the start of its first launch,
  // with CUDA from the end of the repeat before, for the first one from just before its first launch.
  std::vector<double> device_seconds;
  double wall_seconds = 0;  // for all repeats, by this machine's clock: from the first enqueue until all have ended
};

}  // namespace hone::drivers

#endif  // HONE_DRIVERS_LAUNCH_H_
