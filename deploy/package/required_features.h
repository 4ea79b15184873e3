// The CPU features that code generated for a target may use, as the package names them.
//
// A target's text lists only what differs from its CPU's own features; the package must list everything, because the
// machine it lands on knows nothing of CPU names.
#ifndef HONE_DEPLOY_PACKAGE_REQUIRED_FEATURES_H_
#define HONE_DEPLOY_PACKAGE_REQUIRED_FEATURES_H_

#include <string>
#include <vector>

#include "compiler/codegen/target.h"
#include "deploy/runtime/package_format.h"

namespace hone::package {

Arch ArchOf(const codegen::Target& target);

// Sorted. Only features that the runtime can check for (runtime/cpu_features.h) are named.
std::vector<std::string> RequiredFeatures(const codegen::Target& target);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_REQUIRED_FEATURES_H_
