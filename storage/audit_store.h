// SPDX-License-Identifier: Apache-2.0
// Where a tracker keeps its audit log: numbered rows that are appended, and forgotten from the old end.
//
// AuditStore is an interface. tracker/audit_log.h decides which acts become rows. storage/sqlite/audit_store.h keeps
// the rows in an SQLite file, storage/memory/audit_store.h in memory for tests; both pass
// tests/unit/storage/state_conformance_test.cc. Threads: one at a time.
#ifndef HONE_STORAGE_AUDIT_STORE_H_
#define HONE_STORAGE_AUDIT_STORE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone::storage {

struct AuditRow {
  int64_t number = 0;  // given by the store, above those of all earlier rows, forgotten ones included
  absl::Time time;
  std::string role, name, peer, method, object;
  std::string result;  // "ok", or the error
};

class AuditStore {
 public:
  virtual ~AuditStore() = default;

  // Appends the row, whose number is ignored. With `kept`, also forgets all but the newest `kept` rows of either sort:
  // acts of membership (successful acts of admins, joins and revocations) and all others. One transaction.
  virtual absl::Status Append(const AuditRow& row, std::optional<int64_t> kept) = 0;

  virtual absl::StatusOr<std::vector<AuditRow>> Newest(int64_t limit) const = 0;  // the newest first
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_AUDIT_STORE_H_
