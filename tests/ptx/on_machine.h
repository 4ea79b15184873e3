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

// OK if what the launches compute agrees with the interpreter. Every buffer is memory of its own, and a launch reaches
// only those that it is given. `ptx`, if not null, is what was run. FailedPrecondition whose message does not begin
// with "on the machine": the schedule cannot be lowered.
absl::Status CheckOnMachine(const ir::Workload& workload, const schedule::Schedule& schedule,
                            const target::Target& target, Tolerance tolerance = {}, std::string* ptx = nullptr);

// The same for a func with a grid, on arguments drawn from [0, 100]: params that the func does not write stay as they
// are.
absl::Status CheckFuncOnMachine(const ir::Func& func, const target::Target& target, Tolerance tolerance = {},
                                std::string* ptx = nullptr);

}  // namespace hone::tests

#endif  // HONE_TESTS_PTX_ON_MACHINE_H_
