// SPDX-License-Identifier: Apache-2.0
// CPU features by name, and the only conversion between LLVM's names ("sse4.1", "dotprod") and the kernel's in
// /proc/cpuinfo ("sse4_1", "asimddp"). The table itself is base/cpu_features.h.
#ifndef HONE_COMPILER_TARGET_CPU_FEATURES_H_
#define HONE_COMPILER_TARGET_CPU_FEATURES_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/target/target.h"

namespace hone::target {

// LLVM's names of features. They are views of static tables, such as those in base/cpu_features.h.
using FeatureSet = std::set<std::string_view>;

// All features that generated code for this architecture may use.
const FeatureSet& KnownFeatures(Arch arch);
// The spelling of a feature in /proc/cpuinfo. Aborts if KnownFeatures does not contain the feature.
std::string_view CpuinfoSpelling(Arch arch, std::string_view feature);
// Returns the known features among the words of /proc/cpuinfo; other words are ignored.
FeatureSet FromCpuinfo(Arch arch, const std::set<std::string>& words);

// FeatureDifference returns how `features` differs from `usual` in LLVM's notation: "-avx512f,+gfni"; "" if they are
// equal. Apply is the inverse: it adds to `usual` and removes from it, in the order of the text. InvalidArgument for a
// part without + or -, and for an unknown feature, with a list of the known ones.
std::string FeatureDifference(const FeatureSet& features, const FeatureSet& usual);
absl::StatusOr<FeatureSet> Apply(Arch arch, std::string_view difference, FeatureSet usual);

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_CPU_FEATURES_H_
