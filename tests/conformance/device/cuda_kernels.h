// SPDX-License-Identifier: Apache-2.0
// The kernels of opencl_kernels.h as PTX, compiled with
//   clang -x cl -cl-std=CL1.2 -target nvptx64-nvidia-cuda -march=sm_53 -Os -S
// where get_global_id is written with the special registers. The kernels that take a number of elements are written by
// hand in the same way.
#ifndef HONE_TESTS_CONFORMANCE_DEVICE_CUDA_KERNELS_H_
#define HONE_TESTS_CONFORMANCE_DEVICE_CUDA_KERNELS_H_

#include <string>

namespace hone::agent {

std::string CudaKernels();

}  // namespace hone::agent

#endif  // HONE_TESTS_CONFORMANCE_DEVICE_CUDA_KERNELS_H_
