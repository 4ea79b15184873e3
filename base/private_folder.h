// SPDX-License-Identifier: Apache-2.0
// Checks that a folder keeps the other users of this machine out. Sockets and keys are kept in such folders.
#ifndef HONE_BASE_PRIVATE_FOLDER_H_
#define HONE_BASE_PRIVATE_FOLDER_H_

#include <filesystem>

#include "absl/status/status.h"

namespace hone {

// OK if all of this holds: `folder` is a folder and not a link, this user owns it, its mode gives other users no
// access, and other users cannot replace it. Other users can replace it if its parent is writable to them and not
// sticky; /tmp is sticky. Root always has access. kPermissionDenied: the message says what is wrong and what to do.
// kNotFound: there is no such folder.
absl::Status CheckPrivateFolder(const std::filesystem::path& folder);

}  // namespace hone

#endif  // HONE_BASE_PRIVATE_FOLDER_H_
