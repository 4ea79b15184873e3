// What every use of LLVM needs first: the back ends we build with, and a target machine for a Target.
#ifndef HONE_COMPILER_CODEGEN_LLVM_SETUP_H_
#define HONE_COMPILER_CODEGEN_LLVM_SETUP_H_

#include <memory>
#include <string>

#include "compiler/codegen/target.h"

namespace llvm {
class TargetMachine;
}

namespace hone::codegen {

// Registers the x86 and AArch64 back ends. Idempotent, thread-safe.
void InitializeLlvm();
std::string Triple(const Target& target);
std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(const Target& target);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_SETUP_H_
