// SPDX-License-Identifier: Apache-2.0
// Checks that the declarations in drivers/cuda_api.h agree with NVIDIA's header. Compiled if a CUDA toolkit of version
// 12 or later is installed. It is a program of its own, because NVIDIA's header renames functions by macros.
#include "drivers/cuda_api.h"

// Included after our header, because its macros would rename our declarations.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace hone::drivers::cuda {
namespace {

// Whether two types are passed alike: both are pointers, or both are numbers of the same size. NVIDIA's enumerations
// are numbers in our header.
template <typename Ours, typename Theirs>
constexpr bool kIsPassedAs = sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;

template <typename Ours, typename Theirs>
constexpr bool kIsCalledAs = false;
template <typename... Ours, typename... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
constexpr bool kIsCalledAs<int (*)(Ours...), CUresult (*)(Theirs...)> = (kIsPassedAs<Ours, Theirs> && ...);

#define HONE_CUDA_IS_CALLED(name, ...) static_assert(kIsCalledAs<int (*)(__VA_ARGS__), decltype(&::name)>, #name);
HONE_CUDA_FUNCTIONS(HONE_CUDA_IS_CALLED)
#undef HONE_CUDA_IS_CALLED

static_assert(sizeof(CUdevice) == sizeof(Ordinal) && sizeof(CUdeviceptr) == sizeof(Pointer));

static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(LaunchAttribute, id) == offsetof(CUlaunchAttribute, id));
static_assert(offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(LaunchConfig, groups) == offsetof(CUlaunchConfig, gridDimX));
static_assert(offsetof(LaunchConfig, lanes) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(LaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));

static_assert(kMaxLanes == int{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK});
static_assert(kSharedBytes == int{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK});
static_assert(kLaneWidth == int{CU_DEVICE_ATTRIBUTE_WARP_SIZE});
static_assert(kUnits == int{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT});
static_assert(kIntegrated == int{CU_DEVICE_ATTRIBUTE_INTEGRATED});
static_assert(kL2Bytes == int{CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE});
static_assert(kMajor == int{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR});
static_assert(kMinor == int{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR});
static_assert(kSharedBytesIfAsked == int{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN});
static_assert(kFunctionMaxLanes == int{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK});
static_assert(kFunctionAskedShared == int{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES});
static_assert(kInfoLog == int{CU_JIT_INFO_LOG_BUFFER} && kInfoLogBytes == int{CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES});
static_assert(kErrorLog == int{CU_JIT_ERROR_LOG_BUFFER} && kErrorLogBytes == int{CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES});
static_assert(kInputPtx == int{CU_JIT_INPUT_PTX});
static_assert(kStreamAlone == unsigned{CU_STREAM_NON_BLOCKING});
static_assert(kCaptureOfThisThread == int{CU_STREAM_CAPTURE_MODE_THREAD_LOCAL});
static_assert(kPortable == unsigned{CU_MEMHOSTALLOC_PORTABLE});
static_assert(kOverlaps == uint32_t{CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION});
static_assert(kSuccess == int{CUDA_SUCCESS} && kNotReady == int{CUDA_ERROR_NOT_READY});

TEST(CudaHeader, ErrorCodesHaveTheRightKind) {
  std::shared_ptr<const Api> api;
  ASSERT_TRUE(LoadApi(HONE_FAKE_CUDA, &api).ok());
  constexpr std::pair<CUresult, ErrorKind> kErrors[] = {
      {CUDA_ERROR_OUT_OF_MEMORY, ErrorKind::kMemory},
      {CUDA_ERROR_DEVICE_UNAVAILABLE, ErrorKind::kBusy},
      {CUDA_ERROR_STUB_LIBRARY, ErrorKind::kAbsent},
      {CUDA_ERROR_NO_DEVICE, ErrorKind::kAbsent},
      {CUDA_ERROR_INVALID_VALUE, ErrorKind::kProgram},
      {CUDA_ERROR_INVALID_IMAGE, ErrorKind::kProgram},
      {CUDA_ERROR_NO_BINARY_FOR_GPU, ErrorKind::kProgram},
      {CUDA_ERROR_INVALID_PTX, ErrorKind::kProgram},
      {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, ErrorKind::kProgram},
      {CUDA_ERROR_NOT_FOUND, ErrorKind::kProgram},
      {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, ErrorKind::kProgram},
      {CUDA_ERROR_NOT_SUPPORTED, ErrorKind::kProgram},
      {CUDA_ERROR_INVALID_CLUSTER_SIZE, ErrorKind::kProgram},
      {CUDA_ERROR_ILLEGAL_ADDRESS, ErrorKind::kFault},
      {CUDA_ERROR_LAUNCH_TIMEOUT, ErrorKind::kFault},
      {CUDA_ERROR_HARDWARE_STACK_ERROR, ErrorKind::kFault},
      {CUDA_ERROR_ILLEGAL_INSTRUCTION, ErrorKind::kFault},
      {CUDA_ERROR_MISALIGNED_ADDRESS, ErrorKind::kFault},
      {CUDA_ERROR_INVALID_ADDRESS_SPACE, ErrorKind::kFault},
      {CUDA_ERROR_INVALID_PC, ErrorKind::kFault},
      {CUDA_ERROR_LAUNCH_FAILED, ErrorKind::kFault},
      {CUDA_ERROR_ECC_UNCORRECTABLE, ErrorKind::kDevice},
  };
  for (const auto& [code, kind] : kErrors) EXPECT_EQ(Check(*api, code, "").kind, kind) << code;
}

}  // namespace
}  // namespace hone::drivers::cuda
