// SPDX-License-Identifier: Apache-2.0
// The bytes of a file that a user names. Not here: the texts of the errors, which say what the file is for. Start with
// ReadWholeFile.
#ifndef HONE_BASE_READ_FILE_H_
#define HONE_BASE_READ_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace hone {

// NotFound, with the reason alone ("No such file or directory", "it is empty"), if the file has no bytes or they cannot
// be read.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

}  // namespace hone

#endif  // HONE_BASE_READ_FILE_H_
