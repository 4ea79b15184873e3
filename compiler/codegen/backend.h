// SPDX-License-Identifier: Apache-2.0
// A back end: how code comes about for one kind of target. Private to codegen/, which chooses by a table (backend.cc).
//
// A new kind of target is a folder beside llvm/ and opencl/, and an entry there; docs/howto/add-a-back-end.md.
#ifndef HONE_COMPILER_CODEGEN_BACKEND_H_
#define HONE_COMPILER_CODEGEN_BACKEND_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/codegen/codegen.h"

namespace hone::codegen {

struct Backend {
  absl::StatusOr<std::string> (*emit)(std::span<const ir::Func> funcs, const target::Target& target, Effort effort,
                                      Output output);
  absl::StatusOr<Artifact> (*link)(std::span<const std::string> objects);
  CodeKind (*code_kind)(const target::Target& target);
  std::vector<std::string> (*required_features)(const target::Target& target);
  std::optional<Assembled> (*assemble)(const std::string& object, const target::Target& target);
};

// llvm/: machine code for CPUs, and PTX for CUDA.
absl::StatusOr<std::string> EmitMachineCode(std::span<const ir::Func> funcs, const target::Target& target,
                                            Effort effort, Output output);
absl::StatusOr<Artifact> LinkShared(std::span<const std::string> objects);
std::vector<std::string> EnabledFeatures(const target::Target& target);

// With a ptxas of PATH, or of a toolkit where NVIDIA installs it.
std::optional<Assembled> AssemblePtx(const std::string& object, const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_BACKEND_H_
