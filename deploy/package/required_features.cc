#include "deploy/package/required_features.h"

#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <memory>

#include "compiler/codegen/llvm/setup.h"
#include "deploy/runtime/cpu_features.h"

namespace hone::package {

Arch ArchOf(const codegen::Target& target) {
  return target.arch == codegen::Arch::kAArch64 ? Arch::kAArch64 : Arch::kX86_64;
}

std::vector<std::string> RequiredFeatures(const codegen::Target& target) {
  codegen::InitializeLlvm();
  const std::unique_ptr<llvm::TargetMachine> machine = codegen::MakeTargetMachine(target);
  std::vector<std::string> features;
  for (const llvm::SubtargetFeatureKV& feature : machine->getMCSubtargetInfo()->getEnabledProcessorFeatures()) {
    if (runtime::IsKnownFeature(ArchOf(target), feature.Key)) features.emplace_back(feature.Key);
  }
  std::sort(features.begin(), features.end());
  return features;
}

}  // namespace hone::package
