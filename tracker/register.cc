// SPDX-License-Identifier: Apache-2.0
#include "tracker/register.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/digest.h"
#include "base/identity.h"
#include "base/status.h"
#include "proto/convert.h"
#include "storage/open.h"
#include "tracker/queue/jobs.h"

namespace hone::tracker {
namespace {

constexpr size_t kIdDigits = 8;
constexpr size_t kHostBytesMax = 50;  // leaves room for what makes a name unique
constexpr size_t kSuffixDigitsMin = 4, kSuffixDigitsMax = 12;
constexpr absl::Duration kTokensKept = absl::Hours(24 * 30);
// Of a certificate, at most so many. Its holder tries half as often (pki/farm_link.cc).
constexpr int kRenewalsInLife = 200;
// Stands behind who vouched for the certificate of a browser session. By this it is known as one.
constexpr std::string_view kForSession = ", for a browser session";
constexpr char kAsk[] = "ask an admin of the farm for a new one (hone token create)";

std::string IdOf(const std::string& hash) { return hash.substr(0, kIdDigits); }

absl::Status InvalidToken(const std::string& id, const std::string& what) {
  return absl::UnauthenticatedError(fmt::format("the token {} {}; {}", id, what, kAsk));
}

absl::Status Revoked(const std::string& name) {
  return absl::UnauthenticatedError(fmt::format(
      "the certificate of '{}' was revoked; move its folder (the one of --identity) away, and join again with a "
      "token from an admin of the farm, or, if another authority signs the certificates, get a certificate "
      "with another name",
      name));
}

std::string Spelled(Role role) { return std::string(Name(role)); }

// What of a host's name can be the name of an identity; empty if nothing.
std::string NameOfHost(const std::string& host) {
  std::string name;
  for (const char c : host.substr(0, kHostBytesMax)) {
    if (CheckFarmName(name + c).ok()) name += c;
  }
  return name;
}

v1::Token TokenOf(const storage::TokenRow& row) {
  v1::Token token;
  token.set_id(IdOf(row.hash));
  token.set_role(row.role);
  token.set_name(row.name);
  token.set_uses_left(static_cast<int32_t>(row.uses_left));
  *token.mutable_created() = ToProto(row.created);
  *token.mutable_expires() = ToProto(row.expires);
  token.set_created_by(row.created_by);
  token.set_revoked(row.revoked);
  return token;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Register>> Register::Open(const std::filesystem::path& path) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<storage::IdentityStore> store, storage::OpenIdentities(path));
  return std::make_unique<Register>(std::move(store));
}

absl::Status Register::Admit(const FarmIdentity& identity, const pki::CertificateFacts& facts, absl::Time now) {
  const std::lock_guard lock(mutex_);
  return AdmitLocked(identity, facts, now);
}

absl::Status Register::AdmitLocked(const FarmIdentity& identity, const pki::CertificateFacts& facts, absl::Time now) {
  if (now >= facts.until) {
    return absl::UnauthenticatedError(
        fmt::format("the certificate of '{}' ended at {}; join again with a new token, or, if another authority signs "
                    "the certificates, get a newer certificate",
                    identity.name, absl::FormatTime(facts.until, absl::UTCTimeZone())));
  }
  HONE_ASSIGN_OR_RETURN(const storage::IdentityStore::CertificateState standing,
                        store_->Find(facts.serial, identity.name));
  if (standing.known ? standing.revoked : standing.name_revoked) return Revoked(identity.name);
  return standing.known ? absl::OkStatus() : Insert(identity, facts, "signed elsewhere", now);
}

absl::Status Register::Insert(const FarmIdentity& identity, const pki::CertificateFacts& facts,
                              const std::string& vouched_by, absl::Time now) const {
  return store_->AddCertificate({.serial = facts.serial,
                                 .role = Spelled(identity.role),
                                 .name = identity.name,
                                 .issued = now,
                                 .expires = facts.until,
                                 .vouched_by = vouched_by});
}

absl::StatusOr<std::string> Register::SignAndInsert(const FarmIdentity& identity, const Sign& sign,
                                                    const std::string& vouched_by, absl::Time now) const {
  HONE_ASSIGN_OR_RETURN(std::string certificate, sign(identity));
  HONE_ASSIGN_OR_RETURN(const pki::CertificateFacts facts, pki::ReadCertificate(certificate));
  HONE_RETURN_IF_ERROR(Insert(identity, facts, vouched_by, now));
  // Expired certificates only take room. The new one keeps the name of the identity; a browser session keeps none.
  HONE_RETURN_IF_ERROR(store_->ForgetExpired(Spelled(identity.role), identity.name, kForSession, now));
  return certificate;
}

// A tenth of its life before its holder asks for it, whose clock may be ahead. After that it is renewed again only
// where an answer may have been lost: nobody shall fill the register, or push what matters out of the audit log.
absl::StatusOr<absl::Time> Register::RenewableFrom(const FarmIdentity& identity, const pki::CertificateFacts& facts,
                                                   absl::Time now) const {
  const absl::Duration life = facts.until - facts.from;
  HONE_ASSIGN_OR_RETURN(const std::optional<absl::Time> last,
                        store_->LastIssued(Spelled(identity.role), identity.name, facts.serial, now));
  return std::max(pki::RenewalTime(facts) - life / 10, last.value_or(absl::InfinitePast()) + life / kRenewalsInLife);
}

absl::StatusOr<std::string> Register::Renew(const FarmIdentity& identity, const pki::CertificateFacts& facts,
                                            const Sign& sign, absl::Time now) {
  const std::lock_guard lock(mutex_);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<storage::IdentityChange> change, store_->Begin());
  HONE_RETURN_IF_ERROR(AdmitLocked(identity, facts, now));  // it may have been revoked since the call began
  HONE_ASSIGN_OR_RETURN(const absl::Time from, RenewableFrom(identity, facts, now));
  if (now < from) {
    return absl::FailedPreconditionError(fmt::format(
        "the certificate of '{}' is valid until {}, and can be renewed from {} on; use it until then", identity.name,
        absl::FormatTime(facts.until, absl::UTCTimeZone()), absl::FormatTime(from, absl::UTCTimeZone())));
  }
  HONE_ASSIGN_OR_RETURN(const std::string vouched_by, store_->VoucherOf(facts.serial));
  HONE_ASSIGN_OR_RETURN(std::string certificate, SignAndInsert(identity, sign, vouched_by, now));
  HONE_RETURN_IF_ERROR(change->Commit());
  return certificate;
}

absl::StatusOr<int64_t> Register::Revoke(const std::string& name, absl::Time now) {
  HONE_RETURN_IF_ERROR(CheckFarmName(name));
  const std::lock_guard lock(mutex_);
  HONE_ASSIGN_OR_RETURN(const int64_t changed, store_->RevokeName(name, now));
  const std::lock_guard revoked_lock(revoked_mutex_);
  ++revoked_[name];
  return changed;
}

int64_t Register::RevocationCount(const std::string& name) const {
  const std::lock_guard lock(revoked_mutex_);
  const auto known = revoked_.find(name);
  return known == revoked_.end() ? 0 : known->second;
}

absl::StatusOr<std::vector<v1::Identity>> Register::Identities() {
  const std::lock_guard lock(mutex_);
  HONE_ASSIGN_OR_RETURN(const std::vector<storage::CertificateRow> rows, store_->NewestCertificates());
  std::vector<v1::Identity> identities;
  for (const storage::CertificateRow& row : rows) {
    v1::Identity& identity = identities.emplace_back();
    identity.set_role(row.role);
    identity.set_name(row.name);
    identity.set_serial(row.serial);
    *identity.mutable_issued() = ToProto(row.issued);
    *identity.mutable_expires() = ToProto(row.expires);
    identity.set_vouched_by(row.vouched_by);
    identity.set_revoked(row.revoked);
  }
  return identities;
}

// A caller that was revoked since its call began could come back with the token that it makes.
absl::Status Register::CheckNotRevoked(const std::string& name) const {
  HONE_ASSIGN_OR_RETURN(const bool revoked, store_->WasRevoked(name));
  if (!revoked) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const bool again, store_->IsTaken(name));
  return again ? absl::OkStatus() : Revoked(name);
}

absl::StatusOr<v1::Token> Register::AddToken(const NewToken& token, absl::Time now) {
  const std::lock_guard lock(mutex_);
  HONE_RETURN_IF_ERROR(CheckNotRevoked(token.created_by));
  if (!token.name.empty()) {
    HONE_ASSIGN_OR_RETURN(const bool taken, store_->IsTaken(token.name));
    if (taken) {
      return absl::AlreadyExistsError(fmt::format(
          "'{}' has a certificate already; to free the name: hone identity revoke {}", token.name, token.name));
    }
  }
  HONE_RETURN_IF_ERROR(store_->ForgetTokens(now - kTokensKept));
  const storage::TokenRow row{.hash = Sha256Hex(token.secret),
                              .role = Spelled(token.role),
                              .name = token.name,
                              .uses_left = token.uses,
                              .created = now,
                              .expires = token.expires,
                              .created_by = token.created_by};
  HONE_RETURN_IF_ERROR(store_->AddToken(row));
  return TokenOf(row);
}

absl::StatusOr<Register::StoredToken> Register::ValidToken(const std::string& secret, absl::Time now) const {
  const std::string hash = Sha256Hex(secret);
  HONE_ASSIGN_OR_RETURN(const std::optional<storage::TokenRow> token, store_->FindToken(hash));
  if (!token.has_value()) return absl::UnauthenticatedError(fmt::format("this farm does not know the token; {}", kAsk));
  if (token->revoked) return InvalidToken(IdOf(hash), "was revoked");
  if (token->uses_left <= 0) return InvalidToken(IdOf(hash), "was used already");
  if (absl::ToUnixMillis(now) >= absl::ToUnixMillis(token->expires)) return InvalidToken(IdOf(hash), "has expired");
  const std::optional<Role> role = ParseRole(token->role);
  HONE_CHECK(role.has_value());  // AddToken wrote it
  return StoredToken{*role, token->name, token->created_by};
}

absl::Status Register::CheckToken(const std::string& secret, absl::Time now) {
  const std::lock_guard lock(mutex_);
  return ValidToken(secret, now).status();
}

absl::StatusOr<std::vector<v1::Token>> Register::Tokens() {
  const std::lock_guard lock(mutex_);
  HONE_ASSIGN_OR_RETURN(const std::vector<storage::TokenRow> rows, store_->Tokens());
  std::vector<v1::Token> tokens;
  for (const storage::TokenRow& row : rows) tokens.push_back(TokenOf(row));
  return tokens;
}

absl::Status Register::RevokeToken(const std::string& id) {
  const std::lock_guard lock(mutex_);
  HONE_ASSIGN_OR_RETURN(const bool found, store_->RevokeToken(id, kIdDigits));
  if (found) return absl::OkStatus();
  return absl::NotFoundError(fmt::format("there is no token '{}'; `hone token list` lists them", id));
}

absl::StatusOr<std::string> Register::NameFor(const JoinRequest& request, const StoredToken& token) const {
  if (!token.name.empty() && !request.name.empty() && request.name != token.name) {
    return absl::PermissionDeniedError(
        fmt::format("the token is for the name '{}', not for '{}'; omit --name", token.name, request.name));
  }
  std::string name = token.name.empty() ? request.name : token.name;
  if (!name.empty()) {
    HONE_RETURN_IF_ERROR(CheckFarmName(name));
    HONE_ASSIGN_OR_RETURN(const bool taken, store_->IsTaken(name));
    if (!taken) return name;
    return absl::AlreadyExistsError(fmt::format(
        "the name '{}' is taken; choose another with --name, or ask an admin to free it: hone identity revoke {}", name,
        name));
  }
  const std::string host = NameOfHost(request.host_name);
  name = host.empty() ? Spelled(token.role) : host;
  const std::string first = name;
  for (size_t digits = kSuffixDigitsMin;; digits = std::min(digits + 1, kSuffixDigitsMax)) {
    HONE_ASSIGN_OR_RETURN(const bool taken, store_->IsTaken(name));
    if (!taken) return name;
    name = first + "-" + RandomId().substr(0, digits);
  }
}

absl::StatusOr<Register::Enrolled> Register::Enrol(const JoinRequest& request, const Sign& sign, absl::Time now) {
  const std::lock_guard lock(mutex_);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<storage::IdentityChange> change, store_->Begin());
  HONE_ASSIGN_OR_RETURN(const StoredToken token, ValidToken(request.secret, now));
  if (request.role != Name(token.role)) {
    return absl::PermissionDeniedError(
        fmt::format("the token is for role {}, not for role {}", Name(token.role), request.role));
  }
  Enrolled enrolled{{token.role, ""}, ""};
  HONE_ASSIGN_OR_RETURN(enrolled.identity.name, NameFor(request, token));
  const std::string hash = Sha256Hex(request.secret);
  const std::string vouched_by =
      fmt::format("token {} of {}{}", IdOf(hash), token.created_by, request.session ? kForSession : "");
  HONE_ASSIGN_OR_RETURN(enrolled.certificate, SignAndInsert(enrolled.identity, sign, vouched_by, now));
  HONE_RETURN_IF_ERROR(store_->SpendToken(hash));
  HONE_RETURN_IF_ERROR(change->Commit());
  return enrolled;
}

}  // namespace hone::tracker
