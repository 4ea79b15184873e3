// SPDX-License-Identifier: Apache-2.0
// The audit log of a farm in an SQLite file; storage/audit_store.h says what each member does.
#ifndef HONE_STORAGE_SQLITE_AUDIT_STORE_H_
#define HONE_STORAGE_SQLITE_AUDIT_STORE_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/audit_store.h"
#include "storage/sqlite/database.h"

namespace hone::storage {

extern const DatabaseKind kAuditFile;

class SqliteAuditStore final : public AuditStore {
 public:
  static absl::StatusOr<std::unique_ptr<SqliteAuditStore>> Open(const std::filesystem::path& path);

  absl::Status Append(const AuditRow& row, std::optional<int64_t> kept) override;
  absl::StatusOr<std::vector<AuditRow>> Newest(int64_t limit) const override;

 private:
  explicit SqliteAuditStore(Writer file) : file_(std::move(file)) {}

  const Writer file_;
  const Connection& connection_ = file_.connection;
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_SQLITE_AUDIT_STORE_H_
