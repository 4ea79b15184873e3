// SPDX-License-Identifier: Apache-2.0
// The CPU features that generated code may need, as one table: LLVM's name of each feature, its spelling in
// /proc/cpuinfo, and how a program detects it on the machine it runs on.
//
// The compiler (compiler/target), the tuner and the runtime read the same rows, so a feature means the same to all.
// The table lists only features that generated code can use. Cryptography is left out: LLVM never emits it by itself,
// and some boards lack it. This header needs only the C++ library, because the runtime includes it.
#ifndef HONE_BASE_CPU_FEATURES_H_
#define HONE_BASE_CPU_FEATURES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hone {

// An output register of the instruction cpuid.
enum class CpuidRegister : uint8_t { kEax, kEbx, kEcx, kEdx };
enum class SavedState : uint8_t { kSse, kAvx, kAvx512 };  // what the operating system must save on a context switch

struct X86Feature {
  std::string_view name, cpuinfo;  // LLVM's name; the word in /proc/cpuinfo
  uint32_t leaf, subleaf;          // inputs of the instruction cpuid (eax and ecx)
  CpuidRegister result;            // the output register of cpuid that has the feature's bit
  int bit;
  SavedState state;
};

inline constexpr X86Feature kX86Features[] = {
    {"sse3", "pni", 1, 0, CpuidRegister::kEcx, 0, SavedState::kSse},
    {"ssse3", "ssse3", 1, 0, CpuidRegister::kEcx, 9, SavedState::kSse},
    {"fma", "fma", 1, 0, CpuidRegister::kEcx, 12, SavedState::kAvx},
    {"sse4.1", "sse4_1", 1, 0, CpuidRegister::kEcx, 19, SavedState::kSse},
    {"sse4.2", "sse4_2", 1, 0, CpuidRegister::kEcx, 20, SavedState::kSse},
    {"movbe", "movbe", 1, 0, CpuidRegister::kEcx, 22, SavedState::kSse},
    {"popcnt", "popcnt", 1, 0, CpuidRegister::kEcx, 23, SavedState::kSse},
    {"avx", "avx", 1, 0, CpuidRegister::kEcx, 28, SavedState::kAvx},
    {"f16c", "f16c", 1, 0, CpuidRegister::kEcx, 29, SavedState::kAvx},
    {"bmi", "bmi1", 7, 0, CpuidRegister::kEbx, 3, SavedState::kSse},
    {"avx2", "avx2", 7, 0, CpuidRegister::kEbx, 5, SavedState::kAvx},
    {"bmi2", "bmi2", 7, 0, CpuidRegister::kEbx, 8, SavedState::kSse},
    {"avx512f", "avx512f", 7, 0, CpuidRegister::kEbx, 16, SavedState::kAvx512},
    {"avx512dq", "avx512dq", 7, 0, CpuidRegister::kEbx, 17, SavedState::kAvx512},
    {"avx512ifma", "avx512ifma", 7, 0, CpuidRegister::kEbx, 21, SavedState::kAvx512},
    {"avx512cd", "avx512cd", 7, 0, CpuidRegister::kEbx, 28, SavedState::kAvx512},
    {"avx512bw", "avx512bw", 7, 0, CpuidRegister::kEbx, 30, SavedState::kAvx512},
    {"avx512vl", "avx512vl", 7, 0, CpuidRegister::kEbx, 31, SavedState::kAvx512},
    {"avx512vbmi", "avx512vbmi", 7, 0, CpuidRegister::kEcx, 1, SavedState::kAvx512},
    {"avx512vbmi2", "avx512_vbmi2", 7, 0, CpuidRegister::kEcx, 6, SavedState::kAvx512},
    {"gfni", "gfni", 7, 0, CpuidRegister::kEcx, 8, SavedState::kSse},
    {"avx512vnni", "avx512_vnni", 7, 0, CpuidRegister::kEcx, 11, SavedState::kAvx512},
    {"avx512bitalg", "avx512_bitalg", 7, 0, CpuidRegister::kEcx, 12, SavedState::kAvx512},
    {"avx512vpopcntdq", "avx512_vpopcntdq", 7, 0, CpuidRegister::kEcx, 14, SavedState::kAvx512},
    {"avx512fp16", "avx512_fp16", 7, 0, CpuidRegister::kEdx, 23, SavedState::kAvx512},
    {"avxvnni", "avx_vnni", 7, 1, CpuidRegister::kEax, 4, SavedState::kAvx},
    {"avx512bf16", "avx512_bf16", 7, 1, CpuidRegister::kEax, 5, SavedState::kAvx512},
    {"avxifma", "avx_ifma", 7, 1, CpuidRegister::kEax, 23, SavedState::kAvx},
    {"avxvnniint8", "avx_vnni_int8", 7, 1, CpuidRegister::kEdx, 4, SavedState::kAvx},
    {"avxneconvert", "avx_ne_convert", 7, 1, CpuidRegister::kEdx, 5, SavedState::kAvx},
    {"lzcnt", "abm", 0x80000001, 0, CpuidRegister::kEcx, 5, SavedState::kSse},
    {"sse4a", "sse4a", 0x80000001, 0, CpuidRegister::kEcx, 6, SavedState::kSse},
};

struct ArmFeature {
  std::string_view name, cpuinfo;  // LLVM's name; the word in /proc/cpuinfo
  int word;                        // the entry of the auxiliary vector: 1 = AT_HWCAP, 2 = AT_HWCAP2
  int bit;  // the bit in that entry, as in the kernel's uapi/asm/hwcap.h of arch/arm64 or arch/arm
};

inline constexpr ArmFeature kAArch64Features[] = {
    {"fp-armv8", "fp", 1, 0},       {"neon", "asimd", 1, 1},        {"lse", "atomics", 1, 8},
    {"fullfp16", "asimdhp", 1, 10}, {"rdm", "asimdrdm", 1, 12},     {"complxnum", "fcma", 1, 14},
    {"rcpc", "lrcpc", 1, 15},       {"sha3", "sha3", 1, 17},        {"dotprod", "asimddp", 1, 20},
    {"sve", "sve", 1, 22},          {"fp16fml", "asimdfhm", 1, 23}, {"sve2", "sve2", 2, 1},
    {"i8mm", "i8mm", 2, 13},        {"bf16", "bf16", 2, 14},
};

inline constexpr ArmFeature kArmFeatures[] = {
    {"neon", "neon", 1, 12},       {"vfp3", "vfpv3", 1, 13}, {"vfp4", "vfpv4", 1, 16},
    {"hwdiv-arm", "idiva", 1, 17}, {"d32", "vfpd32", 1, 19}, {"crc", "crc32", 2, 4},
};

template <typename Feature, size_t kCount>
constexpr std::array<std::string_view, kCount> NamesOf(const Feature (&table)[kCount]) {
  std::array<std::string_view, kCount> names;
  for (size_t i = 0; i < kCount; ++i) names[i] = table[i].name;
  return names;
}

inline constexpr auto kX86FeatureNames = NamesOf(kX86Features);
inline constexpr auto kAArch64FeatureNames = NamesOf(kAArch64Features);
inline constexpr auto kArmFeatureNames = NamesOf(kArmFeatures);

}  // namespace hone

#endif  // HONE_BASE_CPU_FEATURES_H_
