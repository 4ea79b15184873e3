// A Target: what code is generated for, as a value with capabilities. Not a device: many devices can fit one target.
//
// Text: `cpu` (this host), `cpu -mcpu=znver4 -threads=2`, `arm64 -mcpu=cortex-a76`, with optional -mattr=+a,-b. Print
// writes the complete canonical text, which is part of every record's key.
#ifndef HONE_COMPILER_CODEGEN_TARGET_H_
#define HONE_COMPILER_CODEGEN_TARGET_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone::codegen {

enum class Arch : uint8_t { kX86_64, kAArch64 };

struct Target {
  Arch arch = Arch::kX86_64;
  std::string cpu;       // LLVM's name: "znver4", "cortex-a76"
  std::string features;  // LLVM's list: "+avx512f,+fma"; what the CPU implies may be absent
  int threads = 1;
  int vector_bits = 256;  // of the widest vector registers that are worth using
  int vector_registers = 16;
  int64_t l1_bytes = 32 << 10, l2_bytes = 512 << 10, l3_bytes = 8 << 20;  // data caches; l1 and l2 per core

  int Lanes(int element_bytes) const { return vector_bits / 8 / element_bytes; }
  bool IsHost() const;  // code for it can run in this process
};

absl::StatusOr<Target> ParseTarget(std::string_view text);
std::string Print(const Target& target);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_TARGET_H_
