// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/audit_store.h"

#include <fmt/format.h>

#include <string_view>

#include "base/status.h"

namespace hone::storage {
namespace {

// The table of version 1. IF NOT EXISTS: files from before there were versions have this table already.
constexpr char kAuditVersion1[] = R"(
CREATE TABLE IF NOT EXISTS acts(number INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, role TEXT NOT NULL,
  name TEXT NOT NULL, peer TEXT NOT NULL, method TEXT NOT NULL, object TEXT NOT NULL, result TEXT NOT NULL) STRICT;
)";

absl::StatusOr<int64_t> UpgradeAudit(const Connection& connection, int64_t /*version*/) {
  HONE_RETURN_IF_ERROR(connection.Execute(kAuditVersion1));
  return 1;
}

// The SQL condition of acts of membership, as storage/audit_store.h defines them.
constexpr std::string_view kOfMembership =
    "(result = 'ok' AND (role = 'admin' OR method IN ('JoinService/Join', 'IdentityService/RevokeIdentity')))";

// Deletes all but the newest `kept` acts of one sort. `sort` is an SQL condition.
absl::Status ForgetOld(const Connection& connection, std::string_view sort, int64_t kept) {
  HONE_ASSIGN_OR_RETURN(Statement forget,
                        connection.Prepare(fmt::format("DELETE FROM acts WHERE {0} AND number <= (SELECT number FROM "
                                                       "acts WHERE {0} ORDER BY number DESC LIMIT 1 OFFSET ?)",
                                                       sort)));
  forget.Bind(1, kept);
  return forget.Run();
}

}  // namespace

constinit const DatabaseKind kAuditFile = {
    .what = "audit log",
    .advice_if_locked = "two trackers cannot share a folder of certificates: stop the other",
    .advice_if_newer = "move the file away; the tracker then begins a new one",
    .application_id = 0x484F4E41,  // "HONA"
    .version = 1,
    .unmarked_table = "acts",
    .upgrade = UpgradeAudit,
    .secret = true,
};

absl::StatusOr<std::unique_ptr<SqliteAuditStore>> SqliteAuditStore::Open(const std::filesystem::path& path) {
  HONE_ASSIGN_OR_RETURN(Writer file, OpenToWrite(path, kAuditFile));
  return std::unique_ptr<SqliteAuditStore>(new SqliteAuditStore(std::move(file)));
}

absl::Status SqliteAuditStore::Append(const AuditRow& row, std::optional<int64_t> kept) {
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  HONE_ASSIGN_OR_RETURN(
      Statement insert,
      connection_.Prepare("INSERT INTO acts(at_ms, role, name, peer, method, object, result) VALUES(?,?,?,?,?,?,?)"));
  insert.Bind(1, absl::ToUnixMillis(row.time));
  int index = 2;
  for (const std::string* text : {&row.role, &row.name, &row.peer, &row.method, &row.object, &row.result}) {
    insert.Bind(index++, *text);
  }
  HONE_RETURN_IF_ERROR(insert.Run());
  if (kept.has_value()) {
    HONE_RETURN_IF_ERROR(ForgetOld(connection_, kOfMembership, *kept));
    HONE_RETURN_IF_ERROR(ForgetOld(connection_, fmt::format("NOT {}", kOfMembership), *kept));
  }
  return transaction.Commit();
}

absl::StatusOr<std::vector<AuditRow>> SqliteAuditStore::Newest(int64_t limit) const {
  HONE_ASSIGN_OR_RETURN(
      Statement select,
      connection_.Prepare(
          "SELECT number, at_ms, role, name, peer, method, object, result FROM acts ORDER BY number DESC LIMIT ?"));
  select.Bind(1, limit);
  std::vector<AuditRow> rows;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return rows;
    rows.push_back({.number = select.Int(0),
                    .time = absl::FromUnixMillis(select.Int(1)),
                    .role = select.Text(2),
                    .name = select.Text(3),
                    .peer = select.Text(4),
                    .method = select.Text(5),
                    .object = select.Text(6),
                    .result = select.Text(7)});
  }
}

}  // namespace hone::storage
