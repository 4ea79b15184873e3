// SPDX-License-Identifier: Apache-2.0
// Reads a .npy file as a constant of a graph: the value of an input that is fixed at compile time (--bind).
#ifndef HONE_DEPLOY_PACKAGE_NPY_CONSTANT_H_
#define HONE_DEPLOY_PACKAGE_NPY_CONSTANT_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::package {

// Errors name the file: it cannot be read, or those of run::ParseNpy.
absl::StatusOr<graph::Constant> ReadNpyConstant(const std::string& path);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_NPY_CONSTANT_H_
