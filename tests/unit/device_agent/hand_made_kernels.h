// SPDX-License-Identifier: Apache-2.0
// Kernels in C, good and evil, compiled with the compiler of this build, and batches that measure them.
#ifndef HONE_TESTS_UNIT_DEVICE_AGENT_HAND_MADE_KERNELS_H_
#define HONE_TESTS_UNIT_DEVICE_AGENT_HAND_MADE_KERNELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/kernel_interface.h"
#include "hone/v1/measure.pb.h"

namespace hone::agent {

// The workload: y[i] = 2 * x[i] + w[i] for 1000 floats. Bytes of a shared object; aborts the test without a compiler.
const std::string& HandMadeArtifact();

// The shared object of kernels in C. `source` follows the prelude in the .cc, which has headers, the kernels
// `reference` and `good`, KERNEL(name) to begin another, and compute(b, N), which is what each must do.
std::string CompileKernels(const std::string& source);

// How a kernel of that name is called: one launch of the function of that name, but `two_launches` has two with a
// workspace between them, and `write_packed` and all whose names begin with `packed_` pack w in a launch before. Those
// that begin with `open_` have an open size, the number of elements of y that they compute. With groups and lanes: on a
// grid, with arguments.
KernelInterface HandMadeInterface(const std::string& name, int64_t groups = 0, int64_t lanes = 0);
v1::Kernel HandMadeKernel(const std::string& name);

// A batch with the named kernels as candidates.
v1::Batch HandMadeBatch(const std::vector<std::string>& symbols);

}  // namespace hone::agent

#endif  // HONE_TESTS_UNIT_DEVICE_AGENT_HAND_MADE_KERNELS_H_
