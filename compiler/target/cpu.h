// SPDX-License-Identifier: Apache-2.0
// Internal to compiler/target: CPU targets, with the capabilities derived from their table row and features.
#ifndef HONE_COMPILER_TARGET_CPU_H_
#define HONE_COMPILER_TARGET_CPU_H_

#include <string_view>

#include "compiler/target/cpu_features.h"
#include "compiler/target/microarchitectures.h"
#include "compiler/target/target.h"

namespace hone::target {

// The names of an architecture, and the CPU of the table that stands for all CPUs of the architecture.
struct ArchEntry {
  std::string_view word;     // the first word of a target's text
  std::string_view machine;  // the operating system's name
  std::string_view general;
};

constexpr ArchEntry EntryOf(Arch arch) {
  switch (arch) {
    case Arch::kX86_64:
      return {"x86_64", "x86_64", "x86-64-v3"};
    case Arch::kAArch64:
      return {"arm64", "aarch64", "generic"};
  }
  return {};
}

// Returns the target for a CPU of this row with exactly these features, the row's typical caches, and one thread.
Target CpuTarget(const Microarchitecture& row, const FeatureSet& features);

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_CPU_H_
