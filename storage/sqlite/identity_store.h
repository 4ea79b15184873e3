// SPDX-License-Identifier: Apache-2.0
// The register of a farm in an SQLite file; storage/identity_store.h says what each member does.
#ifndef HONE_STORAGE_SQLITE_IDENTITY_STORE_H_
#define HONE_STORAGE_SQLITE_IDENTITY_STORE_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/identity_store.h"
#include "storage/sqlite/database.h"

namespace hone::storage {

extern const DatabaseKind kRegisterFile;

// Revokes all tokens of a register that no process has open, and leaves it without a log. Errors as Open.
absl::Status RevokeTokens(const std::filesystem::path& path);

class SqliteIdentityStore final : public IdentityStore {
 public:
  static absl::StatusOr<std::unique_ptr<SqliteIdentityStore>> Open(const std::filesystem::path& path);

  absl::StatusOr<std::unique_ptr<IdentityChange>> Begin() override;
  absl::StatusOr<CertificateState> Find(const std::string& serial, const std::string& name) override;
  absl::Status AddCertificate(const CertificateRow& certificate) override;
  absl::StatusOr<std::string> VoucherOf(const std::string& serial) const override;
  absl::StatusOr<std::optional<absl::Time>> LastIssued(const std::string& role, const std::string& name,
                                                       const std::string& serial, absl::Time now) const override;
  absl::Status ForgetExpired(const std::string& role, const std::string& name, std::string_view voucher_suffix,
                             absl::Time now) override;
  absl::StatusOr<std::vector<CertificateRow>> NewestCertificates() const override;
  absl::StatusOr<bool> IsTaken(const std::string& name) const override;
  absl::StatusOr<bool> WasRevoked(const std::string& name) const override;
  absl::StatusOr<int64_t> RevokeName(const std::string& name, absl::Time now) override;
  absl::Status AddToken(const TokenRow& token) override;
  absl::StatusOr<std::optional<TokenRow>> FindToken(const std::string& hash) const override;
  absl::StatusOr<std::vector<TokenRow>> Tokens() const override;
  absl::Status SpendToken(const std::string& hash) override;
  absl::Status ForgetTokens(absl::Time before) override;
  absl::StatusOr<bool> RevokeToken(const std::string& beginning, size_t digits) override;

 private:
  explicit SqliteIdentityStore(Writer file) : file_(std::move(file)) {}

  const Writer file_;
  const Connection& connection_ = file_.connection;
  // The statement of Find, prepared once by Open: preparing it takes longer than running it. Never empty after Open.
  std::optional<Statement> find_;
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_SQLITE_IDENTITY_STORE_H_
