// SPDX-License-Identifier: Apache-2.0
#include "pki/tracker_folder.h"

#include <fmt/format.h>

#include "base/status.h"
#include "pki/identity_folder.h"

namespace hone::pki {
namespace {

constexpr int kDay = 24;  // hours
constexpr absl::Duration kAuthorityLife = absl::Hours(3650 * kDay), kTrackerLife = absl::Hours(90 * kDay),
                         kFirstAdminLife = absl::Hours(365 * kDay);
// Certificates start in the past, so that a board whose clock is behind accepts the tracker's certificate.
constexpr absl::Duration kBackdated = absl::Hours(kDay);

std::filesystem::path KeyOf(const std::filesystem::path& folder) { return folder / "authority.key"; }

}  // namespace

absl::Status MakeTrackerFolder(const std::filesystem::path& folder, const std::vector<std::string>& hosts,
                               absl::Time now) {
  for (const std::string& host : hosts) HONE_RETURN_IF_ERROR(CheckHost(host));
  HONE_RETURN_IF_ERROR(MakeFolder(folder));
  for (const std::filesystem::path& file : {KeyOf(folder), std::filesystem::path(FilesIn(folder).authority)}) {
    if (!std::filesystem::exists(file)) continue;
    return absl::AlreadyExistsError(fmt::format(
        "{} exists: a new authority would lock out all programs that joined; choose another folder", file.string()));
  }
  HONE_ASSIGN_OR_RETURN(const Authority authority, Authority::Make({now - kBackdated, now + kAuthorityLife}));
  HONE_RETURN_IF_ERROR(WriteFile(KeyOf(folder), authority.key()));
  HONE_RETURN_IF_ERROR(WriteFile(FilesIn(folder).authority, authority.certificate()));
  return WriteTrackerIdentity(folder, authority, hosts, now);
}

absl::StatusOr<std::optional<Authority>> ReadAuthority(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(KeyOf(folder))) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(const std::string certificate, ReadFile(FilesIn(folder).authority));
  HONE_ASSIGN_OR_RETURN(const std::string key, ReadFile(KeyOf(folder)));
  auto authority = Authority::Read(certificate, key);
  if (!authority.ok()) return Annotate(authority.status(), folder.string());
  return *std::move(authority);
}

// The file ends with the authority's certificate, which joining programs verify (pki/join.h).
absl::Status WriteTrackerIdentity(const std::filesystem::path& folder, const Authority& authority,
                                  const std::vector<std::string>& hosts, absl::Time now) {
  const std::string key = MakeKey();
  HONE_ASSIGN_OR_RETURN(const std::string request, MakeRequest(key));
  HONE_ASSIGN_OR_RETURN(const std::string certificate,
                        authority.SignTracker(request, hosts, {now - kBackdated, now + kTrackerLife}));
  return WriteFile(FilesIn(folder).identity, key + certificate + authority.certificate());
}

absl::Status IssueIdentity(const Authority& authority, const std::filesystem::path& folder,
                           const FarmIdentity& identity, const std::string& tracker, absl::Time now) {
  HONE_RETURN_IF_ERROR(CheckFarmName(identity.name));
  HONE_RETURN_IF_ERROR(MakeFolder(folder));
  const TlsFiles files = FilesIn(folder);
  if (std::filesystem::exists(files.identity)) {
    return absl::AlreadyExistsError(fmt::format("{} has an identity already; choose another folder", folder.string()));
  }
  const std::string key = MakeKey();
  HONE_ASSIGN_OR_RETURN(const std::string request, MakeRequest(key));
  HONE_ASSIGN_OR_RETURN(const std::string certificate,
                        authority.SignMember(request, identity, {now - kBackdated, now + kFirstAdminLife}));
  HONE_RETURN_IF_ERROR(WriteFile(files.authority, authority.certificate()));
  HONE_RETURN_IF_ERROR(WriteSettings(folder, {tracker, {}}));
  return WriteFile(files.identity, key + certificate);
}

}  // namespace hone::pki
