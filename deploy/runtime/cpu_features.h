// SPDX-License-Identifier: Apache-2.0
// The CPU features that code may ask for, and whether this machine has them.
//
// Names are LLVM's ("avx512vnni", "dotprod"), as base/cpu_features.h lists them. A package that asks for an unknown one
// is refused.
#ifndef HONE_DEPLOY_RUNTIME_CPU_FEATURES_H_
#define HONE_DEPLOY_RUNTIME_CPU_FEATURES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/code_kind.h"
#include "deploy/runtime/fault.h"

namespace hone::runtime {

std::optional<CodeKind> HostCode();  // empty on an architecture that packages do not know

bool IsKnownFeature(CodeKind code, std::string_view feature);
// The known features of HostCode() that CPU and operating system both support.
std::vector<std::string_view> HostFeatures();

// Incompatible, naming what is missing, unless `code` is for CPUs as this one, which has all of `features`
// (comma-separated).
Fault CheckHostRuns(CodeKind code, std::string_view features);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_CPU_FEATURES_H_
