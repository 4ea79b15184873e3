// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/setup.h"

#include <fmt/format.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/backend.h"
#include "compiler/target/cpu_features.h"

namespace hone::codegen {
namespace {

// LLVM ends the process after this call.
void ReportFatalError(void*, const char* reason, bool) {
  const std::string& subject = CompilationSubject::current();
  fmt::print(stderr, "LLVM failed{}: {}\n", subject.empty() ? "" : " while compiling " + subject, reason);
}

// An architecture of CPUs, for LLVM.
struct LlvmArch {
  std::string_view triple;
  std::string_view features;  // features that every CPU of the architecture has but LLVM's CPUs lack; may be empty
};

LlvmArch LlvmArchOf(target::Arch arch) {
  switch (arch) {
    case target::Arch::kX86_64:
      return {"x86_64-pc-linux-gnu", ""};
    case target::Arch::kAArch64:
      return {"aarch64-linux-gnu", ""};
    case target::Arch::kArm:
      // With a vendor in the triple: without it LLVM takes "linux" for the vendor, and calls libgcc's functions with
      // their arguments in the wrong registers.
      return {"armv7-unknown-linux-gnueabihf", "+neon"};
  }
  HONE_CHECK(false);
  return {};
}

}  // namespace

void InitializeLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_fatal_error_handler(ReportFatalError);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeARMTargetInfo();
    LLVMInitializeARMTarget();
    LLVMInitializeARMTargetMC();
    LLVMInitializeARMAsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

std::string Triple(const target::Target& target) {
  if (target.kind == target::Kind::kCuda) return "nvptx64-nvidia-cuda";
  HONE_CHECK(target.kind == target::Kind::kCpu);
  return std::string(LlvmArchOf(target.arch).triple);
}

std::string LlvmFeatures(const target::Target& target) {
  // For LLVM 19, 512-bit vectors are a feature of their own (evex512). CPUs in its table have it; other CPUs with
  // AVX-512 must be given it, or LLVM fails to select instructions.
  const bool wide = target.features.find("+avx512") != std::string::npos;
  if (wide) return target.features + ",+evex512";
  const std::string_view usual = target.kind == target::Kind::kCpu ? LlvmArchOf(target.arch).features : "";
  return fmt::format("{}{}{}", usual, usual.empty() || target.features.empty() ? "" : ",", target.features);
}

std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(const target::Target& target) {
  InitializeLlvm();
  std::string error;
  const llvm::Target* llvm_target = llvm::TargetRegistry::lookupTarget(Triple(target), error);
  HONE_CHECK(llvm_target != nullptr);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;  // multiply-add may be fused: "contract"
  options.FloatABIType = llvm::FloatABI::Hard;       // 32-bit Arm: its loader refuses objects of the soft-float ABI
  return std::unique_ptr<llvm::TargetMachine>(
      llvm_target->createTargetMachine(Triple(target), target.cpu, LlvmFeatures(target), options, llvm::Reloc::PIC_,
                                       std::nullopt, llvm::CodeGenOptLevel::Default));
}

std::vector<std::string> EnabledFeatures(const target::Target& target) {
  InitializeLlvm();
  std::string error;
  const llvm::Target* llvm_target = llvm::TargetRegistry::lookupTarget(Triple(target), error);
  HONE_CHECK(llvm_target != nullptr);
  const std::unique_ptr<llvm::MCSubtargetInfo> info(
      llvm_target->createMCSubtargetInfo(Triple(target), target.cpu, LlvmFeatures(target)));
  const target::FeatureSet& known = target::KnownFeatures(target.arch);
  std::vector<std::string> features;
  for (const llvm::SubtargetFeatureKV& feature : info->getEnabledProcessorFeatures()) {
    if (known.contains(feature.Key)) features.emplace_back(feature.Key);
  }
  std::sort(features.begin(), features.end());
  return features;
}

}  // namespace hone::codegen
