// SPDX-License-Identifier: Apache-2.0
// Writes the C++ header of a compiled model: its inputs and outputs as typed members, for programs that link the
// runtime.
//
// The header depends on the model and not on targets. It needs C++17 and hone.h.
#ifndef HONE_DEPLOY_PACKAGE_CPP_HEADER_H_
#define HONE_DEPLOY_PACKAGE_CPP_HEADER_H_

#include <span>
#include <string>

#include "deploy/package/package_writer.h"

namespace hone::package {

// Returns the text of the header. The namespace is model_name, with '_' for every character that a C++ name cannot
// have. A reserved name, such as "new" or "std", gets a '_' at its end. programs: those of one target, at least one.
std::string CppHeader(const std::string& model_name, std::span<const PackageProgram> programs);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_CPP_HEADER_H_
