// SPDX-License-Identifier: Apache-2.0
// Makes the tensors, kernels and calls of a PackageProgram from a plan and its compiled kernels.
//
// Weights that only a prepare function reads are left out: the program holds their packed form. Start with
// BuildContents.
#ifndef HONE_DEPLOY_PACKAGE_PLAN_CONTENTS_H_
#define HONE_DEPLOY_PACKAGE_PLAN_CONTENTS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/plan.h"
#include "deploy/package/compile_kernels.h"
#include "deploy/package/package_writer.h"
#include "deploy/runtime/memory.h"

namespace hone::package {

// `program` refers to the constants of the plan and to `packed`: both must live as long as it is used.
struct PlanContents {
  PackageProgram program;                // `start` with tensors, kernels, calls, inputs, outputs, borders and copies
  std::vector<runtime::Mapping> packed;  // owns the packed constants
};

// The symbol of a foreign part of the plan in the package, and the code of the unit of all parts (CodeKind::kOnnx).
std::string ForeignSymbol(const graph::Plan& plan, int foreign);
std::string ForeignCode(const graph::Plan& plan);

// kernels: one per workload of the plan, in order; the foreign parts are the kernels after them. Runs the prepare
// functions on `threads` threads (0: one per CPU). start: has the units with their homes, and the unit of each kernel;
// everything else is empty. A tensor that a unit reads and a unit of another home writes gets a copy there, with a
// border before the calls that read it. Errors: those of packing (pack_constants.h); Unimplemented if a tensor has an
// open size.
absl::StatusOr<PlanContents> BuildContents(const graph::Plan& plan, std::span<const CompiledKernel> kernels,
                                           int threads, PackageProgram start = {});

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_PLAN_CONTENTS_H_
