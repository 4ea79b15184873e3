// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/identity_store.h"

#include "base/status.h"

namespace hone::storage {
namespace {

// The tables of version 1. IF NOT EXISTS: files from before there were versions have these tables already.
constexpr char kRegisterVersion1[] = R"(
CREATE TABLE IF NOT EXISTS certificates(serial TEXT PRIMARY KEY, role TEXT NOT NULL, name TEXT NOT NULL,
  issued_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, vouched_by TEXT NOT NULL, revoked INTEGER NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS certificates_by_name ON certificates(name);
CREATE TABLE IF NOT EXISTS revoked_names(name TEXT PRIMARY KEY, at_ms INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS tokens(hash TEXT PRIMARY KEY, role TEXT NOT NULL, name TEXT NOT NULL,
  uses_left INTEGER NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, created_by TEXT NOT NULL,
  revoked INTEGER NOT NULL) STRICT;
)";

absl::StatusOr<int64_t> UpgradeRegister(const Connection& connection, int64_t /*version*/) {
  HONE_RETURN_IF_ERROR(connection.Execute(kRegisterVersion1));
  return 1;
}

absl::Time TimeOf(int64_t ms) { return absl::FromUnixMillis(ms); }

constexpr char kSelectToken[] =
    "SELECT hash, role, name, uses_left, created_ms, expires_ms, created_by, revoked FROM tokens ";

TokenRow ReadToken(const Statement& select) {
  return {.hash = select.Text(0),
          .role = select.Text(1),
          .name = select.Text(2),
          .uses_left = select.Int(3),
          .created = TimeOf(select.Int(4)),
          .expires = TimeOf(select.Int(5)),
          .created_by = select.Text(6),
          .revoked = select.Int(7) != 0};
}

class SqliteIdentityChange final : public IdentityChange {
 public:
  explicit SqliteIdentityChange(Transaction transaction) : transaction_(std::move(transaction)) {}
  absl::Status Commit() override { return transaction_.Commit(); }

 private:
  Transaction transaction_;
};

}  // namespace

constinit const DatabaseKind kRegisterFile = {
    .what = "register",
    .advice_if_locked = "two trackers cannot share a folder of certificates: stop the other",
    .advice_if_newer = "restore the backup from before the update",
    .application_id = 0x484F4E52,  // "HONR"
    .version = 1,
    .unmarked_table = "revoked_names",
    .upgrade = UpgradeRegister,
    .secret = true,
};

absl::Status RevokeTokens(const std::filesystem::path& path) {
  HONE_ASSIGN_OR_RETURN(const Writer file, OpenToWrite(path, kRegisterFile));
  HONE_RETURN_IF_ERROR(file.connection.Execute("UPDATE tokens SET revoked = 1"));
  return file.connection.Execute("PRAGMA journal_mode = DELETE");
}

absl::StatusOr<std::unique_ptr<SqliteIdentityStore>> SqliteIdentityStore::Open(const std::filesystem::path& path) {
  HONE_ASSIGN_OR_RETURN(Writer file, OpenToWrite(path, kRegisterFile));
  std::unique_ptr<SqliteIdentityStore> opened(new SqliteIdentityStore(std::move(file)));
  HONE_ASSIGN_OR_RETURN(opened->find_,
                        opened->connection_.Prepare("SELECT (SELECT revoked FROM certificates WHERE serial = ?1), "
                                                    "EXISTS(SELECT 1 FROM revoked_names WHERE name = ?2)"));
  return opened;
}

absl::StatusOr<std::unique_ptr<IdentityChange>> SqliteIdentityStore::Begin() {
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  return std::make_unique<SqliteIdentityChange>(std::move(transaction));
}

absl::StatusOr<IdentityStore::CertificateState> SqliteIdentityStore::Find(const std::string& serial,
                                                                          const std::string& name) {
  find_->Bind(1, serial);
  find_->Bind(2, name);
  const absl::Status read = find_->Step().status();
  CertificateState state;
  if (read.ok()) {
    state.known = !find_->IsNull(0);
    state.revoked = state.known && find_->Int(0) != 0;
    state.name_revoked = find_->Int(1) != 0;
  }
  find_->Reset();  // a statement that is not reset would keep its snapshot and not see later changes
  HONE_RETURN_IF_ERROR(read);
  return state;
}

absl::Status SqliteIdentityStore::AddCertificate(const CertificateRow& certificate) {
  HONE_ASSIGN_OR_RETURN(
      Statement insert,
      connection_.Prepare("INSERT INTO certificates(serial, role, name, issued_ms, expires_ms, vouched_by, revoked) "
                          "VALUES(?, ?, ?, ?, ?, ?, ?)"));
  insert.Bind(1, certificate.serial);
  insert.Bind(2, certificate.role);
  insert.Bind(3, certificate.name);
  insert.Bind(4, absl::ToUnixMillis(certificate.issued));
  insert.Bind(5, absl::ToUnixMillis(certificate.expires));
  insert.Bind(6, certificate.vouched_by);
  insert.Bind(7, int64_t{certificate.revoked});
  return insert.Run();
}

absl::StatusOr<std::string> SqliteIdentityStore::VoucherOf(const std::string& serial) const {
  HONE_ASSIGN_OR_RETURN(Statement select, connection_.Prepare("SELECT vouched_by FROM certificates WHERE serial = ?"));
  select.Bind(1, serial);
  HONE_ASSIGN_OR_RETURN(const bool found, select.Step());
  return found ? select.Text(0) : "";
}

absl::StatusOr<std::optional<absl::Time>> SqliteIdentityStore::LastIssued(const std::string& role,
                                                                          const std::string& name,
                                                                          const std::string& serial,
                                                                          absl::Time now) const {
  HONE_ASSIGN_OR_RETURN(Statement select,
                        connection_.Prepare("SELECT max(issued_ms) FROM certificates WHERE role = ? AND name = ? AND "
                                            "serial != ? AND issued_ms <= ?"));
  select.Bind(1, role);
  select.Bind(2, name);
  select.Bind(3, serial);
  select.Bind(4, absl::ToUnixMillis(now));
  HONE_RETURN_IF_ERROR(select.Step().status());
  if (select.IsNull(0)) return std::nullopt;
  return TimeOf(select.Int(0));
}

absl::Status SqliteIdentityStore::ForgetExpired(const std::string& role, const std::string& name,
                                                std::string_view voucher_suffix, absl::Time now) {
  HONE_ASSIGN_OR_RETURN(
      Statement remove,
      connection_.Prepare("DELETE FROM certificates WHERE expires_ms < ?3 AND ((role = ?1 AND name = ?2) OR "
                          "vouched_by LIKE '%' || ?4)"));
  remove.Bind(1, role);
  remove.Bind(2, name);
  remove.Bind(3, absl::ToUnixMillis(now));
  remove.Bind(4, voucher_suffix);
  return remove.Run();
}

absl::StatusOr<std::vector<CertificateRow>> SqliteIdentityStore::NewestCertificates() const {
  // In a query with max(), SQLite takes the other columns from the row that has the maximum.
  HONE_ASSIGN_OR_RETURN(
      Statement select,
      connection_.Prepare("SELECT role, name, serial, issued_ms, expires_ms, vouched_by, revoked, max(rowid) "
                          "FROM certificates GROUP BY role, name ORDER BY name, role"));
  std::vector<CertificateRow> newest;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return newest;
    newest.push_back({.serial = select.Text(2),
                      .role = select.Text(0),
                      .name = select.Text(1),
                      .issued = TimeOf(select.Int(3)),
                      .expires = TimeOf(select.Int(4)),
                      .vouched_by = select.Text(5),
                      .revoked = select.Int(6) != 0});
  }
}

absl::StatusOr<bool> SqliteIdentityStore::IsTaken(const std::string& name) const {
  HONE_ASSIGN_OR_RETURN(Statement select,
                        connection_.Prepare("SELECT 1 FROM certificates WHERE name = ? AND revoked = 0 LIMIT 1"));
  select.Bind(1, name);
  return select.Step();
}

absl::StatusOr<bool> SqliteIdentityStore::WasRevoked(const std::string& name) const {
  HONE_ASSIGN_OR_RETURN(Statement select, connection_.Prepare("SELECT 1 FROM revoked_names WHERE name = ?"));
  select.Bind(1, name);
  return select.Step();
}

absl::StatusOr<int64_t> SqliteIdentityStore::RevokeName(const std::string& name, absl::Time now) {
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  HONE_ASSIGN_OR_RETURN(Statement remember,
                        connection_.Prepare("INSERT OR REPLACE INTO revoked_names(name, at_ms) VALUES(?, ?)"));
  remember.Bind(1, name);
  remember.Bind(2, absl::ToUnixMillis(now));
  HONE_RETURN_IF_ERROR(remember.Run());
  HONE_ASSIGN_OR_RETURN(Statement tokens,
                        connection_.Prepare("UPDATE tokens SET revoked = 1 WHERE name = ?1 OR created_by = ?1"));
  tokens.Bind(1, name);
  HONE_RETURN_IF_ERROR(tokens.Run());
  HONE_ASSIGN_OR_RETURN(Statement certificates,
                        connection_.Prepare("UPDATE certificates SET revoked = 1 WHERE name = ? AND revoked = 0"));
  certificates.Bind(1, name);
  HONE_RETURN_IF_ERROR(certificates.Run());
  const int64_t changed = connection_.Changes();
  HONE_RETURN_IF_ERROR(transaction.Commit());
  return changed;
}

absl::Status SqliteIdentityStore::AddToken(const TokenRow& token) {
  HONE_ASSIGN_OR_RETURN(
      Statement insert,
      connection_.Prepare(
          "INSERT INTO tokens(hash, role, name, uses_left, created_ms, expires_ms, created_by, revoked) "
          "VALUES(?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.Bind(1, token.hash);
  insert.Bind(2, token.role);
  insert.Bind(3, token.name);
  insert.Bind(4, token.uses_left);
  insert.Bind(5, absl::ToUnixMillis(token.created));
  insert.Bind(6, absl::ToUnixMillis(token.expires));
  insert.Bind(7, token.created_by);
  insert.Bind(8, int64_t{token.revoked});
  return insert.Run();
}

absl::StatusOr<std::optional<TokenRow>> SqliteIdentityStore::FindToken(const std::string& hash) const {
  HONE_ASSIGN_OR_RETURN(Statement select, connection_.Prepare(std::string(kSelectToken) + "WHERE hash = ?"));
  select.Bind(1, hash);
  HONE_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return std::nullopt;
  return ReadToken(select);
}

absl::StatusOr<std::vector<TokenRow>> SqliteIdentityStore::Tokens() const {
  HONE_ASSIGN_OR_RETURN(Statement select, connection_.Prepare(std::string(kSelectToken) + "ORDER BY rowid DESC"));
  std::vector<TokenRow> tokens;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return tokens;
    tokens.push_back(ReadToken(select));
  }
}

absl::Status SqliteIdentityStore::SpendToken(const std::string& hash) {
  HONE_ASSIGN_OR_RETURN(Statement spend,
                        connection_.Prepare("UPDATE tokens SET uses_left = uses_left - 1 WHERE hash = ?"));
  spend.Bind(1, hash);
  return spend.Run();
}

absl::Status SqliteIdentityStore::ForgetTokens(absl::Time before) {
  HONE_ASSIGN_OR_RETURN(Statement forget,
                        connection_.Prepare("DELETE FROM tokens WHERE created_ms < ?1 AND expires_ms < ?1"));
  forget.Bind(1, absl::ToUnixMillis(before));
  return forget.Run();
}

absl::StatusOr<bool> SqliteIdentityStore::RevokeToken(const std::string& beginning, size_t digits) {
  HONE_ASSIGN_OR_RETURN(Statement update,
                        connection_.Prepare("UPDATE tokens SET revoked = 1 WHERE substr(hash, 1, ?) = ?"));
  update.Bind(1, static_cast<int64_t>(digits));
  update.Bind(2, beginning);
  HONE_RETURN_IF_ERROR(update.Run());
  return connection_.Changes() > 0;
}

}  // namespace hone::storage
