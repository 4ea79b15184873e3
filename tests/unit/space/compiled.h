// Test support: compiles a workload with a schedule, runs it in this process, and compares with the interpreter.
//
// Inputs are seeded uniform values in each param's range. Outputs lie between canaries; a kernel that writes past one
// is an error.
#ifndef HONE_TESTS_UNIT_SPACE_COMPILED_H_
#define HONE_TESTS_UNIT_SPACE_COMPILED_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compiler/codegen/target.h"
#include "compiler/ir/workload.h"
#include "compiler/schedule/step.h"

namespace hone::testing {

// OK if the compiled kernel agrees with the interpreter within `tolerance` of the largest output magnitude (exactly,
// for integers). threads: of the pool the kernel runs on.
absl::Status CheckCompiled(const ir::Workload& workload, const schedule::Schedule& schedule,
                           const codegen::Target& target, double tolerance = 1e-5, int threads = 2);
// Same for the lowered function, executed by the interpreter, with the verifier between passes. For small workloads.
absl::Status CheckLowered(const ir::Workload& workload, const schedule::Schedule& schedule, double tolerance = 1e-5);

}  // namespace hone::testing

#endif  // HONE_TESTS_UNIT_SPACE_COMPILED_H_
