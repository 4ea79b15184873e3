// SPDX-License-Identifier: Apache-2.0
// The CPU features that a package's code may require, and the check whether this machine has them.
//
// Names are LLVM's ("avx512vnni", "dotprod"); base/cpu_features.h lists them. Start with CheckHostRuns.
#ifndef HONE_DEPLOY_RUNTIME_CPU_FEATURES_H_
#define HONE_DEPLOY_RUNTIME_CPU_FEATURES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/code_kind.h"
#include "deploy/runtime/fault.h"

namespace hone::runtime {

// The kind of code that this machine's CPU runs; empty if no kind is for its architecture.
std::optional<CodeKind> HostCode();

// Whether base/cpu_features.h lists the feature for CPUs that run `code`.
bool IsKnownFeature(CodeKind code, std::string_view feature);
// The known features that both the CPU and the operating system of this machine support.
std::vector<std::string_view> HostFeatures();

// OK if `code` is for CPUs of this machine's architecture and this machine has all `features` (comma-separated; may be
// empty). Otherwise Incompatible, and the text names what is missing. An unknown feature counts as missing.
Fault CheckHostRuns(CodeKind code, std::string_view features);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_CPU_FEATURES_H_
