// SPDX-License-Identifier: Apache-2.0
#include "storage/memory/identity_store.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hone::storage {

// Holds a copy of the tables from before the change, and restores it if the change is not committed.
class MemoryIdentityStore::Change final : public IdentityChange {
 public:
  explicit Change(Tables* tables) : tables_(tables), before_(*tables) {}
  ~Change() override {
    if (!committed_) *tables_ = std::move(before_);
  }
  absl::Status Commit() override {
    committed_ = true;
    return absl::OkStatus();
  }

 private:
  Tables* const tables_;
  Tables before_;
  bool committed_ = false;
};

absl::StatusOr<std::unique_ptr<IdentityChange>> MemoryIdentityStore::Begin() {
  return std::make_unique<Change>(&tables_);
}

absl::StatusOr<IdentityStore::CertificateState> MemoryIdentityStore::Find(const std::string& serial,
                                                                          const std::string& name) {
  CertificateState state{.name_revoked = tables_.revoked_names.contains(name)};
  for (const CertificateRow& each : tables_.certificates) {
    if (each.serial == serial) state = {true, each.revoked, state.name_revoked};
  }
  return state;
}

absl::Status MemoryIdentityStore::AddCertificate(const CertificateRow& certificate) {
  for (const CertificateRow& each : tables_.certificates) {
    if (each.serial == certificate.serial) return absl::InvalidArgumentError("the serial is stored already");
  }
  tables_.certificates.push_back(certificate);
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryIdentityStore::VoucherOf(const std::string& serial) const {
  for (const CertificateRow& each : tables_.certificates) {
    if (each.serial == serial) return each.vouched_by;
  }
  return "";
}

absl::StatusOr<std::optional<absl::Time>> MemoryIdentityStore::LastIssued(const std::string& role,
                                                                          const std::string& name,
                                                                          const std::string& serial,
                                                                          absl::Time now) const {
  std::optional<absl::Time> last;
  for (const CertificateRow& each : tables_.certificates) {
    if (each.role != role || each.name != name || each.serial == serial || each.issued > now) continue;
    last = std::max(last.value_or(each.issued), each.issued);
  }
  return last;
}

absl::Status MemoryIdentityStore::ForgetExpired(const std::string& role, const std::string& name,
                                                std::string_view voucher_suffix, absl::Time now) {
  std::erase_if(tables_.certificates, [&](const CertificateRow& each) {
    const bool concerned = (each.role == role && each.name == name) || each.vouched_by.ends_with(voucher_suffix);
    return concerned && each.expires < now;
  });
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CertificateRow>> MemoryIdentityStore::NewestCertificates() const {
  std::map<std::pair<std::string, std::string>, CertificateRow> newest;
  for (const CertificateRow& each : tables_.certificates) newest[{each.name, each.role}] = each;
  std::vector<CertificateRow> rows;
  for (auto& [key, row] : newest) rows.push_back(std::move(row));
  return rows;
}

absl::StatusOr<bool> MemoryIdentityStore::IsTaken(const std::string& name) const {
  return std::ranges::any_of(tables_.certificates,
                             [&](const CertificateRow& each) { return each.name == name && !each.revoked; });
}

absl::StatusOr<bool> MemoryIdentityStore::WasRevoked(const std::string& name) const {
  return tables_.revoked_names.contains(name);
}

absl::StatusOr<int64_t> MemoryIdentityStore::RevokeName(const std::string& name, absl::Time /*now*/) {
  tables_.revoked_names.insert(name);
  for (TokenRow& token : tables_.tokens) token.revoked |= token.name == name || token.created_by == name;
  int64_t changed = 0;
  for (CertificateRow& each : tables_.certificates) {
    if (each.name != name || each.revoked) continue;
    each.revoked = true;
    ++changed;
  }
  return changed;
}

absl::Status MemoryIdentityStore::AddToken(const TokenRow& token) {
  tables_.tokens.push_back(token);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<TokenRow>> MemoryIdentityStore::FindToken(const std::string& hash) const {
  for (const TokenRow& token : tables_.tokens) {
    if (token.hash == hash) return token;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<TokenRow>> MemoryIdentityStore::Tokens() const {
  return std::vector<TokenRow>(tables_.tokens.rbegin(), tables_.tokens.rend());
}

absl::Status MemoryIdentityStore::SpendToken(const std::string& hash) {
  for (TokenRow& token : tables_.tokens) {
    if (token.hash == hash) --token.uses_left;
  }
  return absl::OkStatus();
}

absl::Status MemoryIdentityStore::ForgetTokens(absl::Time before) {
  std::erase_if(tables_.tokens, [&](const TokenRow& each) { return each.created < before && each.expires < before; });
  return absl::OkStatus();
}

absl::StatusOr<bool> MemoryIdentityStore::RevokeToken(const std::string& beginning, size_t digits) {
  bool found = false;
  for (TokenRow& token : tables_.tokens) {
    if (token.hash.substr(0, digits) != beginning) continue;
    token.revoked = true;
    found = true;
  }
  return found;
}

}  // namespace hone::storage
