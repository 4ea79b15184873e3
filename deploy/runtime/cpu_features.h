// The CPU features a package may ask for, and whether this machine has them.
//
// Names are LLVM's ("avx512vnni", "dotprod"). Only features that generated code can use are listed: the packager asks
// IsKnownFeature and leaves the others out, and a package that asks for an unknown one is refused.
#ifndef HONE_DEPLOY_RUNTIME_CPU_FEATURES_H_
#define HONE_DEPLOY_RUNTIME_CPU_FEATURES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/runtime/fault.h"
#include "deploy/runtime/package_format.h"

namespace hone::runtime {

std::optional<package::Arch> HostArch();    // empty on an architecture that packages do not know
std::string_view Name(package::Arch arch);  // "x86-64", "aarch64", "armv7"; "unknown" for other numbers

bool IsKnownFeature(package::Arch arch, std::string_view feature);
// The known features of HostArch() that CPU and operating system both support.
std::vector<std::string_view> HostFeatures();

// Incompatible, naming what is missing, unless this machine is an `arch` with all of `features` (comma-separated).
Fault CheckHostRuns(package::Arch arch, std::string_view features);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_CPU_FEATURES_H_
