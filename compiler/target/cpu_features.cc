// SPDX-License-Identifier: Apache-2.0
#include "compiler/target/cpu_features.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/cpu_features.h"
#include "base/status.h"

namespace hone::target {
namespace {

struct Spelling {
  std::string_view name, cpuinfo;
};

template <typename Table>
std::vector<Spelling> SpellingsIn(const Table& table) {
  std::vector<Spelling> spellings;
  for (const auto& feature : table) spellings.push_back({feature.name, feature.cpuinfo});
  return spellings;
}

// Returns the value that belongs to the architecture.
template <typename T>
const T& Of(Arch arch, const T& x86_64, const T& aarch64, const T& arm) {
  switch (arch) {
    case Arch::kX86_64:
      return x86_64;
    case Arch::kAArch64:
      return aarch64;
    case Arch::kArm:
      return arm;
  }
  HONE_CHECK(false);
  return x86_64;
}

const std::vector<Spelling>& Spellings(Arch arch) {
  static const std::vector<Spelling> x86 = SpellingsIn(kX86Features), aarch64 = SpellingsIn(kAArch64Features),
                                     arm = SpellingsIn(kArmFeatures);
  return Of(arch, x86, aarch64, arm);
}

FeatureSet NamesIn(const std::vector<Spelling>& spellings) {
  FeatureSet names;
  for (const Spelling& spelling : spellings) names.insert(spelling.name);
  return names;
}

}  // namespace

const FeatureSet& KnownFeatures(Arch arch) {
  static const FeatureSet x86 = NamesIn(Spellings(Arch::kX86_64)), aarch64 = NamesIn(Spellings(Arch::kAArch64)),
                          arm = NamesIn(Spellings(Arch::kArm));
  return Of(arch, x86, aarch64, arm);
}

std::string_view CpuinfoSpelling(Arch arch, std::string_view feature) {
  const std::vector<Spelling>& all = Spellings(arch);
  const auto it = std::find_if(all.begin(), all.end(), [&](const Spelling& s) { return s.name == feature; });
  HONE_CHECK(it != all.end());
  return it->cpuinfo;
}

FeatureSet FromCpuinfo(Arch arch, const std::set<std::string>& words) {
  FeatureSet features;
  for (const Spelling& spelling : Spellings(arch)) {
    if (words.contains(std::string(spelling.cpuinfo))) features.insert(spelling.name);
  }
  return features;
}

// Removed features come first: LLVM also removes features that depend on them, and restores those named afterwards.
std::string FeatureDifference(const FeatureSet& features, const FeatureSet& usual) {
  std::vector<std::string> parts;
  for (const std::string_view f : usual) {
    if (!features.contains(f)) parts.push_back(fmt::format("-{}", f));
  }
  for (const std::string_view f : features) {
    if (!usual.contains(f)) parts.push_back(fmt::format("+{}", f));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

absl::StatusOr<FeatureSet> Apply(Arch arch, std::string_view difference, FeatureSet usual) {
  const FeatureSet& known = KnownFeatures(arch);
  while (!difference.empty()) {
    const std::string_view part = difference.substr(0, difference.find(','));
    difference.remove_prefix(std::min(difference.size(), part.size() + 1));
    if (part.empty() || (part[0] != '+' && part[0] != '-')) {
      return absl::InvalidArgumentError(
          fmt::format("target: -mattr must be a list like +FEATURE,-FEATURE; '{}' has no + or -", part));
    }
    const auto feature = known.find(part.substr(1));
    if (feature == known.end()) {
      return absl::InvalidArgumentError(fmt::format("target: {} has no feature '{}'; there are {}", MachineName(arch),
                                                    part.substr(1), fmt::join(known, " ")));
    }
    if (part[0] == '+') {
      usual.insert(*feature);
    } else {
      usual.erase(*feature);
    }
  }
  return usual;
}

}  // namespace hone::target
