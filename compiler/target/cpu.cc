// SPDX-License-Identifier: Apache-2.0
// Targets that are CPUs: `cpu` (this host), `x86_64 -mcpu=znver4 -mattr=-avx512f -threads=2`, `arm64`.
#include "compiler/target/cpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/roofline.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "compiler/target/host.h"
#include "compiler/target/target_text.h"
#include "compiler/target/tensor_instructions.h"

namespace hone::target {
namespace {

// "cpu" is this machine's; the others are the words of the architectures.
constexpr auto kWords = [] {
  std::array<std::string_view, 1 + std::size(kArchs)> words = {"cpu"};
  for (size_t i = 0; i < std::size(kArchs); ++i) words[i + 1] = EntryOf(kArchs[i]).word;
  return words;
}();

// A kernel is one function call, and its parallel loops are shared out to the threads of a pool. Its tiles: tasks; a
// block in the second cache; blocks of the reduction; tiles of one block in the first cache; steps; registers.
constexpr ExecutionFacts kCpuFacts = {.tiling = "SSRSRS"};

bool HasAll(const FeatureSet& features, std::initializer_list<std::string_view> wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](std::string_view f) { return features.contains(f); });
}

void FillVectors(const Microarchitecture& row, const FeatureSet& features, Target* target) {
  target->vector_bits = 128;
  target->vector_registers = EntryOf(row.family.arch).vector_registers;
  if (row.family.arch == Arch::kX86_64) {
    const bool wide = HasAll(features, {"avx512f", "avx512vl", "avx512bw", "avx512dq"});
    target->vector_bits = wide ? 512 : 256;
    target->vector_registers = wide ? 32 : 16;
  }
  target->core = row.core;
  if (target->vector_bits <= row.unit_bits) return;
  // Vectors wider than the arithmetic units are processed in parts. Loads suffer slightly less than arithmetic.
  const double part = static_cast<double>(row.unit_bits) / target->vector_bits;
  target->core.multiply_adds *= part;
  target->core.loads *= 1.2 * part;
}

absl::StatusOr<const Microarchitecture*> FindCpu(Arch arch, std::string_view name) {
  if (const Microarchitecture* row = FindMicroarchitecture(arch, name)) return row;
  std::vector<std::string_view> known;
  for (const Microarchitecture& row : Microarchitectures()) {
    if (row.family.arch == arch) known.push_back(row.name);
  }
  return absl::InvalidArgumentError(
      fmt::format("target: no CPU '{}' for {}; there are {}", name, MachineName(arch), fmt::join(known, " ")));
}

absl::StatusOr<FeatureSet> AllFeatures(const Target& target) {
  HONE_ASSIGN_OR_RETURN(const Microarchitecture* row, FindCpu(target.arch, target.cpu));
  return Apply(target.arch, target.features, FeaturesOf(*row));
}

// Applies -mcpu= and -mattr= to `start`, whose caches and threads stay.
absl::StatusOr<Target> ChooseCpu(const TargetText& text, const Target& start) {
  const TargetText::Option* const cpu = text.Find("-mcpu");
  const TargetText::Option* const features = text.Find("-mattr");
  if (cpu == nullptr && features == nullptr) return start;
  HONE_ASSIGN_OR_RETURN(const Microarchitecture* row, FindCpu(start.arch, cpu != nullptr ? cpu->value : start.cpu));
  FeatureSet usual = FeaturesOf(*row);
  if (cpu == nullptr) {
    HONE_ASSIGN_OR_RETURN(usual, AllFeatures(start));
  }
  HONE_ASSIGN_OR_RETURN(const FeatureSet wanted,
                        Apply(start.arch, features != nullptr ? features->value : "", std::move(usual)));
  Target target = CpuTarget(*row, wanted);
  target.threads = start.threads;
  target.memory = start.memory;
  return target;
}

// The features that code for every CPU of the architecture relies on.
absl::Status CheckVectors(const Target& target) {
  const ArchEntry arch = EntryOf(target.arch);
  HONE_ASSIGN_OR_RETURN(const FeatureSet features, AllFeatures(target));
  for (const std::string_view feature : arch.needed) {
    if (feature.empty() || features.contains(feature)) continue;
    return absl::InvalidArgumentError(fmt::format("target: CPU '{}' lacks {}; Hone's {} kernels need {}", target.cpu,
                                                  feature, arch.title, arch.needed_title));
  }
  return absl::OkStatus();
}

absl::StatusOr<Target> Parse(const TargetText& text) {
  Target start;
  if (text.word == "cpu") {
    start = HostCpu();
  } else {
    const Arch arch = *std::ranges::find(kArchs, text.word, [](Arch a) { return EntryOf(a).word; });
    const TargetText::Option* const cpu = text.Find("-mcpu");
    HONE_ASSIGN_OR_RETURN(const Microarchitecture* row,
                          FindCpu(arch, cpu != nullptr ? cpu->value : EntryOf(arch).general));
    start = CpuTarget(*row, FeaturesOf(*row));
  }
  HONE_ASSIGN_OR_RETURN(Target target, ChooseCpu(text, start));
  HONE_RETURN_IF_ERROR(ParseNumbers(text, {"-mcpu=", "-mattr="}, target));
  if (target.threads > kThreadsMax) {
    return absl::InvalidArgumentError(fmt::format(
        "target: -threads={} is more than the {} threads that a kernel may use", target.threads, kThreadsMax));
  }
  HONE_RETURN_IF_ERROR(CheckVectors(target));
  return target;
}

Target Typical() {
  const Microarchitecture& row = *FindMicroarchitecture(Arch::kX86_64, EntryOf(Arch::kX86_64).general);
  return CpuTarget(row, FeaturesOf(row));
}

std::string PrintCpu(const Target& target) {
  std::string text = fmt::format("{} -mcpu={}", EntryOf(target.arch).word, target.cpu);
  if (!target.features.empty()) text += " -mattr=" + target.features;
  return text;
}

std::vector<Number> Numbers(Target& target) {
  Memory& memory = target.memory;
  return {{"-threads", &target.threads, nullptr},
          {"-l1", nullptr, &memory.l1_bytes},
          {"-l2", nullptr, &memory.l2_bytes},
          {"-l3", nullptr, &memory.l3_bytes}};
}

std::string DeviceOfCpu(const Target&) { return "cpu"; }

absl::StatusOr<Roofline> RooflineOfCpu(const Target&, int threads) {
  ThreadPool pool(threads);
  return hone::MeasureRoofline(pool);
}

}  // namespace

Target CpuTarget(const Microarchitecture& row, const FeatureSet& features) {
  Target target;
  target.arch = row.family.arch;
  target.cpu = row.name;
  target.features = FeatureDifference(features, FeaturesOf(row));
  target.memory.l1_bytes = row.caches.l1 << 10;
  target.memory.l2_bytes = row.caches.l2 << 10;
  target.memory.l3_bytes = row.caches.l3 << 10;
  FillVectors(row, features, &target);
  target.has_maximum = EntryOf(target.arch).has_maximum;
  target.tensor_instructions = TensorInstructionsOf(target.arch, features);
  return target;
}

constinit const KindEntry kCpuEntry = {kCpuFacts, kWords,  Typical,     Parse,
                                       PrintCpu,  Numbers, DeviceOfCpu, RooflineOfCpu};

}  // namespace hone::target
