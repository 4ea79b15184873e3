// SPDX-License-Identifier: Apache-2.0
// The inputs of a package from a .npz file, for `hone run`, `hone bench` and `hone profile`.
#ifndef HONE_CLI_GIVEN_INPUTS_H_
#define HONE_CLI_GIVEN_INPUTS_H_

#include <string>

#include "absl/status/status.h"
#include "cli/loaded_package.h"

namespace hone::cli {

// Sets the inputs to the arrays of their names. Inputs with open dimensions get the arrays' shapes. path: "" for no
// file. FailedPrecondition: an input without a default has no array, an array belongs to no input, or its type or shape
// does not fit. Other errors: the file cannot be read.
absl::Status SetGivenInputs(const LoadedPackage& package, const std::string& path);

}  // namespace hone::cli

#endif  // HONE_CLI_GIVEN_INPUTS_H_
