// SPDX-License-Identifier: Apache-2.0
// The folder of a farm's authority, which a tracker is given: made by `hone pki init`, opened by tracker/membership.h,
// where its files are listed.
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

// An authority and a certificate for a tracker that is reached under `hosts`. kAlreadyExists: the folder has one;
// kInvalidArgument: as CheckHost; kUnavailable; as CheckPrivateFolder.
absl::Status MakeTrackerFolder(const std::filesystem::path& folder, const std::vector<std::string>& hosts,
                               absl::Time now);

// nullopt where the folder has no authority.key. kInvalidArgument, kUnavailable.
absl::StatusOr<std::optional<Authority>> ReadAuthority(const std::filesystem::path& folder);

// A new key and certificate of the tracker, good for 90 days.
absl::Status WriteTrackerIdentity(const std::filesystem::path& folder, const Authority& authority,
                                  const std::vector<std::string>& hosts, absl::Time now);

// Makes an identity folder without a tracker: the first admin's. `tracker`: HOST:PORT, for its settings.
// kAlreadyExists: the folder has an identity.
absl::Status IssueIdentity(const Authority& authority, const std::filesystem::path& folder,
                           const FarmIdentity& identity, const std::string& tracker, absl::Time now);

}  // namespace hone::pki

#endif  // HONE_PKI_TRACKER_FOLDER_H_
