// SPDX-License-Identifier: Apache-2.0
// Where a tracker keeps who belongs to its farm: certificates, revoked names, and tokens to join with.
//
// IdentityStore is an interface of rows: tracker/register.h decides who may join, be admitted or be renewed. Secrets of
// tokens are never stored, only their SHA-256. storage/sqlite/identity_store.h keeps the rows in an SQLite file,
// storage/memory/identity_store.h in memory for tests; both pass tests/unit/storage/state_conformance_test.cc.
// Threads: one at a time. A change outside of an IdentityChange is on the disk when its member returns.
#ifndef HONE_STORAGE_IDENTITY_STORE_H_
#define HONE_STORAGE_IDENTITY_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone::storage {

struct CertificateRow {
  std::string serial, role, name;
  absl::Time issued, expires;
  std::string vouched_by;  // who let the holder in, as text for users: "token 1a2b3c4d of alice", "signed elsewhere"
  bool revoked = false;
};

struct TokenRow {
  std::string hash;  // hexadecimal SHA-256 of the secret
  std::string role;
  std::string name;  // the only name it may be used for; empty: any
  int64_t uses_left = 0;
  absl::Time created, expires;
  std::string created_by;
  bool revoked = false;
};

// All that was written since Begin, at once or not at all: destroyed without Commit, it undoes every change. The store
// must outlive it, and a store has at most one.
class IdentityChange {
 public:
  virtual ~IdentityChange() = default;
  virtual absl::Status Commit() = 0;
};

class IdentityStore {
 public:
  virtual ~IdentityStore() = default;

  virtual absl::StatusOr<std::unique_ptr<IdentityChange>> Begin() = 0;

  // --- certificates -------------------------------------------------------------------------------------------------
  struct CertificateState {
    bool known = false;         // the serial is stored
    bool revoked = false;       // the certificate with the serial was revoked
    bool name_revoked = false;  // the name was revoked at any time
  };
  // Asked at every call that the tracker serves.
  virtual absl::StatusOr<CertificateState> Find(const std::string& serial, const std::string& name) = 0;

  // `serial` must be new.
  virtual absl::Status AddCertificate(const CertificateRow& certificate) = 0;
  // The vouched_by of the certificate; empty if the serial is not stored.
  virtual absl::StatusOr<std::string> VoucherOf(const std::string& serial) const = 0;
  // When the newest certificate of the identity was issued; nullopt: it has none. The certificate with `serial`, and
  // certificates issued after `now`, do not count; revoked ones do.
  virtual absl::StatusOr<std::optional<absl::Time>> LastIssued(const std::string& role, const std::string& name,
                                                               const std::string& serial, absl::Time now) const = 0;
  // Removes certificates that expired before `now`, revoked ones too: those of the identity (role and name), and all
  // whose vouched_by ends with `voucher_suffix`, which marks browser sessions. A name without certificates is free
  // again.
  virtual absl::Status ForgetExpired(const std::string& role, const std::string& name, std::string_view voucher_suffix,
                                     absl::Time now) = 0;
  // The newest certificate of each role and name, by name and then role.
  virtual absl::StatusOr<std::vector<CertificateRow>> NewestCertificates() const = 0;

  // --- names --------------------------------------------------------------------------------------------------------
  virtual absl::StatusOr<bool> IsTaken(const std::string& name) const = 0;  // it has a certificate that is not revoked
  virtual absl::StatusOr<bool> WasRevoked(const std::string& name) const = 0;
  // Revokes the name, its certificates, and the tokens for it or made by it. Returns how many certificates were not
  // revoked before. One transaction of its own: it must not be called inside an IdentityChange.
  virtual absl::StatusOr<int64_t> RevokeName(const std::string& name, absl::Time now) = 0;

  // --- tokens -------------------------------------------------------------------------------------------------------
  virtual absl::Status AddToken(const TokenRow& token) = 0;
  virtual absl::StatusOr<std::optional<TokenRow>> FindToken(const std::string& hash) const = 0;
  virtual absl::StatusOr<std::vector<TokenRow>> Tokens() const = 0;  // the newest first
  // Takes one use from the token. The caller checks before that one is left. An unknown token is ignored.
  virtual absl::Status SpendToken(const std::string& hash) = 0;
  virtual absl::Status ForgetTokens(absl::Time before) = 0;  // those that were made and expired before that time
  // Revokes the tokens of which the first `digits` digits of the hash equal `beginning`. A `beginning` of another
  // length matches none. False: there are none.
  virtual absl::StatusOr<bool> RevokeToken(const std::string& beginning, size_t digits) = 0;
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_IDENTITY_STORE_H_
