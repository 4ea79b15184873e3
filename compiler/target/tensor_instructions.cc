// SPDX-License-Identifier: Apache-2.0
#include "compiler/target/tensor_instructions.h"

#include <algorithm>
#include <array>

namespace hone::target {
namespace {

using ir::TensorInstruction;

// Several rows for one instruction are alternative feature sets.
struct Row {
  TensorInstruction instruction;
  Arch arch;
  std::array<std::string_view, 3>
      features;  // all features that the instruction needs, including those that others imply
};

constexpr Row kTable[] = {
    {TensorInstruction::kVpdpbusd512, Arch::kX86_64, {"avx512vnni", "avx512f"}},
    {TensorInstruction::kVpdpbusd256, Arch::kX86_64, {"avx512vnni", "avx512vl", "avx512f"}},
    {TensorInstruction::kVpdpbusd256, Arch::kX86_64, {"avxvnni"}},
    {TensorInstruction::kUdot, Arch::kAArch64, {"dotprod", "neon"}},
    {TensorInstruction::kSdot, Arch::kAArch64, {"dotprod", "neon"}},
    {TensorInstruction::kUsdot, Arch::kAArch64, {"i8mm", "neon"}},
};

}  // namespace

std::vector<TensorInstruction> TensorInstructionsOf(Arch arch, const FeatureSet& features) {
  std::vector<TensorInstruction> found;
  for (const Row& row : kTable) {
    const bool has = std::all_of(row.features.begin(), row.features.end(),
                                 [&](std::string_view f) { return f.empty() || features.contains(f); });
    if (row.arch != arch || !has || std::find(found.begin(), found.end(), row.instruction) != found.end()) continue;
    found.push_back(row.instruction);
  }
  return found;
}

}  // namespace hone::target
