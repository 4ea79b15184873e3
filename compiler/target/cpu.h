// SPDX-License-Identifier: Apache-2.0
// Inside compiler/target: CPUs as targets, with the capabilities that follow from what they are.
#ifndef HONE_COMPILER_TARGET_CPU_H_
#define HONE_COMPILER_TARGET_CPU_H_

#include <string_view>

#include "compiler/target/cpu_features.h"
#include "compiler/target/microarchitectures.h"
#include "compiler/target/target.h"

namespace hone::target {

// How an architecture is called, and the CPU of the table that stands for all of its CPUs.
struct ArchEntry {
  std::string_view word;     // that begins the text of a target
  std::string_view machine;  // by the operating system
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

// A CPU of this row with exactly these features, its typical caches and one thread.
Target CpuTarget(const Microarchitecture& row, const FeatureSet& features);

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_CPU_H_
