// SPDX-License-Identifier: Apache-2.0
// CPU features by name, and the one bridge between LLVM's names ("sse4.1", "dotprod") and the kernel's in /proc/cpuinfo
// ("sse4_1", "asimddp"). The table itself is base/cpu_features.h.
#ifndef HONE_COMPILER_TARGET_CPU_FEATURES_H_
#define HONE_COMPILER_TARGET_CPU_FEATURES_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/target/target.h"

namespace hone::target {

using FeatureSet = std::set<std::string_view>;  // LLVM's names, of base/cpu_features.h

// All features that code for this architecture may ask for.
const FeatureSet& KnownFeatures(Arch arch);
// How /proc/cpuinfo spells a known feature.
std::string_view CpuinfoSpelling(Arch arch, std::string_view feature);
// The known ones among the words of /proc/cpuinfo.
FeatureSet FromCpuinfo(Arch arch, const std::set<std::string>& words);

// Where `features` differs from `usual`, as LLVM takes it: "-avx512f,+gfni"; and back. InvalidArgument lists the known.
std::string Difference(const FeatureSet& features, const FeatureSet& usual);
absl::StatusOr<FeatureSet> Apply(Arch arch, std::string_view difference, FeatureSet usual);

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_CPU_FEATURES_H_
