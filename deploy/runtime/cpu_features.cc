// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/cpu_features.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) || defined(__arm__)
#include <sys/auxv.h>
#endif

namespace hone::runtime {
namespace {

#if defined(__x86_64__)
// The register sets that the operating system saves (XCR0); 0 if the CPU does not say.
uint64_t EnabledState() {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr uint32_t kOsxsave = 1u << 27;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsxsave) == 0) return 0;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

// Whether the CPU has the feature and the operating system saves the registers that it uses. enabled: EnabledState().
bool HostHas(const X86Feature& feature, uint64_t enabled) {
  constexpr uint64_t kAvxState = 0x6, kAvx512State = 0xe6;
  if (feature.state == SavedState::kAvx && (enabled & kAvxState) != kAvxState) return false;
  if (feature.state == SavedState::kAvx512 && (enabled & kAvx512State) != kAvx512State) return false;
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

std::optional<CodeKind> HostCode() {
#if defined(__x86_64__)
  return CodeKind::kX86_64;
#elif defined(__aarch64__)
  return CodeKind::kAArch64;
#elif defined(__arm__)
  return CodeKind::kArm;
#else
  return std::nullopt;
#endif
}

bool IsKnownFeature(CodeKind code, std::string_view feature) {
  const std::optional<CodeKindEntry> entry = FindCodeKind(code);
  return entry && std::ranges::find(entry->cpu_features, feature) != entry->cpu_features.end();
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

Fault CheckHostRuns(CodeKind code, std::string_view features) {
  const std::optional<CodeKind> host = HostCode();
  if (host != code) {
    return Incompatible("the code is for " + std::string(FindCodeKind(code)->name) + ", this machine is " +
                        std::string(host ? FindCodeKind(*host)->name : "of an architecture without packages") +
                        "; compile the model for this machine (hone compile --target)");
  }
  const std::vector<std::string_view> present = HostFeatures();
  std::string missing;
  while (!features.empty()) {
    const std::string_view feature = features.substr(0, features.find(','));
    features.remove_prefix(std::min(features.size(), feature.size() + 1));
    if (feature.empty() || std::find(present.begin(), present.end(), feature) != present.end()) continue;
    missing += (missing.empty() ? "" : ", ") + std::string(feature);
    if (!IsKnownFeature(code, feature)) missing += " (unknown to this runtime)";
  }
  if (missing.empty()) return {};
  return Incompatible("the code needs " + missing +
                      ", this CPU lacks it; compile the model for this CPU (hone compile --target)");
}

}  // namespace hone::runtime
