// SPDX-License-Identifier: Apache-2.0
// The register of a farm in memory, for tests: storage/identity_store.h says what each member does.
#ifndef HONE_STORAGE_MEMORY_IDENTITY_STORE_H_
#define HONE_STORAGE_MEMORY_IDENTITY_STORE_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "storage/identity_store.h"

namespace hone::storage {

class MemoryIdentityStore final : public IdentityStore {
 public:
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
  class Change;
  struct Tables {
    std::vector<CertificateRow> certificates;  // the oldest first
    std::set<std::string> revoked_names;
    std::vector<TokenRow> tokens;  // the oldest first
  };

  Tables tables_;
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_MEMORY_IDENTITY_STORE_H_
