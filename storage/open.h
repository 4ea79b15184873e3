// SPDX-License-Identifier: Apache-2.0
// Opens stores. The only place that decides which implementation keeps what an address names.
//
// An address is the path of an SQLite file. docs/decisions/0237-storage-speaks-in-verbs.md says how another kind of
// database is added. The callers get interfaces, and never learn what is behind them.
#ifndef HONE_STORAGE_OPEN_H_
#define HONE_STORAGE_OPEN_H_

#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "records/store.h"
#include "storage/audit_store.h"
#include "storage/farm_store.h"
#include "storage/identity_store.h"

namespace hone::storage {

// kReadWrite creates what is missing and brings an older schema up to date. kInvalidArgument: the address is empty or
// no path. Other errors as records/store.h lists them.
absl::StatusOr<std::unique_ptr<records::Store>> OpenRecords(const std::filesystem::path& address,
                                                            records::OpenMode mode);

// These are opened for writing, and a missing file is created; its folder must exist. kFailedPrecondition: another
// process has the store open, or a newer Hone wrote it. kDataLoss: it is damaged.
absl::StatusOr<std::unique_ptr<FarmStore>> OpenFarm(const std::filesystem::path& address);
absl::StatusOr<std::unique_ptr<IdentityStore>> OpenIdentities(const std::filesystem::path& address);
absl::StatusOr<std::unique_ptr<AuditStore>> OpenAudit(const std::filesystem::path& address);

// The addresses of all that a tracker keeps, besides its records.
struct TrackerAddresses {
  std::filesystem::path state;              // for OpenFarm
  std::filesystem::path identities, audit;  // for OpenIdentities and OpenAudit; empty without a folder of certificates
};
// The kind of database that keeps the records keeps the rest, too. Beside the records file /a/records.db these are
// /a/records.db.farm, and register.db and audit.db in the folder `certificates` (empty: there is none).
TrackerAddresses AddressesBeside(const std::filesystem::path& records, const std::filesystem::path& certificates);

}  // namespace hone::storage

#endif  // HONE_STORAGE_OPEN_H_
