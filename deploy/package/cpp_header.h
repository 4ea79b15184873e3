// SPDX-License-Identifier: Apache-2.0
// A C++ header for a compiled model: its inputs and outputs as typed members, for programs that link the runtime.
//
// What it holds is fixed by the model alone, not by targets. It needs C++17 and hone.h.
#ifndef HONE_DEPLOY_PACKAGE_CPP_HEADER_H_
#define HONE_DEPLOY_PACKAGE_CPP_HEADER_H_

#include <string>

#include "deploy/package/package_writer.h"

namespace hone::package {

// The text of the header. model_name becomes the namespace: what C++ does not take in a name becomes '_', and a name
// that is taken, as "new" or "std" is, ends with one more.
std::string CppHeader(const std::string& model_name, const PackageProgram& program);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_CPP_HEADER_H_
