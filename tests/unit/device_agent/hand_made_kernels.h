// Kernels in C, good and evil, compiled with the system's compiler, and batches that measure them.
#ifndef HONE_TESTS_UNIT_DEVICE_AGENT_HAND_MADE_KERNELS_H_
#define HONE_TESTS_UNIT_DEVICE_AGENT_HAND_MADE_KERNELS_H_

#include <string>
#include <vector>

#include "hone/v1/measure.pb.h"

namespace hone::agent {

// The workload: y[i] = 2 * x[i] + w[i] for 1000 floats. Bytes of a shared object; aborts the test without a compiler.
const std::string& HandMadeArtifact();

// A batch with the named functions of the artifact as candidates; `packed_double` packs w and uses a workspace.
v1::Batch HandMadeBatch(const std::vector<std::string>& symbols);

}  // namespace hone::agent

#endif  // HONE_TESTS_UNIT_DEVICE_AGENT_HAND_MADE_KERNELS_H_
