// SPDX-License-Identifier: Apache-2.0
// The inputs of a package from a .npz file.
#ifndef HONE_DEPLOY_RUN_GIVEN_INPUTS_H_
#define HONE_DEPLOY_RUN_GIVEN_INPUTS_H_

#include <string>

#include "absl/status/status.h"
#include "deploy/run/loaded_package.h"
#include "deploy/run/npz.h"

namespace hone::run {

// Sets the inputs to the arrays of their names. Inputs with open dimensions get the arrays' shapes. path: "" for no
// file. FailedPrecondition: an input without a default has no array, an array belongs to no input, or its type or shape
// does not fit. Other errors: the file cannot be read.
absl::Status SetGivenInputs(const LoadedPackage& package, const std::string& path);
// The same for an open archive.
absl::Status SetGivenInputs(const LoadedPackage& package, const NpzReader& reader);

}  // namespace hone::run

#endif  // HONE_DEPLOY_RUN_GIVEN_INPUTS_H_
