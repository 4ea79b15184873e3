// SPDX-License-Identifier: Apache-2.0
// LLVM's description of a Target: its triple, features and target machine. Every use of LLVM starts here.
#ifndef HONE_COMPILER_CODEGEN_LLVM_SETUP_H_
#define HONE_COMPILER_CODEGEN_LLVM_SETUP_H_

#include <memory>
#include <string>

#include "compiler/target/target.h"

namespace llvm {
class TargetMachine;
}

namespace hone::codegen {

// Registers the x86, AArch64, ARM and NVPTX back ends. Idempotent, thread-safe.
void InitializeLlvm();
// The functions below take a Target whose code LLVM makes: a CPU, or CUDA.
std::string Triple(const target::Target& target);
// `target.features` as LLVM wants them.
std::string LlvmFeatures(const target::Target& target);
std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_SETUP_H_
