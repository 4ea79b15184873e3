#include "deploy/runtime/cpu_features.h"

#include <algorithm>
#include <cstdint>
#include <span>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) || defined(__arm__)
#include <sys/auxv.h>
#endif

namespace hone::runtime {
namespace {

using package::Arch;

// The tables are data, not calls, so that every host knows the features of every architecture.

enum class Register : uint8_t { kEax, kEbx, kEcx, kEdx };
enum class State : uint8_t { kSse, kAvx, kAvx512 };  // what the operating system must save on a context switch

struct X86Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register result;
  int bit;
  State state;
};

constexpr X86Feature kX86Features[] = {
    {"sse3", 1, 0, Register::kEcx, 0, State::kSse},
    {"pclmul", 1, 0, Register::kEcx, 1, State::kSse},
    {"ssse3", 1, 0, Register::kEcx, 9, State::kSse},
    {"fma", 1, 0, Register::kEcx, 12, State::kAvx},
    {"sse4.1", 1, 0, Register::kEcx, 19, State::kSse},
    {"sse4.2", 1, 0, Register::kEcx, 20, State::kSse},
    {"movbe", 1, 0, Register::kEcx, 22, State::kSse},
    {"popcnt", 1, 0, Register::kEcx, 23, State::kSse},
    {"aes", 1, 0, Register::kEcx, 25, State::kSse},
    {"avx", 1, 0, Register::kEcx, 28, State::kAvx},
    {"f16c", 1, 0, Register::kEcx, 29, State::kAvx},
    {"bmi", 7, 0, Register::kEbx, 3, State::kSse},
    {"avx2", 7, 0, Register::kEbx, 5, State::kAvx},
    {"bmi2", 7, 0, Register::kEbx, 8, State::kSse},
    {"avx512f", 7, 0, Register::kEbx, 16, State::kAvx512},
    {"avx512dq", 7, 0, Register::kEbx, 17, State::kAvx512},
    {"adx", 7, 0, Register::kEbx, 19, State::kSse},
    {"avx512ifma", 7, 0, Register::kEbx, 21, State::kAvx512},
    {"avx512cd", 7, 0, Register::kEbx, 28, State::kAvx512},
    {"sha", 7, 0, Register::kEbx, 29, State::kSse},
    {"avx512bw", 7, 0, Register::kEbx, 30, State::kAvx512},
    {"avx512vl", 7, 0, Register::kEbx, 31, State::kAvx512},
    {"avx512vbmi", 7, 0, Register::kEcx, 1, State::kAvx512},
    {"avx512vbmi2", 7, 0, Register::kEcx, 6, State::kAvx512},
    {"gfni", 7, 0, Register::kEcx, 8, State::kSse},
    {"vaes", 7, 0, Register::kEcx, 9, State::kAvx},
    {"vpclmulqdq", 7, 0, Register::kEcx, 10, State::kAvx},
    {"avx512vnni", 7, 0, Register::kEcx, 11, State::kAvx512},
    {"avx512bitalg", 7, 0, Register::kEcx, 12, State::kAvx512},
    {"avx512vpopcntdq", 7, 0, Register::kEcx, 14, State::kAvx512},
    {"avx512vp2intersect", 7, 0, Register::kEdx, 8, State::kAvx512},
    {"avx512fp16", 7, 0, Register::kEdx, 23, State::kAvx512},
    {"avxvnni", 7, 1, Register::kEax, 4, State::kAvx},
    {"avx512bf16", 7, 1, Register::kEax, 5, State::kAvx512},
    {"lzcnt", 0x80000001, 0, Register::kEcx, 5, State::kSse},
    {"sse4a", 0x80000001, 0, Register::kEcx, 6, State::kSse},
};

struct ArmFeature {
  std::string_view name;
  int word;  // 1: AT_HWCAP, 2: AT_HWCAP2
  int bit;   // of the kernel's user interface, arch/arm64 and arch/arm uapi/asm/hwcap.h
};

constexpr ArmFeature kAArch64Features[] = {
    {"fp-armv8", 1, 0}, {"neon", 1, 1},      {"aes", 1, 3},   {"sha2", 1, 6},     {"crc", 1, 7},
    {"lse", 1, 8},      {"fullfp16", 1, 10}, {"rdm", 1, 12},  {"jsconv", 1, 13},  {"complxnum", 1, 14},
    {"rcpc", 1, 15},    {"sha3", 1, 17},     {"sm4", 1, 19},  {"dotprod", 1, 20}, {"sve", 1, 22},
    {"fp16fml", 1, 23}, {"sve2", 2, 1},      {"i8mm", 2, 13}, {"bf16", 2, 14},
};

constexpr ArmFeature kArmFeatures[] = {
    {"neon", 1, 12}, {"vfp3", 1, 13}, {"vfp4", 1, 16}, {"hwdiv-arm", 1, 17}, {"d32", 1, 19},
};

std::vector<std::string_view> NamesOf(Arch arch) {
  std::vector<std::string_view> names;
  if (arch == Arch::kX86_64) {
    for (const X86Feature& feature : kX86Features) names.push_back(feature.name);
  } else if (arch == Arch::kAArch64) {
    for (const ArmFeature& feature : kAArch64Features) names.push_back(feature.name);
  } else if (arch == Arch::kArm) {
    for (const ArmFeature& feature : kArmFeatures) names.push_back(feature.name);
  }
  return names;
}

#if defined(__x86_64__)
// The register sets that the operating system has switched on (XCR0).
uint64_t EnabledState() {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr uint32_t kOsxsave = 1u << 27;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsxsave) == 0) return 0;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

bool HostHas(const X86Feature& feature, uint64_t enabled) {
  constexpr uint64_t kAvxState = 0x6, kAvx512State = 0xe6;
  if (feature.state == State::kAvx && (enabled & kAvxState) != kAvxState) return false;
  if (feature.state == State::kAvx512 && (enabled & kAvx512State) != kAvx512State) return false;
  uint32_t registers[4] = {};
  if (__get_cpuid_count(feature.leaf, feature.subleaf, &registers[0], &registers[1], &registers[2], &registers[3]) ==
      0) {
    return false;
  }
  return (registers[static_cast<int>(feature.result)] >> feature.bit) & 1;
}
#elif defined(__aarch64__) || defined(__arm__)
std::vector<std::string_view> Present(std::span<const ArmFeature> features) {
  std::vector<std::string_view> present;
  for (const ArmFeature& feature : features) {
    const unsigned long word = getauxval(feature.word == 1 ? AT_HWCAP : AT_HWCAP2);
    if ((word >> feature.bit) & 1) present.push_back(feature.name);
  }
  return present;
}
#endif

}  // namespace

std::optional<Arch> HostArch() {
#if defined(__x86_64__)
  return Arch::kX86_64;
#elif defined(__aarch64__)
  return Arch::kAArch64;
#elif defined(__arm__)
  return Arch::kArm;
#else
  return std::nullopt;
#endif
}

std::string_view Name(Arch arch) {
  switch (arch) {
    case Arch::kX86_64:
      return "x86-64";
    case Arch::kAArch64:
      return "aarch64";
    case Arch::kArm:
      return "armv7";
  }
  return "unknown";
}

bool IsKnownFeature(Arch arch, std::string_view feature) {
  const std::vector<std::string_view> names = NamesOf(arch);
  return std::find(names.begin(), names.end(), feature) != names.end();
}

std::vector<std::string_view> HostFeatures() {
#if defined(__x86_64__)
  const uint64_t enabled = EnabledState();
  std::vector<std::string_view> present;
  for (const X86Feature& feature : kX86Features) {
    if (HostHas(feature, enabled)) present.push_back(feature.name);
  }
  return present;
#elif defined(__aarch64__)
  return Present(kAArch64Features);
#elif defined(__arm__)
  return Present(kArmFeatures);
#else
  return {};
#endif
}

Fault CheckHostRuns(Arch arch, std::string_view features) {
  const std::optional<Arch> host = HostArch();
  if (host != arch) {
    return Incompatible("package is for " + std::string(Name(arch)) + ", this machine is " +
                        std::string(host ? Name(*host) : "of an architecture without packages") +
                        "; compile the model for this target");
  }
  const std::vector<std::string_view> present = HostFeatures();
  std::string missing;
  while (!features.empty()) {
    const std::string_view feature = features.substr(0, features.find(','));
    features.remove_prefix(std::min(features.size(), feature.size() + 1));
    if (feature.empty() || std::find(present.begin(), present.end(), feature) != present.end()) continue;
    missing += (missing.empty() ? "" : ", ") + std::string(feature);
    if (!IsKnownFeature(arch, feature)) missing += " (unknown to this runtime)";
  }
  if (missing.empty()) return {};
  return Incompatible("package needs " + missing +
                      ", this CPU lacks it; compile the model for this CPU (hone compile --target)");
}

}  // namespace hone::runtime
