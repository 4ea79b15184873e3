// SPDX-License-Identifier: Apache-2.0
#include "tracker/audit_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <string_view>

#include "base/status.h"
#include "records/record.h"
#include "tracker/queue/jobs.h"

namespace hone::tracker {
namespace {

// Files from before versions have this table already.
constexpr char kAuditVersion1[] = R"(
CREATE TABLE IF NOT EXISTS acts(number INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, role TEXT NOT NULL,
  name TEXT NOT NULL, peer TEXT NOT NULL, method TEXT NOT NULL, object TEXT NOT NULL, result TEXT NOT NULL) STRICT;
)";

absl::StatusOr<int64_t> UpgradeAudit(const records::Connection& connection, int64_t /*version*/) {
  HONE_RETURN_IF_ERROR(connection.Execute(kAuditVersion1));
  return 1;
}

constexpr int kRefusalsPerMinute = 10;
constexpr size_t kLongestText = 300;
// Who belongs to the farm, and what those did who decide that.
constexpr std::string_view kWeighty =
    "(result = 'ok' AND (role = 'admin' OR method IN ('JoinService/Join', 'IdentityService/RevokeIdentity')))";

// Of the acts of one sort, those before the newest ones.
absl::Status ForgetOld(const records::Connection& connection, std::string_view sort, int64_t kept) {
  HONE_ASSIGN_OR_RETURN(records::Statement forget,
                        connection.Prepare(fmt::format("DELETE FROM acts WHERE {0} AND number <= (SELECT number FROM "
                                                       "acts WHERE {0} ORDER BY number DESC LIMIT 1 OFFSET ?)",
                                                       sort)));
  forget.Bind(1, kept);
  return forget.Run();
}

}  // namespace

constinit const records::DatabaseKind kAuditFile = {
    .what = "audit log",
    .when_held = "two trackers cannot share a folder of certificates: stop the other",
    .when_newer = "move the file away: a new one is begun",
    .application_id = 0x484F4E41,  // "HONA"
    .version = 1,
    .unmarked_table = "acts",
    .upgrade = UpgradeAudit,
    .secret = true,
};

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::filesystem::path& path, int64_t kept) {
  HONE_ASSIGN_OR_RETURN(records::Writer file, records::OpenToWrite(path, kAuditFile));
  return std::unique_ptr<AuditLog>(new AuditLog(std::move(file), kept));
}

bool AuditLog::TooMany(const Act& act, absl::Time now) {
  if (now - minute_ >= absl::Minutes(1) || now < minute_) {
    refused_.clear();
    minute_ = now;
  }
  return ++refused_[{act.role, act.name}] > kRefusalsPerMinute;
}

void AuditLog::Add(const Act& act, const absl::Status& result, absl::Time now) {
  const std::lock_guard lock(mutex_);
  if (!result.ok() && TooMany(act, now)) return;
  if (const absl::Status written = Insert(act, result, now); !written.ok()) {
    spdlog::error("the audit log lacks {} of {} {} on {}: {}", act.method, act.role, act.name, act.object,
                  std::string(written.message()));
  }
}

absl::Status AuditLog::Insert(const Act& act, const absl::Status& result, absl::Time now) {
  HONE_ASSIGN_OR_RETURN(records::Transaction transaction, records::Transaction::Begin(connection_));
  HONE_ASSIGN_OR_RETURN(
      records::Statement insert,
      connection_.Prepare("INSERT INTO acts(at_ms, role, name, peer, method, object, result) VALUES(?,?,?,?,?,?,?)"));
  insert.Bind(1, absl::ToUnixMillis(now));
  int index = 2;
  const std::string why = result.ok() ? "ok" : std::string(result.message());
  for (const std::string* text : {&act.role, &act.name, &act.peer, &act.method, &act.object, &why}) {
    insert.Bind(index++, records::CleanText(*text, kLongestText));
  }
  HONE_RETURN_IF_ERROR(insert.Run());
  // Which looks at all of them, so not every time.
  if (++since_forgotten_ > kept_ / 100) {
    HONE_RETURN_IF_ERROR(ForgetOld(connection_, kWeighty, kept_));
    HONE_RETURN_IF_ERROR(ForgetOld(connection_, fmt::format("NOT {}", kWeighty), kept_));
    since_forgotten_ = 0;
  }
  return transaction.Commit();
}

absl::StatusOr<std::vector<v1::AuditEntry>> AuditLog::Newest(int limit) {
  const std::lock_guard lock(mutex_);
  HONE_ASSIGN_OR_RETURN(
      records::Statement select,
      connection_.Prepare(
          "SELECT number, at_ms, role, name, peer, method, object, result FROM acts ORDER BY number DESC LIMIT ?"));
  select.Bind(1, static_cast<int64_t>(limit));
  std::vector<v1::AuditEntry> entries;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return entries;
    v1::AuditEntry& entry = entries.emplace_back();
    entry.set_number(select.Int(0));
    *entry.mutable_time() = ToProto(absl::FromUnixMillis(select.Int(1)));
    entry.set_role(select.Text(2));
    entry.set_name(select.Text(3));
    entry.set_peer(select.Text(4));
    entry.set_method(select.Text(5));
    entry.set_object(select.Text(6));
    entry.set_result(select.Text(7));
  }
}

}  // namespace hone::tracker
