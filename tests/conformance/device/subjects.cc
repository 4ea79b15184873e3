// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/device/subjects.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/temporary_folder.h"
#include "device_agent/devices/cpu/cpu_device.h"
#include "device_agent/devices/cuda/cuda_device.h"
#include "device_agent/devices/opencl/opencl_device.h"
#include "tests/conformance/device/cuda_kernels.h"
#include "tests/conformance/device/fake_device.h"
#include "tests/conformance/device/opencl_kernels.h"
#include "tests/unit/device_agent/hand_made_kernels.h"

namespace hone::agent {

namespace {

// A folder for files of drivers, deleted when the process ends.
std::string Folder() {
  static const TemporaryFolder folder = TemporaryFolder::Create().value();
  return folder.path();
}

// A later dlopen of the driver by its name returns the library that is loaded here.
void LoadFakeCuda() {
  if (getenv("HONE_REAL_CUDA") != nullptr) return;
  for (const char* file : {HONE_FAKE_CUDA, HONE_FAKE_NVML}) dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

std::vector<Subject> Subjects() {
  return {
      {"Cpu", [] { return std::make_unique<CpuDevice>(); }, HandMadeArtifact},
      {"OpenCl", [] { return std::make_unique<OpenClDevice>("", Folder()); },
       [] { return std::string(kOpenClKernels); }, 8, 128},
      {"Cuda",
       [] {
         LoadFakeCuda();
         return std::make_unique<CudaDevice>("", Folder());
       },
       CudaKernels, 8, 128},
      {"Fake", [] { return std::make_unique<FakeDevice>(); }, [] { return std::string("fake"); }, 8, 128},
  };
}

}  // namespace hone::agent
