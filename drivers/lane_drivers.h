// SPDX-License-Identifier: Apache-2.0
// The drivers of devices with lanes, each as a struct of its types and facts. It is the template argument of code that
// is written once for all of them (deploy/runtime/lane_backend.h, lane_roofline.h).
#ifndef HONE_DRIVERS_LANE_DRIVERS_H_
#define HONE_DRIVERS_LANE_DRIVERS_H_

#include "drivers/cuda.h"
#include "drivers/launch.h"
#include "drivers/opencl.h"

namespace hone::drivers {

struct OpenClDriver {
  using Library = opencl::Library;
  using DeviceInfo = opencl::DeviceInfo;
  using Device = opencl::Device;
  using Buffer = opencl::Buffer;
  using Program = opencl::Program;
  using Kernel = opencl::Kernel;
  using Launch = opencl::Launch;
  static constexpr const char* kName = "OpenCL";    // name of the API, for texts
  static constexpr const char* kTarget = "opencl";  // argument of `hone compile --target`
  static constexpr bool kCompilesAtLaunch = true;   // the first launch of a kernel may compile it, as PoCL does
};

struct CudaDriver {
  using Library = cuda::Library;
  using DeviceInfo = cuda::DeviceInfo;
  using Device = cuda::Device;
  using Buffer = cuda::Buffer;
  using Program = cuda::Program;
  using Kernel = cuda::Kernel;
  using Launch = cuda::Launch;
  static constexpr const char* kName = "CUDA";
  static constexpr const char* kTarget = "cuda";
  static constexpr bool kCompilesAtLaunch = false;
};

}  // namespace hone::drivers

#endif  // HONE_DRIVERS_LANE_DRIVERS_H_
