// SPDX-License-Identifier: Apache-2.0
// The suite's kernels in PTX: those of opencl_kernels.h, compiled by
//   clang -x cl -cl-std=CL1.2 -target nvptx64-nvidia-cuda -march=sm_53 -Os -S
// with get_global_id in terms of the special registers.
#ifndef HONE_TESTS_CONFORMANCE_DEVICE_CUDA_KERNELS_H_
#define HONE_TESTS_CONFORMANCE_DEVICE_CUDA_KERNELS_H_

#include <string>

namespace hone::agent {

std::string CudaKernels();

}  // namespace hone::agent

#endif  // HONE_TESTS_CONFORMANCE_DEVICE_CUDA_KERNELS_H_
