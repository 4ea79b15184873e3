#include "compiler/target/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/target/capabilities.h"
#include "compiler/target/cpu_features.h"
#include "compiler/target/host.h"
#include "compiler/target/microarchitectures.h"

namespace hone::target {
namespace {

struct Option {
  std::string_view name, value;  // "-threads", "2"
};

struct Text {
  std::string_view kind = "cpu";
  std::vector<Option> options;

  const Option* Find(std::string_view name) const {
    const auto it = std::find_if(options.rbegin(), options.rend(), [&](const Option& o) { return o.name == name; });
    return it == options.rend() ? nullptr : &*it;
  }
};

Text Split(std::string_view text) {
  Text result;
  for (bool first = true; !text.empty();) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    const size_t equals = std::min(word.find('='), word.size());
    if (first) {
      result.kind = word;
    } else {
      result.options.push_back({word.substr(0, equals), word.substr(std::min(equals + 1, word.size()))});
    }
    first = false;
  }
  return result;
}

// An option that is a positive number, and where it goes.
struct Number {
  std::string_view name;
  int* small = nullptr;
  int64_t* large = nullptr;
};

std::vector<Number> NumbersOf(Target* target) {
  Memory& memory = target->memory;
  if (target->kind == Kind::kCpu) {
    return {{"-threads", &target->threads, nullptr},
            {"-l1", nullptr, &memory.l1_bytes},
            {"-l2", nullptr, &memory.l2_bytes},
            {"-l3", nullptr, &memory.l3_bytes}};
  }
  Hierarchy& hierarchy = target->hierarchy;
  return {{"-units", &hierarchy.units, nullptr},      {"-lanes", &hierarchy.max_lanes, nullptr},
          {"-width", &hierarchy.lane_width, nullptr}, {"-shared", nullptr, &memory.shared_bytes},
          {"-gain", &memory.shared_gain, nullptr},    {"-registers", nullptr, &memory.registers_bytes},
          {"-l1", nullptr, &memory.l1_bytes},         {"-l2", nullptr, &memory.l2_bytes},
          {"-vector", &target->vector_bits, nullptr}};
}

template <typename T>
absl::Status ParseNumber(const Option& option, T* out) {
  const char* const end = option.value.data() + option.value.size();
  const auto [last, error] = std::from_chars(option.value.data(), end, *out);
  if (error != std::errc() || last != end || *out < 1) {
    return absl::InvalidArgumentError(
        fmt::format("target: {} wants a positive number, not '{}'", option.name, option.value));
  }
  return absl::OkStatus();
}

// `words` are the options of this kind that are no numbers.
absl::Status ParseNumbers(const Text& text, std::vector<std::string_view> words, Target* target) {
  const std::vector<Number> numbers = NumbersOf(target);
  for (const Option& option : text.options) {
    if (std::find(words.begin(), words.end(), option.name) != words.end()) continue;
    const auto number =
        std::find_if(numbers.begin(), numbers.end(), [&](const Number& n) { return n.name == option.name; });
    if (number == numbers.end()) {
      for (const Number& n : numbers) words.push_back(n.name);
      return absl::InvalidArgumentError(
          fmt::format("target: no option '{}'; there are {}=", option.name, fmt::join(words, "= ")));
    }
    HONE_RETURN_IF_ERROR(number->small != nullptr ? ParseNumber(option, number->small)
                                                  : ParseNumber(option, number->large));
  }
  return absl::OkStatus();
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

// -mcpu= and -mattr= on top of `start`, whose caches and threads stay.
absl::StatusOr<Target> ChooseCpu(const Text& text, const Target& start) {
  const Option* const cpu = text.Find("-mcpu");
  const Option* const features = text.Find("-mattr");
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

absl::Status CheckVectors(const Target& target) {
  if (target.arch != Arch::kX86_64) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const FeatureSet features, AllFeatures(target));
  for (const std::string_view wanted : {"sse3", "ssse3", "sse4.1", "sse4.2", "avx", "avx2", "fma"}) {
    if (features.contains(wanted)) continue;
    return absl::InvalidArgumentError(
        fmt::format("target: CPU '{}' lacks {}; Hone's x86-64 kernels need AVX2 and FMA", target.cpu, wanted));
  }
  return absl::OkStatus();
}

absl::StatusOr<Target> ParseCpu(const Text& text) {
  Target start;
  if (text.kind == "cpu") {
    start = HostCpu();
  } else {
    const Arch arch = text.kind == "arm64" ? Arch::kAArch64 : Arch::kX86_64;
    const Option* const cpu = text.Find("-mcpu");
    const std::string_view general = arch == Arch::kAArch64 ? "generic" : "x86-64-v3";
    HONE_ASSIGN_OR_RETURN(const Microarchitecture* row, FindCpu(arch, cpu != nullptr ? cpu->value : general));
    start = CpuTarget(*row, FeaturesOf(*row));
  }
  HONE_ASSIGN_OR_RETURN(Target target, ChooseCpu(text, start));
  HONE_RETURN_IF_ERROR(ParseNumbers(text, {"-mcpu", "-mattr"}, &target));
  HONE_RETURN_IF_ERROR(CheckVectors(target));
  return target;
}

// A text that says all, as Print writes it, needs no look at the machine.
absl::StatusOr<Target> ParseOpenCl(const Text& text) {
  Target target = OpenClTarget();
  const std::vector<Number> numbers = NumbersOf(&target);
  const bool complete =
      std::all_of(numbers.begin(), numbers.end(), [&](const Number& n) { return text.Find(n.name) != nullptr; });
  const Option* const device = text.Find("-device");
  if (device != nullptr) target.device = device->value;
  if (!complete) target = HostOpenCl(target.device);
  HONE_RETURN_IF_ERROR(ParseNumbers(text, {"-device"}, &target));
  target.memory.local_bytes = target.memory.registers_bytes;
  target.vector_registers =
      static_cast<int>(std::max<int64_t>(1, target.memory.registers_bytes * 8 / target.vector_bits));
  return target;
}

}  // namespace

absl::StatusOr<Target> ParseTarget(std::string_view text) {
  const Text parts = Split(text);
  if (parts.kind == "opencl") return ParseOpenCl(parts);
  if (parts.kind == "cpu" || parts.kind == "x86_64" || parts.kind == "arm64") return ParseCpu(parts);
  return absl::InvalidArgumentError(
      fmt::format("target: no kind '{}'; there are cpu (this host), x86_64, arm64, opencl", parts.kind));
}

std::string Print(const Target& target) {
  std::string text;
  if (target.kind == Kind::kOpenCl) {
    text = "opencl";
    if (!target.device.empty()) text += " -device=" + target.device;
  } else {
    text = fmt::format("{} -mcpu={}", target.arch == Arch::kAArch64 ? "arm64" : "x86_64", target.cpu);
    if (!target.features.empty()) text += " -mattr=" + target.features;
  }
  Target copy = target;
  for (const Number& number : NumbersOf(&copy)) {
    text += fmt::format(" {}={}", number.name, number.small != nullptr ? *number.small : *number.large);
  }
  return text;
}

bool SameMachine(const Target& a, const Target& b) {
  return a.kind == b.kind && a.arch == b.arch && a.cpu == b.cpu && a.device == b.device;
}

std::string_view MachineName(Arch arch) { return arch == Arch::kAArch64 ? "aarch64" : "x86_64"; }

}  // namespace hone::target
