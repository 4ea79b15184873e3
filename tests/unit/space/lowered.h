// SPDX-License-Identifier: Apache-2.0
// Test support: lowers a workload with a schedule, runs the result by the interpreter, and compares. It does not use
// LLVM.
#ifndef HONE_TESTS_UNIT_SPACE_LOWERED_H_
#define HONE_TESTS_UNIT_SPACE_LOWERED_H_

#include "absl/status/status.h"
#include "compiler/ir/workload.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "tests/unit/space/problem.h"

namespace hone::tests {

// OK if the lowered functions agree with the workload, at each of the sizes. The verifier runs between passes, and a
// race of lanes is an error. For small workloads.
absl::Status CheckLowered(const ir::Workload& workload, const schedule::Schedule& schedule,
                          const target::Target& target, Tolerance tolerance = {},
                          const std::vector<SizeMap>& sizes = kFixedSizes);

}  // namespace hone::tests

#endif  // HONE_TESTS_UNIT_SPACE_LOWERED_H_
