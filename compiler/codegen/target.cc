#include "compiler/codegen/target.h"

#include <fmt/format.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/Host.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/llvm/setup.h"

namespace hone::codegen {
namespace {

#if defined(__x86_64__)
constexpr Arch kHostArch = Arch::kX86_64;
#else
constexpr Arch kHostArch = Arch::kAArch64;
#endif

// The features that decide what our kernels look like; the CPU name carries the rest (scheduling).
constexpr std::string_view kX86Features[] = {"avx2",     "fma",      "f16c",       "avx512f",   "avx512bw",
                                             "avx512dq", "avx512vl", "avx512vnni", "avx512bf16"};
constexpr std::string_view kArmFeatures[] = {"neon", "dotprod", "fullfp16"};

std::string HostFeatures() {
  const llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  std::string text;
  const auto add = [&](std::string_view name) {
    if (host.lookup(llvm::StringRef(name.data(), name.size())))
      text += fmt::format("{}+{}", text.empty() ? "" : ",", name);
  };
  if (kHostArch == Arch::kX86_64) {
    for (const std::string_view f : kX86Features) add(f);
  } else {
    for (const std::string_view f : kArmFeatures) add(f);
  }
  return text;
}

int HostThreads() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

int64_t CacheBytes(int name, int64_t fallback) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : fallback;
}

// What the CPU and features together offer, as LLVM sees it.
absl::Status FillCapabilities(Target* target) {
  InitializeLlvm();
  std::string error;
  const std::string triple = Triple(*target);
  const llvm::Target* llvm_target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (llvm_target == nullptr) return absl::InternalError("LLVM lacks the back end for " + triple + ": " + error);
  const std::unique_ptr<llvm::MCSubtargetInfo> info(
      llvm_target->createMCSubtargetInfo(triple, target->cpu, target->features));
  if (info == nullptr || !info->isCPUStringValid(target->cpu)) {
    return absl::InvalidArgumentError(
        fmt::format("target: LLVM {} knows no CPU '{}' for {}; see `llc -march={} -mcpu=help`", LLVM_VERSION_STRING,
                    target->cpu, triple, target->arch == Arch::kX86_64 ? "x86-64" : "aarch64"));
  }
  if (target->arch == Arch::kAArch64) {
    target->vector_bits = 128;
    target->vector_registers = 32;
    return absl::OkStatus();
  }
  if (!info->checkFeatures("+avx2") || !info->checkFeatures("+fma")) {
    return absl::InvalidArgumentError(
        fmt::format("target: CPU '{}' lacks AVX2 and FMA, which Hone's x86-64 kernels need", target->cpu));
  }
  const bool avx512 = info->checkFeatures("+avx512f") && info->checkFeatures("+avx512vl") &&
                      info->checkFeatures("+avx512bw") && info->checkFeatures("+avx512dq");
  target->vector_bits = avx512 ? 512 : 256;
  target->vector_registers = avx512 ? 32 : 16;
  return absl::OkStatus();
}

absl::Status ParseOption(std::string_view option, Target* target) {
  const size_t equals = option.find('=');
  const std::string_view name = option.substr(0, equals);
  const std::string value(equals == std::string_view::npos ? "" : option.substr(equals + 1));
  const auto integer = [&](auto* out) -> absl::Status {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *out);
    if (error != std::errc() || end != value.data() + value.size() || *out < 1) {
      return absl::InvalidArgumentError(fmt::format("target: {} wants a positive number, not '{}'", name, value));
    }
    return absl::OkStatus();
  };
  if (name == "-mcpu") {
    target->cpu = value;
    target->features.clear();
    return absl::OkStatus();
  }
  if (name == "-mattr") {
    target->features = value;
    return absl::OkStatus();
  }
  if (name == "-threads") return integer(&target->threads);
  if (name == "-l1") return integer(&target->l1_bytes);
  if (name == "-l2") return integer(&target->l2_bytes);
  if (name == "-l3") return integer(&target->l3_bytes);
  return absl::InvalidArgumentError(
      fmt::format("target: no option '{}'; there are -mcpu= -mattr= -threads= -l1= -l2= -l3=", name));
}

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

Target HostTarget() {
  Target target;
  target.arch = kHostArch;
  target.cpu = llvm::sys::getHostCPUName().str();
  target.features = HostFeatures();
  target.threads = HostThreads();
  target.l1_bytes = CacheBytes(_SC_LEVEL1_DCACHE_SIZE, target.l1_bytes);
  target.l2_bytes = CacheBytes(_SC_LEVEL2_CACHE_SIZE, target.l2_bytes);
  target.l3_bytes = CacheBytes(_SC_LEVEL3_CACHE_SIZE, target.l3_bytes);
  return target;
}

}  // namespace

bool Target::IsHost() const { return arch == kHostArch; }

absl::StatusOr<Target> ParseTarget(std::string_view text) {
  const std::vector<std::string_view> words = Words(text);
  const std::string_view kind = words.empty() ? "cpu" : words[0];
  Target target;
  if (kind == "cpu") {
    target = HostTarget();
  } else if (kind == "x86_64" || kind == "arm64") {
    target.arch = kind == "arm64" ? Arch::kAArch64 : Arch::kX86_64;
    target.cpu = kind == "arm64" ? "generic" : "x86-64-v3";
  } else {
    return absl::InvalidArgumentError(
        fmt::format("target: no kind '{}'; there are cpu (this host), x86_64, arm64", kind));
  }
  for (size_t i = 1; i < words.size(); ++i) HONE_RETURN_IF_ERROR(ParseOption(words[i], &target));
  HONE_RETURN_IF_ERROR(FillCapabilities(&target));
  return target;
}

std::string Print(const Target& target) {
  std::string text = fmt::format("{} -mcpu={}", target.arch == Arch::kAArch64 ? "arm64" : "x86_64", target.cpu);
  if (!target.features.empty()) text += " -mattr=" + target.features;
  return text + fmt::format(" -threads={} -l1={} -l2={} -l3={}", target.threads, target.l1_bytes, target.l2_bytes,
                            target.l3_bytes);
}

}  // namespace hone::codegen
