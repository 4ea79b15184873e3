// SPDX-License-Identifier: Apache-2.0
#include "storage/open.h"

#include "storage/sqlite/audit_store.h"
#include "storage/sqlite/farm_store.h"
#include "storage/sqlite/identity_store.h"
#include "storage/sqlite/record_store.h"

namespace hone::storage {

absl::StatusOr<std::unique_ptr<records::Store>> OpenRecords(const std::filesystem::path& address,
                                                            records::OpenMode mode) {
  return SqliteStore::Open(address, mode);
}

absl::StatusOr<std::unique_ptr<FarmStore>> OpenFarm(const std::filesystem::path& address) {
  return SqliteFarmStore::Open(address);
}

absl::StatusOr<std::unique_ptr<IdentityStore>> OpenIdentities(const std::filesystem::path& address) {
  return SqliteIdentityStore::Open(address);
}

absl::StatusOr<std::unique_ptr<AuditStore>> OpenAudit(const std::filesystem::path& address) {
  return SqliteAuditStore::Open(address);
}

TrackerAddresses AddressesBeside(const std::filesystem::path& records, const std::filesystem::path& certificates) {
  TrackerAddresses addresses{.state = records.string() + ".farm"};
  if (certificates.empty()) return addresses;
  addresses.identities = certificates / "register.db";
  addresses.audit = certificates / "audit.db";
  return addresses;
}

}  // namespace hone::storage
