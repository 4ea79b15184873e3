// SPDX-License-Identifier: Apache-2.0
// Whether a folder keeps the other users of this machine out: what sockets and keys are kept in.
#ifndef HONE_BASE_PRIVATE_FOLDER_H_
#define HONE_BASE_PRIVATE_FOLDER_H_

#include <filesystem>

#include "absl/status/status.h"

namespace hone {

// OK if `folder` is a folder (not a link to one) of this user, whom alone its mode lets in, and nobody else can put
// another one in its place: others may write to its parent only where it is sticky, as /tmp is. Root is not kept out.
// kPermissionDenied: what is wrong, and what to do. kNotFound.
absl::Status CheckPrivateFolder(const std::filesystem::path& folder);

}  // namespace hone

#endif  // HONE_BASE_PRIVATE_FOLDER_H_
