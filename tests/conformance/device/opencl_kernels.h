// SPDX-License-Identifier: Apache-2.0
// The suite's kernels in OpenCL C, correct and faulty ones; the workload is that of hand_made_kernels.h.
#ifndef HONE_TESTS_CONFORMANCE_DEVICE_OPENCL_KERNELS_H_
#define HONE_TESTS_CONFORMANCE_DEVICE_OPENCL_KERNELS_H_

namespace hone::agent {

inline constexpr char kOpenClKernels[] = R"(
#define N 1000
#define KERNEL(name) kernel void name(global float* x, global float* w, global float* y)
#define COMPUTE(count) const int i = get_global_id(0); if (i < (count)) y[i] = 2.0f * x[i] + w[i]
KERNEL(reference) { COMPUTE(N); }
KERNEL(good) { COMPUTE(N); }
KERNEL(aligned) { COMPUTE(((ulong)x | (ulong)w | (ulong)y) % 64 == 0 ? N : 0); }
KERNEL(slow) { for (volatile int k = 0; k < 2000; ++k) {} COMPUTE(N); }
kernel void first_of_two(global float* x, global float* scratch) {
  const int i = get_global_id(0); if (i < N) scratch[i] = 2.0f * x[i]; }
kernel void second_of_two(global float* scratch, global float* w, global float* y) {
  const int i = get_global_id(0); if (i < N) y[i] = scratch[i] + w[i]; }
kernel void prepare(global float* w, global float* packed) {
  const int i = get_global_id(0); if (i < N) packed[i] = w[N - 1 - i]; }
kernel void packed_double(global float* x, global float* packed, global float* y) {
  const int i = get_global_id(0); if (i < N) y[i] = 2.0f * x[i] + packed[N - 1 - i]; }
KERNEL(wrong) { COMPUTE(N); if (i == 17) y[i] += 0.5f; }
KERNEL(incomplete) { COMPUTE(N - 1); }
KERNEL(past_end) { COMPUTE(N); if (i == 0) y[N] = 1.0f; }
KERNEL(before_begin) { COMPUTE(N); if (i == 0) y[-2] = 1.0f; }
KERNEL(write_input) { COMPUTE(N); if (i == 3) x[3] = 0.0f; }
#define OPEN(name) kernel void name(global float* x, global float* w, global float* y, global long* sizes)
OPEN(open_size) { COMPUTE(sizes[0]); }
OPEN(open_past_length) { COMPUTE(N); }
OPEN(open_wrong_when_short) { COMPUTE(sizes[0]); if (sizes[0] < N && i == 17) y[i] += 0.5f; }
KERNEL(crash) { *(volatile global int*)8 = 1; COMPUTE(N); }
KERNEL(hang) { for (volatile int k = 0;; ++k) {} COMPUTE(N); }
)";

}  // namespace hone::agent

#endif  // HONE_TESTS_CONFORMANCE_DEVICE_OPENCL_KERNELS_H_
