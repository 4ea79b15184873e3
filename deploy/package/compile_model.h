// SPDX-License-Identifier: Apache-2.0
// Compiles a model to a package: import, best schedules, code, packed weights, memory plan, file.
//
// Not the compiler of kernels (compiler/), not the source of schedules (the caller's ScheduleLookup, usually the
// records), and not a measurement. Start with CompileModel.
#ifndef HONE_DEPLOY_PACKAGE_COMPILE_MODEL_H_
#define HONE_DEPLOY_PACKAGE_COMPILE_MODEL_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/plan.h"
#include "deploy/package/compile_kernels.h"

namespace hone::package {

struct KernelSummary {
  std::string name;                             // symbol
  std::string target;                           // canonical text of its unit's target
  std::string digest;                           // of its workload
  std::string code_digest;                      // SHA-256 of its code before linking; depends on the schedule
  int64_t lanes = 0, shared_bytes = 0;          // of a group, the most of all its launches; 0 on a target without lanes
  std::optional<codegen::Resources> resources;  // empty if this machine cannot assemble the code (codegen.h)
};

struct ProgramSummary {
  std::string target;                     // canonical text, of all units together
  std::vector<std::string> shapes;        // per input: the shapes that the program takes, "ids=1..8,128"
  int64_t kernels = 0;                    // how many it has
  int64_t records_used = 0;               // kernels whose schedule is a record
  std::vector<KernelSummary> per_kernel;  // in the plan's order of workloads
  std::vector<std::string> foreign = {};  // the parts that ONNX Runtime computes, by the name of their first node
};

struct CompileSummary {
  double seconds = 0;                    // wall time of the whole compilation
  uint64_t bytes = 0;                    // size of the package
  std::vector<ProgramSummary> programs;  // in the order of the package: by target, then by shapes
  std::vector<std::string> warnings;     // each begins with its target
  std::string cpp_header;                // text of the C++ header (cpp_header.h); not written to disk
};

// Decides whether a package is written, from what was compiled for it. An error ends the compilation without a file.
using AcceptPrograms = std::function<absl::Status(std::span<const ProgramSummary> programs)>;

// Compiles the model for each of `targets` (at least one, all different, the preferred one first), a program for each
// of `imports` (at least one; they give different shapes), and writes the package to output_path. A unit that computes
// no kernel is left out of its program. The path is the old file or the whole new one at any moment. header_name: the
// model's name in the C++ header; empty: the name of its file. accept: empty accepts all. Errors are those of
// BuildPlan, of CompileKernels, of packing (Internal), and of WritePackage.
absl::StatusOr<CompileSummary> CompileModel(const std::string& onnx_path, std::span<const graph::ImportOptions> imports,
                                            std::span<const KernelOptions> targets, const std::string& output_path,
                                            const std::string& header_name = "", const AcceptPrograms& accept = {});

// The same for shapes that are given once.
absl::StatusOr<CompileSummary> CompileModel(const std::string& onnx_path, const graph::ImportOptions& import,
                                            std::span<const KernelOptions> targets, const std::string& output_path,
                                            const std::string& header_name = "");

// The same for a given plan, which must be for options.target, and for one program. model_name: the name in the
// metadata and the C++ header.
absl::StatusOr<CompileSummary> CompilePlan(const graph::Plan& plan, const std::string& model_name,
                                           const KernelOptions& options, const std::string& output_path);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_COMPILE_MODEL_H_
