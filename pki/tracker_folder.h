// SPDX-License-Identifier: Apache-2.0
// The folder of a tracker with the farm's authority. `hone pki init` makes it with these functions;
// tracker/membership.h opens it and lists its files.
#ifndef HONE_PKI_TRACKER_FOLDER_H_
#define HONE_PKI_TRACKER_FOLDER_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pki/certificates.h"
#include "transport/farm_identity.h"

namespace hone::pki {

// Makes a new authority, and a certificate for a tracker that is reached under `hosts`, of which there must be at least
// one. kAlreadyExists: the folder has an authority. kInvalidArgument: as CheckHost. kUnavailable: a file cannot be
// written. Others as CheckPrivateFolder.
absl::Status MakeTrackerFolder(const std::filesystem::path& folder, const std::vector<std::string>& hosts,
                               absl::Time now);

// Reads the authority; nullopt where the folder has no authority.key. kInvalidArgument, kUnavailable: as
// Authority::Read and ReadFile.
absl::StatusOr<std::optional<Authority>> ReadAuthority(const std::filesystem::path& folder);

// Writes a new key and certificate of the tracker, valid for 90 days.
absl::Status WriteTrackerIdentity(const std::filesystem::path& folder, const Authority& authority,
                                  const std::vector<std::string>& hosts, absl::Time now);

// Makes an identity folder without asking a tracker, as for the first admin. The certificate is valid for a year.
// tracker: HOST:PORT, for its settings. kInvalidArgument: as CheckFarmName. kAlreadyExists: the folder has an identity.
// Other errors as MakeFolder and WriteFile.
absl::Status IssueIdentity(const Authority& authority, const std::filesystem::path& folder,
                           const FarmIdentity& identity, const std::string& tracker, absl::Time now);

}  // namespace hone::pki

#endif  // HONE_PKI_TRACKER_FOLDER_H_
