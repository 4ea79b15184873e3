// SPDX-License-Identifier: Apache-2.0
// Test support: compiles a workload with a schedule for a CUDA target, runs the PTX on the CPU, and compares.
#ifndef HONE_TESTS_PTX_ON_MACHINE_H_
#define HONE_TESTS_PTX_ON_MACHINE_H_

#include <string>

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/workload.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "tests/unit/space/problem.h"

namespace hone::tests {

// OK if the outputs of the launches agree with the interpreter, at each of the sizes. Every buffer is memory of its
// own, and a launch may only access the buffers that it gets. ptx: if not null, receives the PTX. FailedPrecondition:
// the schedule cannot be lowered; failures of the run have other codes.
absl::Status CheckOnPtxMachine(const ir::Workload& workload, const schedule::Schedule& schedule,
                               const target::Target& target, Tolerance tolerance = {}, std::string* ptx = nullptr,
                               const std::vector<SizeMap>& sizes = kFixedSizes);

// The same for a func with a grid, on random arguments in [0, 100]. Params that the func does not write must not
// change.
absl::Status CheckFuncOnPtxMachine(const ir::Func& func, const target::Target& target, Tolerance tolerance = {},
                                   std::string* ptx = nullptr);

}  // namespace hone::tests

#endif  // HONE_TESTS_PTX_ON_MACHINE_H_
