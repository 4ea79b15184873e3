// SPDX-License-Identifier: Apache-2.0
// From a model to a package: import, best schedules, code, packed weights, memory plan, file. The last step of the
// house.
//
// Reads top to bottom in compile_model.cc. What happens inside a kernel is compiler/; which schedules exist is the
// caller's ScheduleLookup (the records, usually). Not for timing anything.
#ifndef HONE_DEPLOY_PACKAGE_COMPILE_MODEL_H_
#define HONE_DEPLOY_PACKAGE_COMPILE_MODEL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/plan.h"
#include "deploy/package/compile_kernels.h"

namespace hone::package {

struct KernelSummary {
  std::string name;
  std::string digest;                   // of its workload
  std::string code_digest;              // of its code before it was linked with the others: what a schedule changes
  int64_t lanes = 0, shared_bytes = 0;  // of a group of its largest launch; 0 on a target without lanes
  std::optional<codegen::Resources> resources;  // where this machine can tell
};

struct ProgramSummary {
  std::string target;  // canonical text
  int64_t kernels = 0;
  int64_t records_used = 0;  // kernels whose schedule came from the lookup
  std::vector<KernelSummary> per_kernel;
};

struct CompileSummary {
  double seconds = 0;
  uint64_t bytes = 0;  // of the package
  std::vector<ProgramSummary> programs;
  std::vector<std::string> warnings;
  std::string cpp_header;  // cpp_header.h
};

// Compiles the model for each of `targets` (different ones, the best first) and writes the package to output_path (the
// old file or the whole new one, at any moment). Errors are those of BuildPlan, of code generation (Internal), and of
// writing (package_writer.h). header_name: the model's in the C++ header; empty: that of its file.
absl::StatusOr<CompileSummary> CompileModel(const std::string& onnx_path, const graph::ImportOptions& import,
                                            std::span<const KernelOptions> targets, const std::string& output_path,
                                            const std::string& header_name = "");

// The same for a plan at hand, which is for options.target alone. model_name is for people.
absl::StatusOr<CompileSummary> CompilePlan(const graph::Plan& plan, const std::string& model_name,
                                           const KernelOptions& options, const std::string& output_path);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_COMPILE_MODEL_H_
