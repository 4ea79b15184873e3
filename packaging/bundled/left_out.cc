// SPDX-License-Identifier: Apache-2.0
// Empty replacements of parts of LLVM that Hone does not use. The driver of lld refers to every target of LLVM and, in
// Debian's build, to the library Polly. Hone emits code for three targets, and does not optimize at link time.
#include <llvm/Passes/PassPlugin.h>

llvm::PassPluginLibraryInfo getPollyPluginInfo();
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "left out", "", [](llvm::PassBuilder&) {}};
}

#define HONE_LEAVE_OUT(target)                 \
  void LLVMInitialize##target##TargetInfo() {} \
  void LLVMInitialize##target##Target() {}     \
  void LLVMInitialize##target##TargetMC() {}   \
  void LLVMInitialize##target##AsmPrinter() {} \
  void LLVMInitialize##target##AsmParser() {}  \
  static_assert(true)

extern "C" {
HONE_LEAVE_OUT(AMDGPU);
HONE_LEAVE_OUT(ARM);
HONE_LEAVE_OUT(AVR);
HONE_LEAVE_OUT(BPF);
HONE_LEAVE_OUT(Hexagon);
HONE_LEAVE_OUT(Lanai);
HONE_LEAVE_OUT(LoongArch);
HONE_LEAVE_OUT(M68k);
HONE_LEAVE_OUT(MSP430);
HONE_LEAVE_OUT(Mips);
HONE_LEAVE_OUT(PowerPC);
HONE_LEAVE_OUT(RISCV);
HONE_LEAVE_OUT(Sparc);
HONE_LEAVE_OUT(SystemZ);
HONE_LEAVE_OUT(VE);
HONE_LEAVE_OUT(WebAssembly);
HONE_LEAVE_OUT(XCore);
HONE_LEAVE_OUT(Xtensa);
}
