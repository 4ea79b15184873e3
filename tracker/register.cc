// SPDX-License-Identifier: Apache-2.0
#include "tracker/register.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/digest.h"
#include "base/identity.h"
#include "base/status.h"
#include "tracker/queue/jobs.h"

namespace hone::tracker {
namespace {

// Files from before versions have these tables already.
constexpr char kRegisterVersion1[] = R"(
CREATE TABLE IF NOT EXISTS certificates(serial TEXT PRIMARY KEY, role TEXT NOT NULL, name TEXT NOT NULL,
  issued_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, vouched_by TEXT NOT NULL, revoked INTEGER NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS certificates_by_name ON certificates(name);
CREATE TABLE IF NOT EXISTS revoked_names(name TEXT PRIMARY KEY, at_ms INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS tokens(hash TEXT PRIMARY KEY, role TEXT NOT NULL, name TEXT NOT NULL,
  uses_left INTEGER NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, created_by TEXT NOT NULL,
  revoked INTEGER NOT NULL) STRICT;
)";

absl::StatusOr<int64_t> UpgradeRegister(const records::Connection& connection, int64_t /*version*/) {
  HONE_RETURN_IF_ERROR(connection.Execute(kRegisterVersion1));
  return 1;
}

constexpr size_t kIdDigits = 8;
constexpr size_t kLongestHost = 50;  // leaves room for what makes a name unique
constexpr size_t kSuffixDigits = 4, kMostSuffixDigits = 12;
constexpr absl::Duration kTokensKept = absl::Hours(24 * 30);
// Of a certificate, at most so many. Its holder tries half as often (pki/farm_link.cc).
constexpr int kRenewalsInLife = 200;
// Stands behind who vouched for the certificate of a browser session. By this it is known as one.
constexpr std::string_view kForSession = ", for a browser session";
constexpr char kAsk[] = "ask an admin of the farm for a new one (hone token create)";

std::string IdOf(const std::string& hash) { return hash.substr(0, kIdDigits); }

absl::Status BadToken(const std::string& id, const std::string& what) {
  return absl::UnauthenticatedError(fmt::format("the token {} {}; {}", id, what, kAsk));
}

absl::Status Revoked(const std::string& name) {
  return absl::UnauthenticatedError(
      fmt::format("the certificate of '{}' was revoked; an admin of the farm may give you a token to join again with, "
                  "or, where certificates come from elsewhere, one with another name",
                  name));
}

std::string Spelled(Role role) { return std::string(Name(role)); }

// What of a host's name can be the name of an identity; empty if nothing.
std::string NameOfHost(const std::string& host) {
  std::string name;
  for (const char c : host.substr(0, kLongestHost)) {
    if (CheckFarmName(name + c).ok()) name += c;
  }
  return name;
}

google::protobuf::Timestamp Stamp(int64_t ms) { return ToProto(absl::FromUnixMillis(ms)); }

}  // namespace

constinit const records::DatabaseKind kRegisterFile = {
    .what = "register",
    .when_held = "two trackers cannot share a folder of certificates: stop the other",
    .when_newer = "restore the backup from before the update",
    .application_id = 0x484F4E52,  // "HONR"
    .version = 1,
    .unmarked_table = "revoked_names",
    .upgrade = UpgradeRegister,
    .secret = true,
};

absl::Status RevokeTokens(const std::filesystem::path& path) {
  HONE_ASSIGN_OR_RETURN(const records::Writer file, records::OpenToWrite(path, kRegisterFile));
  HONE_RETURN_IF_ERROR(file.connection.Execute("UPDATE tokens SET revoked = 1"));
  return file.connection.Execute("PRAGMA journal_mode = DELETE");
}

absl::StatusOr<std::unique_ptr<Register>> Register::Open(const std::filesystem::path& path) {
  HONE_ASSIGN_OR_RETURN(records::Writer file, records::OpenToWrite(path, kRegisterFile));
  std::unique_ptr<Register> opened(new Register(std::move(file)));
  HONE_ASSIGN_OR_RETURN(opened->known_,
                        opened->connection_.Prepare("SELECT (SELECT revoked FROM certificates WHERE serial = ?1), "
                                                    "EXISTS(SELECT 1 FROM revoked_names WHERE name = ?2)"));
  return opened;
}

absl::Status Register::Admit(const FarmIdentity& identity, const pki::CertificateFacts& facts, absl::Time now) {
  const std::lock_guard lock(mutex_);
  return AdmitLocked(identity, facts, now);
}

absl::Status Register::AdmitLocked(const FarmIdentity& identity, const pki::CertificateFacts& facts, absl::Time now) {
  if (now >= facts.until) {
    return absl::UnauthenticatedError(fmt::format(
        "the certificate of '{}' ended at {}; join again with a new token, or, where certificates come from elsewhere, "
        "with a newer one",
        identity.name, absl::FormatTime(facts.until, absl::UTCTimeZone())));
  }
  known_->Bind(1, facts.serial);
  known_->Bind(2, identity.name);
  const absl::Status read = known_->Step().status();
  const bool seen = read.ok() && !known_->IsNull(0);
  const bool revoked = read.ok() && (seen ? known_->Int(0) != 0 : known_->Int(1) != 0);
  known_->Reset();  // else it goes on reading what the file was now
  HONE_RETURN_IF_ERROR(read);
  if (revoked) return Revoked(identity.name);
  return seen ? absl::OkStatus() : Insert(identity, facts, "signed elsewhere", now);
}

absl::Status Register::Insert(const FarmIdentity& identity, const pki::CertificateFacts& facts,
                              const std::string& vouched_by, absl::Time now) const {
  HONE_ASSIGN_OR_RETURN(
      records::Statement insert,
      connection_.Prepare("INSERT INTO certificates(serial, role, name, issued_ms, expires_ms, vouched_by, revoked) "
                          "VALUES(?, ?, ?, ?, ?, ?, 0)"));
  insert.Bind(1, facts.serial);
  insert.Bind(2, Spelled(identity.role));
  insert.Bind(3, identity.name);
  insert.Bind(4, absl::ToUnixMillis(now));
  insert.Bind(5, absl::ToUnixMillis(facts.until));
  insert.Bind(6, vouched_by);
  return insert.Run();
}

absl::StatusOr<std::string> Register::SignAndInsert(const FarmIdentity& identity, const Sign& sign,
                                                    const std::string& vouched_by, absl::Time now) const {
  HONE_ASSIGN_OR_RETURN(std::string certificate, sign(identity));
  HONE_ASSIGN_OR_RETURN(const pki::CertificateFacts facts, pki::ReadCertificate(certificate));
  HONE_RETURN_IF_ERROR(Insert(identity, facts, vouched_by, now));
  HONE_RETURN_IF_ERROR(ForgetExpired(identity, now));
  return certificate;
}

// What cannot be shown any more takes room only. Of the identity a row stays, by which its name is known to be taken;
// of sessions none.
absl::Status Register::ForgetExpired(const FarmIdentity& identity, absl::Time now) const {
  HONE_ASSIGN_OR_RETURN(
      records::Statement remove,
      connection_.Prepare("DELETE FROM certificates WHERE expires_ms < ?3 AND ((role = ?1 AND name = ?2) OR "
                          "vouched_by LIKE '%' || ?4)"));
  remove.Bind(1, Spelled(identity.role));
  remove.Bind(2, identity.name);
  remove.Bind(3, absl::ToUnixMillis(now));
  remove.Bind(4, kForSession);
  return remove.Run();
}

// A tenth of its life before its holder asks for it, whose clock may be ahead. After that it is renewed again only
// where an answer may have been lost: nobody shall fill the register, or push what matters out of the audit log.
absl::StatusOr<absl::Time> Register::RenewableFrom(const FarmIdentity& identity, const pki::CertificateFacts& facts,
                                                   absl::Time now) const {
  const absl::Duration life = facts.until - facts.from;
  HONE_ASSIGN_OR_RETURN(records::Statement select,
                        connection_.Prepare("SELECT max(issued_ms) FROM certificates WHERE role = ? AND name = ? AND "
                                            "serial != ? AND issued_ms <= ?"));
  select.Bind(1, Spelled(identity.role));
  select.Bind(2, identity.name);
  select.Bind(3, facts.serial);
  select.Bind(4, absl::ToUnixMillis(now));
  HONE_RETURN_IF_ERROR(select.Step().status());
  const absl::Time last = select.IsNull(0) ? absl::InfinitePast() : absl::FromUnixMillis(select.Int(0));
  return std::max(pki::RenewalTime(facts) - life / 10, last + life / kRenewalsInLife);
}

absl::StatusOr<std::string> Register::VoucherOf(const pki::CertificateFacts& facts) const {
  HONE_ASSIGN_OR_RETURN(records::Statement select,
                        connection_.Prepare("SELECT vouched_by FROM certificates WHERE serial = ?"));
  select.Bind(1, facts.serial);
  HONE_RETURN_IF_ERROR(select.Step().status());
  return select.Text(0);
}

absl::StatusOr<std::string> Register::Renew(const FarmIdentity& identity, const pki::CertificateFacts& facts,
                                            const Sign& sign, absl::Time now) {
  const std::lock_guard lock(mutex_);
  HONE_ASSIGN_OR_RETURN(records::Transaction transaction, records::Transaction::Begin(connection_));
  HONE_RETURN_IF_ERROR(AdmitLocked(identity, facts, now));  // it may have been revoked since the call began
  HONE_ASSIGN_OR_RETURN(const absl::Time from, RenewableFrom(identity, facts, now));
  if (now < from) {
    return absl::FailedPreconditionError(fmt::format(
        "the certificate of '{}' is good until {}, and may be renewed from {} on; use it until then", identity.name,
        absl::FormatTime(facts.until, absl::UTCTimeZone()), absl::FormatTime(from, absl::UTCTimeZone())));
  }
  HONE_ASSIGN_OR_RETURN(const std::string vouched_by, VoucherOf(facts));
  HONE_ASSIGN_OR_RETURN(std::string certificate, SignAndInsert(identity, sign, vouched_by, now));
  HONE_RETURN_IF_ERROR(transaction.Commit());
  return certificate;
}

absl::StatusOr<int64_t> Register::Revoke(const std::string& name, absl::Time now) {
  HONE_RETURN_IF_ERROR(CheckFarmName(name));
  const std::lock_guard lock(mutex_);
  HONE_ASSIGN_OR_RETURN(records::Transaction transaction, records::Transaction::Begin(connection_));
  HONE_ASSIGN_OR_RETURN(records::Statement remember,
                        connection_.Prepare("INSERT OR REPLACE INTO revoked_names(name, at_ms) VALUES(?, ?)"));
  remember.Bind(1, name);
  remember.Bind(2, absl::ToUnixMillis(now));
  HONE_RETURN_IF_ERROR(remember.Run());
  HONE_ASSIGN_OR_RETURN(records::Statement tokens,
                        connection_.Prepare("UPDATE tokens SET revoked = 1 WHERE name = ?1 OR created_by = ?1"));
  tokens.Bind(1, name);
  HONE_RETURN_IF_ERROR(tokens.Run());
  HONE_ASSIGN_OR_RETURN(records::Statement certificates,
                        connection_.Prepare("UPDATE certificates SET revoked = 1 WHERE name = ? AND revoked = 0"));
  certificates.Bind(1, name);
  HONE_RETURN_IF_ERROR(certificates.Run());
  const int64_t changed = connection_.Changes();
  HONE_RETURN_IF_ERROR(transaction.Commit());
  const std::lock_guard revoked_lock(revoked_mutex_);
  ++revoked_[name];
  return changed;
}

int64_t Register::RevocationOf(const std::string& name) const {
  const std::lock_guard lock(revoked_mutex_);
  const auto known = revoked_.find(name);
  return known == revoked_.end() ? 0 : known->second;
}

absl::StatusOr<std::vector<v1::Identity>> Register::Identities() {
  const std::lock_guard lock(mutex_);
  // Of bare columns beside max(), SQLite takes the row that has the maximum.
  HONE_ASSIGN_OR_RETURN(
      records::Statement select,
      connection_.Prepare("SELECT role, name, serial, issued_ms, expires_ms, vouched_by, revoked, max(rowid) "
                          "FROM certificates GROUP BY role, name ORDER BY name, role"));
  std::vector<v1::Identity> identities;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return identities;
    v1::Identity& identity = identities.emplace_back();
    identity.set_role(select.Text(0));
    identity.set_name(select.Text(1));
    identity.set_serial(select.Text(2));
    *identity.mutable_issued() = Stamp(select.Int(3));
    *identity.mutable_expires() = Stamp(select.Int(4));
    identity.set_vouched_by(select.Text(5));
    identity.set_revoked(select.Int(6) != 0);
  }
}

absl::StatusOr<bool> Register::Taken(const std::string& name) const {
  HONE_ASSIGN_OR_RETURN(records::Statement select,
                        connection_.Prepare("SELECT 1 FROM certificates WHERE name = ? AND revoked = 0 LIMIT 1"));
  select.Bind(1, name);
  return select.Step();
}

// Nobody who was revoked since the call began, who could come back with the token.
absl::Status Register::CheckNotRevoked(const std::string& name) const {
  HONE_ASSIGN_OR_RETURN(records::Statement select, connection_.Prepare("SELECT 1 FROM revoked_names WHERE name = ?"));
  select.Bind(1, name);
  HONE_ASSIGN_OR_RETURN(const bool revoked, select.Step());
  if (!revoked) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const bool again, Taken(name));
  return again ? absl::OkStatus() : Revoked(name);
}

absl::StatusOr<v1::Token> Register::AddToken(const NewToken& token, absl::Time now) {
  const std::lock_guard lock(mutex_);
  HONE_RETURN_IF_ERROR(CheckNotRevoked(token.created_by));
  if (!token.name.empty()) {
    HONE_ASSIGN_OR_RETURN(const bool taken, Taken(token.name));
    if (taken) {
      return absl::AlreadyExistsError(fmt::format(
          "'{}' has a certificate already; to give the name away: hone identity revoke {}", token.name, token.name));
    }
  }
  HONE_ASSIGN_OR_RETURN(records::Statement forget,
                        connection_.Prepare("DELETE FROM tokens WHERE created_ms < ?1 AND expires_ms < ?1"));
  forget.Bind(1, absl::ToUnixMillis(now - kTokensKept));
  HONE_RETURN_IF_ERROR(forget.Run());
  const std::string hash = Sha256Hex(token.secret);
  HONE_ASSIGN_OR_RETURN(
      records::Statement insert,
      connection_.Prepare(
          "INSERT INTO tokens(hash, role, name, uses_left, created_ms, expires_ms, created_by, revoked) "
          "VALUES(?, ?, ?, ?, ?, ?, ?, 0)"));
  insert.Bind(1, hash);
  insert.Bind(2, Spelled(token.role));
  insert.Bind(3, token.name);
  insert.Bind(4, static_cast<int64_t>(token.uses));
  insert.Bind(5, absl::ToUnixMillis(now));
  insert.Bind(6, absl::ToUnixMillis(token.expires));
  insert.Bind(7, token.created_by);
  HONE_RETURN_IF_ERROR(insert.Run());
  v1::Token added;
  added.set_id(IdOf(hash));
  added.set_role(Spelled(token.role));
  added.set_name(token.name);
  added.set_uses_left(token.uses);
  *added.mutable_created() = ToProto(now);
  *added.mutable_expires() = ToProto(token.expires);
  added.set_created_by(token.created_by);
  return added;
}

absl::StatusOr<Register::StoredToken> Register::GoodToken(const std::string& secret, absl::Time now) const {
  const std::string hash = Sha256Hex(secret);
  HONE_ASSIGN_OR_RETURN(
      records::Statement select,
      connection_.Prepare("SELECT role, name, created_by, uses_left, expires_ms, revoked FROM tokens WHERE hash = ?"));
  select.Bind(1, hash);
  HONE_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return absl::UnauthenticatedError(fmt::format("this farm knows no such token; {}", kAsk));
  if (select.Int(5) != 0) return BadToken(IdOf(hash), "was revoked");
  if (select.Int(3) <= 0) return BadToken(IdOf(hash), "was used already");
  if (absl::ToUnixMillis(now) >= select.Int(4)) return BadToken(IdOf(hash), "is past its time");
  const std::optional<Role> role = RoleNamed(select.Text(0));
  HONE_CHECK(role.has_value());  // AddToken wrote it
  return StoredToken{*role, select.Text(1), select.Text(2)};
}

absl::Status Register::CheckToken(const std::string& secret, absl::Time now) {
  const std::lock_guard lock(mutex_);
  return GoodToken(secret, now).status();
}

absl::StatusOr<std::vector<v1::Token>> Register::Tokens() {
  const std::lock_guard lock(mutex_);
  HONE_ASSIGN_OR_RETURN(
      records::Statement select,
      connection_.Prepare("SELECT hash, role, name, uses_left, created_ms, expires_ms, created_by, revoked FROM tokens "
                          "ORDER BY rowid DESC"));
  std::vector<v1::Token> tokens;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return tokens;
    v1::Token& token = tokens.emplace_back();
    token.set_id(IdOf(select.Text(0)));
    token.set_role(select.Text(1));
    token.set_name(select.Text(2));
    token.set_uses_left(static_cast<int32_t>(select.Int(3)));
    *token.mutable_created() = Stamp(select.Int(4));
    *token.mutable_expires() = Stamp(select.Int(5));
    token.set_created_by(select.Text(6));
    token.set_revoked(select.Int(7) != 0);
  }
}

absl::Status Register::RevokeToken(const std::string& id) {
  const std::lock_guard lock(mutex_);
  HONE_ASSIGN_OR_RETURN(records::Statement update,
                        connection_.Prepare("UPDATE tokens SET revoked = 1 WHERE substr(hash, 1, ?) = ?"));
  update.Bind(1, static_cast<int64_t>(kIdDigits));
  update.Bind(2, id);
  HONE_RETURN_IF_ERROR(update.Run());
  if (connection_.Changes() > 0) return absl::OkStatus();
  return absl::NotFoundError(fmt::format("there is no token '{}'; `hone token list` lists them", id));
}

absl::StatusOr<std::string> Register::NameFor(const Wish& wish, const StoredToken& token) const {
  if (!token.name.empty() && !wish.name.empty() && wish.name != token.name) {
    return absl::PermissionDeniedError(
        fmt::format("the token is for the name '{}', not for '{}'; leave --name out", token.name, wish.name));
  }
  std::string name = token.name.empty() ? wish.name : token.name;
  if (!name.empty()) {
    HONE_RETURN_IF_ERROR(CheckFarmName(name));
    HONE_ASSIGN_OR_RETURN(const bool taken, Taken(name));
    if (!taken) return name;
    return absl::AlreadyExistsError(fmt::format(
        "the name '{}' is taken; choose another with --name, or have an admin free it: hone identity revoke "
        "{}",
        name, name));
  }
  const std::string host = NameOfHost(wish.host_name);
  name = host.empty() ? Spelled(token.role) : host;
  const std::string first = name;
  for (size_t digits = kSuffixDigits;; digits = std::min(digits + 1, kMostSuffixDigits)) {
    HONE_ASSIGN_OR_RETURN(const bool taken, Taken(name));
    if (!taken) return name;
    name = first + "-" + RandomId().substr(0, digits);
  }
}

absl::StatusOr<Register::Enrolled> Register::Enrol(const Wish& wish, const Sign& sign, absl::Time now) {
  const std::lock_guard lock(mutex_);
  HONE_ASSIGN_OR_RETURN(records::Transaction transaction, records::Transaction::Begin(connection_));
  HONE_ASSIGN_OR_RETURN(const StoredToken token, GoodToken(wish.secret, now));
  if (wish.role != Name(token.role)) {
    return absl::PermissionDeniedError(
        fmt::format("the token is for role {}, not for role {}", Name(token.role), wish.role));
  }
  Enrolled enrolled{{token.role, ""}, ""};
  HONE_ASSIGN_OR_RETURN(enrolled.identity.name, NameFor(wish, token));
  const std::string hash = Sha256Hex(wish.secret);
  const std::string vouched_by =
      fmt::format("token {} of {}{}", IdOf(hash), token.created_by, wish.session ? kForSession : "");
  HONE_ASSIGN_OR_RETURN(enrolled.certificate, SignAndInsert(enrolled.identity, sign, vouched_by, now));
  HONE_ASSIGN_OR_RETURN(records::Statement spend,
                        connection_.Prepare("UPDATE tokens SET uses_left = uses_left - 1 WHERE hash = ?"));
  spend.Bind(1, hash);
  HONE_RETURN_IF_ERROR(spend.Run());
  HONE_RETURN_IF_ERROR(transaction.Commit());
  return enrolled;
}

}  // namespace hone::tracker
