#include "compiler/codegen/llvm/setup.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>

#include <mutex>

#include "base/status.h"

namespace hone::codegen {

void InitializeLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

std::string Triple(const Target& target) {
  return target.arch == Arch::kAArch64 ? "aarch64-linux-gnu" : "x86_64-pc-linux-gnu";
}

std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(const Target& target) {
  InitializeLlvm();
  std::string error;
  const llvm::Target* llvm_target = llvm::TargetRegistry::lookupTarget(Triple(target), error);
  HONE_CHECK(llvm_target != nullptr);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;  // multiply-add may be fused: "contract"
  return std::unique_ptr<llvm::TargetMachine>(
      llvm_target->createTargetMachine(Triple(target), target.cpu, target.features, options, llvm::Reloc::PIC_,
                                       std::nullopt, llvm::CodeGenOptLevel::Default));
}

}  // namespace hone::codegen
