// SPDX-License-Identifier: Apache-2.0
// Decides who belongs to the farm, by the rows of a storage::IdentityStore: the certificates that were signed or seen,
// those revoked, and the tokens to join with.
//
// A certificate is good if the authority signed it (TLS has checked that), it has not expired, and it is not revoked.
// A good certificate may be missing from the store: it was signed by hand, or after the backup was made that the store
// was restored from. It is added when it is first seen, unless its name was revoked. The store keeps only the SHA-256
// of a token. A token is 256 random bits, so it cannot be guessed, and salt or a slow hash would protect nothing.
// Safe from any thread; time is passed in. A member's changes are on the disk when it returns. Start at Admit and
// Enrol.
#ifndef HONE_TRACKER_REGISTER_H_
#define HONE_TRACKER_REGISTER_H_

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/identity.pb.h"
#include "pki/certificates.h"
#include "storage/identity_store.h"
#include "transport/farm_identity.h"

namespace hone::tracker {

class Register {
 public:
  // Errors as storage::OpenIdentities.
  static absl::StatusOr<std::unique_ptr<Register>> Open(const std::filesystem::path& path);
  explicit Register(std::unique_ptr<storage::IdentityStore> store) : store_(std::move(store)) {}

  // --- certificates -------------------------------------------------------------------------------------------------
  // Checks that the holder of the certificate may connect. kUnauthenticated: it has expired or was revoked; what to
  // do. kUnavailable: the file cannot be read.
  absl::Status Admit(const FarmIdentity& identity, const pki::CertificateFacts& facts, absl::Time now);

  // Signs a certificate for the identity and returns it as PEM. The register calls it and adds the certificate.
  using Sign = std::function<absl::StatusOr<std::string>(const FarmIdentity& identity)>;
  // Signs a new certificate for the holder of this one; errors as Admit. kFailedPrecondition: it is too early, or the
  // certificate was renewed already.
  absl::StatusOr<std::string> Renew(const FarmIdentity& identity, const pki::CertificateFacts& facts, const Sign& sign,
                                    absl::Time now);

  // The number of revocations of the name since the start. It changes when the name is revoked. Waits for no
  // disk.
  int64_t RevocationCount(const std::string& name) const;
  // Revokes all certificates of the name, and all tokens that are for the name or were made by it. Returns the number
  // of certificates that were not revoked before. Other names that joined with one of these tokens keep their
  // certificates.
  absl::StatusOr<int64_t> Revoke(const std::string& name, absl::Time now);
  // The newest certificate of each role and name, by name. Revoked and expired ones are included.
  absl::StatusOr<std::vector<v1::Identity>> Identities();

  // --- tokens -------------------------------------------------------------------------------------------------------
  struct NewToken {
    std::string secret;
    Role role;
    std::string name;  // empty: any
    int uses;
    absl::Time expires;
    std::string created_by;
  };
  // kAlreadyExists: the name is taken. kUnauthenticated: the creator of the token was revoked.
  absl::StatusOr<v1::Token> AddToken(const NewToken& token, absl::Time now);
  // kUnauthenticated: not known, spent, revoked, or past its time; which of them is said for those that are known.
  absl::Status CheckToken(const std::string& secret, absl::Time now);
  // The newest first. Those that are past their time are forgotten after 30 days.
  absl::StatusOr<std::vector<v1::Token>> Tokens();
  absl::Status RevokeToken(const std::string& id);  // v1::Token.id: the first 8 digits of its hash; kNotFound

  struct JoinRequest {
    // name: empty: the token's name; if that is empty too, a free name is made from host_name.
    std::string secret, role, name, host_name;
    // For a browser session. Its certificate is never renewed, so it is removed some time after it expired, and its
    // name is free again.
    bool session = false;
  };
  struct Enrolled {
    FarmIdentity identity;
    std::string certificate;  // PEM
  };
  // Spends one use of a token on a certificate, or changes nothing. As CheckToken; kPermissionDenied: the token is for
  // another role or name; kAlreadyExists: the name is taken; kInvalidArgument: it is none; what `sign` returns.
  absl::StatusOr<Enrolled> Enrol(const JoinRequest& request, const Sign& sign, absl::Time now);

 private:
  struct StoredToken {
    Role role;
    std::string name, created_by;
  };
  // All of these under mutex_.
  absl::Status AdmitLocked(const FarmIdentity& identity, const pki::CertificateFacts& facts, absl::Time now);
  absl::StatusOr<StoredToken> ValidToken(const std::string& secret, absl::Time now) const;
  absl::Status CheckNotRevoked(const std::string& name) const;
  absl::StatusOr<absl::Time> RenewableFrom(const FarmIdentity& identity, const pki::CertificateFacts& facts,
                                           absl::Time now) const;
  absl::StatusOr<std::string> NameFor(const JoinRequest& request, const StoredToken& token) const;
  absl::Status Insert(const FarmIdentity& identity, const pki::CertificateFacts& facts, const std::string& vouched_by,
                      absl::Time now) const;
  absl::StatusOr<std::string> SignAndInsert(const FarmIdentity& identity, const Sign& sign,
                                            const std::string& vouched_by, absl::Time now) const;

  std::mutex mutex_;
  mutable std::mutex revoked_mutex_;        // held for moments
  std::map<std::string, int64_t> revoked_;  // by name: how often since the start
  const std::unique_ptr<storage::IdentityStore> store_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_REGISTER_H_
