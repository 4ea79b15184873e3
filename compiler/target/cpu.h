// SPDX-License-Identifier: Apache-2.0
// Internal to compiler/target: CPU targets, with the capabilities derived from their table row and features.
#ifndef HONE_COMPILER_TARGET_CPU_H_
#define HONE_COMPILER_TARGET_CPU_H_

#include <array>
#include <string_view>

#include "base/code_kind.h"
#include "compiler/target/cpu_features.h"
#include "compiler/target/microarchitectures.h"
#include "compiler/target/target.h"

namespace hone::target {

// The architectures of CPUs, as one table. docs/howto/add-an-architecture.md names the other tables that a new one
// needs.
struct ArchEntry {
  std::string_view word;                   // the first word of a target's text
  CodeKind code;                           // the kind of code that its CPUs run
  std::string_view general;                // the table's CPU for texts without -mcpu=; stands for all CPUs
  std::string_view title;                  // the name in messages
  std::array<std::string_view, 7> needed;  // features that all code for the architecture uses; empty entries are unused
  std::string_view needed_title;           // these features in messages
  int vector_registers;                    // number of the widest vector registers, without AVX-512
  bool has_maximum;                        // one instruction is IEEE maximum; maxps ignores a NaN in one operand
};

inline constexpr Arch kArchs[] = {Arch::kX86_64, Arch::kAArch64, Arch::kArm};

constexpr ArchEntry EntryOf(Arch arch) {
  switch (arch) {
    case Arch::kX86_64:
      return {.word = "x86_64",
              .code = CodeKind::kX86_64,
              .general = "x86-64-v3",
              .title = "x86-64",
              .needed = {"sse3", "ssse3", "sse4.1", "sse4.2", "avx", "avx2", "fma"},
              .needed_title = "AVX2 and FMA",
              .vector_registers = 16,
              .has_maximum = false};
    case Arch::kAArch64:
      return {.word = "arm64",
              .code = CodeKind::kAArch64,
              .general = "generic",
              .title = "arm64",
              .needed = {"fp-armv8", "neon"},
              .needed_title = "NEON",
              .vector_registers = 32,
              .has_maximum = true};
    case Arch::kArm:
      return {.word = "arm",
              .code = CodeKind::kArm,
              .general = "cortex-a7",
              .title = "32-bit Arm",
              .needed = {"neon", "vfp4"},
              .needed_title = "NEON and VFPv4",
              .vector_registers = 16,
              .has_maximum = true};
  }
  return {};
}

// Returns the target for a CPU of this row with exactly these features, the row's typical caches, and one thread. Its
// vectors are as wide as the features allow, even if the row's arithmetic units are narrower.
Target CpuTarget(const Microarchitecture& row, const FeatureSet& features);

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_CPU_H_
