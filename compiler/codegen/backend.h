// SPDX-License-Identifier: Apache-2.0
// A back end: the functions that make code for one kind of target. Private to codegen/: others include codegen.h.
//
// The table of back ends is in backend.cc. A new kind of target gets a folder beside llvm/ and opencl/, and a row of
// that table; docs/howto/add-a-back-end.md.
#ifndef HONE_COMPILER_CODEGEN_BACKEND_H_
#define HONE_COMPILER_CODEGEN_BACKEND_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/codegen/codegen.h"

namespace hone::codegen {

// What the functions return and promise is said in codegen.h, at Emit, Link, CodeKindOf, RequiredFeatures and Assemble.
// None may be null: a back end without an assembler has an `assemble` that returns nullopt.
struct Backend {
  absl::StatusOr<std::string> (*emit)(std::span<const ir::Func> funcs, const target::Target& target, Effort effort,
                                      Output output);
  absl::StatusOr<Artifact> (*link)(std::span<const std::string> objects);
  CodeKind (*code_kind)(const target::Target& target);
  std::vector<std::string> (*required_features)(const target::Target& target);
  std::optional<Assembled> (*assemble)(const std::string& object, const target::Target& target);
};

// llvm/: machine code for CPUs, from funcs without a grid, and PTX for CUDA, from funcs with one.
absl::StatusOr<std::string> EmitCpuCode(std::span<const ir::Func> funcs, const target::Target& target, Effort effort,
                                        Output output);
absl::StatusOr<std::string> EmitPtx(std::span<const ir::Func> funcs, const target::Target& target, Effort effort,
                                    Output output);
// A shared object of relocatable ELF objects.
absl::StatusOr<Artifact> LinkShared(std::span<const std::string> objects);
std::vector<std::string> EnabledFeatures(const target::Target& target);

// Runs the ptxas on PATH, or that of a CUDA toolkit at NVIDIA's place. Empty if there is none, or it fails.
std::optional<Assembled> AssemblePtx(const std::string& object, const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_BACKEND_H_
