// SPDX-License-Identifier: Apache-2.0
// Test support: compiles a workload with a schedule, runs it in this process, and compares with the interpreter.
#ifndef HONE_TESTS_UNIT_SPACE_COMPILED_H_
#define HONE_TESTS_UNIT_SPACE_COMPILED_H_

#include "absl/status/status.h"
#include "compiler/codegen/codegen.h"
#include "compiler/ir/workload.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "tests/unit/space/problem.h"

namespace hone::tests {

// OK if the compiled kernel agrees with the interpreter, at each of the sizes. On a machine that cannot run code for
// the target, the kernel is only compiled. threads: the size of the pool that the kernel runs on.
absl::Status CheckCompiled(const ir::Workload& workload, const schedule::Schedule& schedule,
                           const target::Target& target, Tolerance tolerance = {}, int threads = 2,
                           codegen::Effort effort = codegen::Effort::kKernel,
                           const std::vector<SizeMap>& sizes = kFixedSizes);

}  // namespace hone::tests

#endif  // HONE_TESTS_UNIT_SPACE_COMPILED_H_
