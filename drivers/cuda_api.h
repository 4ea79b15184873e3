// SPDX-License-Identifier: Apache-2.0
// The functions of NVIDIA's driver library that the driver calls. They are declared here with our own types, so that
// the build does not need the CUDA toolkit, and are looked up by name when the program runs. Private to drivers/cuda*.
//
// A suffix such as _v2 is part of the name in the library. NVIDIA's headers map the plain name to it; in the library
// the plain name is an older interface.
#ifndef HONE_DRIVERS_CUDA_API_H_
#define HONE_DRIVERS_CUDA_API_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "drivers/error.h"

namespace hone::drivers::cuda {

using Handle = void*;                // a context, module, function, stream, event, graph or link
using Pointer = unsigned long long;  // an address in device memory
using Ordinal = int;                 // a CUdevice

// CUlaunchAttribute and CUlaunchConfig, the arguments of cuLaunchKernelEx, with their layout.
struct LaunchAttribute {
  uint32_t id = 0;
  alignas(8) std::array<uint32_t, 16> value = {};
};
struct LaunchConfig {
  std::array<uint32_t, 3> groups, lanes;
  uint32_t shared_bytes;
  Handle stream;
  const LaunchAttribute* attributes;
  uint32_t attribute_count;
};

// clang-format off
#define HONE_CUDA_FUNCTIONS(X) \
  X(cuInit, unsigned) X(cuDriverGetVersion, int*) X(cuGetErrorName, int, const char**) \
  X(cuDeviceGetCount, int*) X(cuDeviceGet, Ordinal*, int) X(cuDeviceGetName, char*, int, Ordinal) \
  X(cuDeviceGetPCIBusId, char*, int, Ordinal) \
  X(cuDeviceGetAttribute, int*, int, Ordinal) X(cuDeviceTotalMem_v2, size_t*, Ordinal) \
  X(cuDevicePrimaryCtxRetain, Handle*, Ordinal) X(cuDevicePrimaryCtxRelease_v2, Ordinal) \
  X(cuCtxPushCurrent_v2, Handle) X(cuCtxPopCurrent_v2, Handle*) X(cuThreadExchangeStreamCaptureMode, int*) \
  X(cuLinkCreate_v2, unsigned, int*, void**, Handle*) \
  X(cuLinkAddData_v2, Handle, int, void*, size_t, const char*, unsigned, int*, void**) \
  X(cuLinkComplete, Handle, void**, size_t*) X(cuLinkDestroy, Handle) \
  X(cuModuleLoadData, Handle*, const void*) X(cuModuleUnload, Handle) \
  X(cuModuleGetFunction, Handle*, Handle, const char*) X(cuFuncGetAttribute, int*, int, Handle) \
  X(cuFuncSetAttribute, Handle, int, int) \
  X(cuMemAlloc_v2, Pointer*, size_t) X(cuMemFree_v2, Pointer) \
  X(cuMemHostAlloc, void**, size_t, unsigned) X(cuMemFreeHost, void*) \
  X(cuMemcpyHtoDAsync_v2, Pointer, const void*, size_t, Handle) \
  X(cuMemcpyDtoHAsync_v2, void*, Pointer, size_t, Handle) \
  X(cuMemcpyDtoDAsync_v2, Pointer, Pointer, size_t, Handle) X(cuMemsetD8Async, Pointer, unsigned char, size_t, Handle) \
  X(cuStreamCreate, Handle*, unsigned) X(cuStreamDestroy_v2, Handle) X(cuStreamSynchronize, Handle) \
  X(cuEventCreate, Handle*, unsigned) X(cuEventDestroy_v2, Handle) X(cuEventRecord, Handle, Handle) \
  X(cuEventQuery, Handle) X(cuEventElapsedTime, float*, Handle, Handle) \
  X(cuLaunchKernel, Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**, \
    void**) \
  X(cuLaunchKernelEx, const LaunchConfig*, Handle, void**, void**) \
  X(cuStreamBeginCapture_v2, Handle, int) X(cuStreamEndCapture, Handle, Handle*) \
  X(cuGraphInstantiateWithFlags, Handle*, Handle, unsigned long long) X(cuGraphLaunch, Handle, Handle) \
  X(cuGraphExecDestroy, Handle) X(cuGraphDestroy, Handle)
// clang-format on

struct Api {
#define HONE_CUDA_POINTER(name, ...) int (*name)(__VA_ARGS__) = nullptr;
  HONE_CUDA_FUNCTIONS(HONE_CUDA_POINTER)
#undef HONE_CUDA_POINTER
};

// CUdevice_attribute: the driver's numbers.
enum Attribute {
  kMaxLanes = 1,
  kSharedBytes = 8,
  kLaneWidth = 10,
  kUnits = 16,
  kIntegrated = 18,
  kL2Bytes = 38,
  kMajor = 75,
  kMinor = 76,
  kSharedBytesIfAsked = 97,
};
enum FunctionAttribute {
  kFunctionMaxLanes = 0,
  kFunctionAskedShared = 8,
};
enum JitOption { kInfoLog = 3, kInfoLogBytes = 4, kErrorLog = 5, kErrorLogBytes = 6 };
inline constexpr int kInputPtx = 1;
inline constexpr unsigned kStreamAlone = 1;     // CU_STREAM_NON_BLOCKING: does not wait for the default stream
inline constexpr int kCaptureOfThisThread = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads are not restricted
inline constexpr unsigned kPortable = 1;        // CU_MEMHOSTALLOC_PORTABLE: pinned memory for every context
inline constexpr uint32_t kOverlaps = 6;        // the launch attribute "programmatic stream serialization"
inline constexpr int kSuccess = 0, kNotReady = 600;

// Loads the library and looks up its functions. kAbsent: the library is missing or lacks a function. A few newer
// functions may be missing; then their pointers are null.
Error LoadApi(const char* file, std::shared_ptr<const Api>* api);

// The error for a CUresult: "what: CUDA_ERROR_OUT_OF_MEMORY (2)" with the kind of the code; ok for 0.
Error Check(const Api& api, int code, const std::string& what);

}  // namespace hone::drivers::cuda

#endif  // HONE_DRIVERS_CUDA_API_H_
