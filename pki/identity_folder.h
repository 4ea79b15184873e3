// SPDX-License-Identifier: Apache-2.0
// The identity folder of a program in the farm, closed to other users:
//
// - identity.pem: its private key and its certificate, in one file, so that both are replaced at once.
// - authority.pem: the certificate of the farm's authority, which verifies the tracker.
// - settings: lines "tracker HOST:PORT" and "label LABEL", so that the program needs no flags.
//
// Files are replaced by renaming a complete file, so a reader sees the old or the new one. Start at FilesIn.
#ifndef HONE_PKI_IDENTITY_FOLDER_H_
#define HONE_PKI_IDENTITY_FOLDER_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pki/certificates.h"
#include "transport/farm_identity.h"
#include "transport/transport.h"

namespace hone::pki {

// $XDG_CONFIG_HOME/hone/X or ~/.config/hone/X, where X is "agent", "tuner", or "user" for client, viewer and admin.
// kFailedPrecondition: the account has no home.
absl::StatusOr<std::filesystem::path> DefaultFolder(Role role);

TlsFiles FilesIn(const std::filesystem::path& folder);

// Makes the folder and its parents, or checks that it is closed to other users. Errors as CheckPrivateFolder;
// kUnavailable: it cannot be made.
absl::Status MakeFolder(const std::filesystem::path& folder);

// Replaces the file; only this user may read it. It is on the disk when the function returns. kUnavailable.
absl::Status WriteFile(const std::filesystem::path& path, std::string_view text);
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path);  // kNotFound, kUnavailable

struct Settings {
  std::string tracker;
  std::vector<std::string> labels;  // NAME or NAME=VALUE
};

absl::Status WriteSettings(const std::filesystem::path& folder, const Settings& settings);
// Empty settings where there is no file. kInvalidArgument: a line is neither a tracker nor a label. kUnavailable.
absl::StatusOr<Settings> ReadSettings(const std::filesystem::path& folder);

// The identity in the certificate of the folder. Its signature is not checked. kNotFound: there is no certificate; the
// text says how to join. kInvalidArgument: it cannot be read. kPermissionDenied: the folder is open to other users.
absl::StatusOr<FarmIdentity> ReadIdentity(const std::filesystem::path& folder);

// The name in the certificate, which must have this role (kInvalidArgument). Other errors as ReadIdentity.
absl::StatusOr<std::string> ReadName(const std::filesystem::path& folder, Role role);

}  // namespace hone::pki

#endif  // HONE_PKI_IDENTITY_FOLDER_H_
