// SPDX-License-Identifier: Apache-2.0
// The tensors, kernels and calls of a program, from a plan and its compiled kernels.
//
// Unpacked weights that only a prepare function reads are left out. Start with BuildContents.
#ifndef HONE_DEPLOY_PACKAGE_PLAN_CONTENTS_H_
#define HONE_DEPLOY_PACKAGE_PLAN_CONTENTS_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/plan.h"
#include "deploy/package/compile_kernels.h"
#include "deploy/package/package_writer.h"
#include "deploy/runtime/memory.h"

namespace hone::package {

// program refers to the plan's constants and to packed: both must live as long as it is used.
struct PlanContents {
  PackageProgram program;                // tensors, kernels, calls, inputs, outputs, copies; the rest is the caller's
  std::vector<runtime::Mapping> packed;  // memory of the packed constants
};

// kernels: one per workload of the plan. Runs the prepare functions on `threads` threads (0: one per CPU).
absl::StatusOr<PlanContents> BuildContents(const graph::Plan& plan, std::span<const CompiledKernel> kernels,
                                           int threads);

DType ToPackage(ir::DType dtype);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_PLAN_CONTENTS_H_
