// SPDX-License-Identifier: Apache-2.0
// The folder in which a program keeps who it is, closed to other users:
//
//   identity.pem   its private key and its certificate, in one file, so that both are replaced at once
//   authority.pem  the farm's authority, by which it knows the tracker
//   settings       lines "tracker HOST:PORT" and "label LABEL": what it needs no flags for
//
// Files are replaced by renaming a complete one: a reader sees the old or the new. Start at FilesIn.
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

// $XDG_CONFIG_HOME/hone/X or ~/.config/hone/X, X being "agent", "tuner", and "user" for the roles of people.
// kFailedPrecondition where the account has no home.
absl::StatusOr<std::filesystem::path> DefaultFolder(Role role);

TlsFiles FilesIn(const std::filesystem::path& folder);

// Makes the folder and those above it, or checks that it is closed. As CheckPrivateFolder; kUnavailable.
absl::Status MakeFolder(const std::filesystem::path& folder);

// Replaces the file, which this user alone may read; on the disk when it returns. kUnavailable.
absl::Status WriteFile(const std::filesystem::path& path, std::string_view text);
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path);  // kNotFound, kUnavailable

struct Settings {
  std::string tracker;
  std::vector<std::string> labels;  // NAME or NAME=VALUE
};

absl::Status WriteSettings(const std::filesystem::path& folder, const Settings& settings);
absl::StatusOr<Settings> ReadSettings(const std::filesystem::path& folder);  // empty ones where there is no file

// Who the certificate in the folder is for, as far as its own words go. The folder must be closed.
// kNotFound: there is none; the text says how to join. kInvalidArgument, kPermissionDenied.
absl::StatusOr<FarmIdentity> IdentityIn(const std::filesystem::path& folder);

// The name in it, which must be for `role`. Errors as IdentityIn.
absl::StatusOr<std::string> NameIn(const std::filesystem::path& folder, Role role);

}  // namespace hone::pki

#endif  // HONE_PKI_IDENTITY_FOLDER_H_
