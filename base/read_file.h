// SPDX-License-Identifier: Apache-2.0
// The bytes of a file that a user names, or their digest. Not here: the texts of the errors, which say what the file is
// for. Start with ReadWholeFile.
#ifndef HONE_BASE_READ_FILE_H_
#define HONE_BASE_READ_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace hone {

// NotFound, with the reason alone ("No such file or directory", "it is empty"), if the file has no bytes or they cannot
// be read.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

// The SHA-256 of the file, in the form of Sha256Hex (digest.h). The file is read in pieces, so it may be larger than
// the memory. NotFound, as ReadWholeFile.
absl::StatusOr<std::string> DigestOfFile(const std::string& path);

}  // namespace hone

#endif  // HONE_BASE_READ_FILE_H_
