// SPDX-License-Identifier: Apache-2.0
// The members of a farm, as a tracker on HOST:PORT knows them: the open folder that `hone pki init` made.
//
// - identity.pem: the tracker's own key and certificate; RenewOwn renews it before it ends.
// - authority.pem: the certificate of the farm's certificate authority.
// - authority.key: the authority's key. Without it no program can join and no certificate is renewed; certificates then
//   come from another place.
//
// With it go the register of issued certificates and tokens (tracker/register.h) and the audit log
// (tracker/audit_log.h). With records in a file they are register.db and audit.db in the folder (storage/open.h).
//
// Not here: which role may call what (access.h). Safe from any thread. Start at Open.
#ifndef HONE_TRACKER_MEMBERSHIP_H_
#define HONE_TRACKER_MEMBERSHIP_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pki/certificate_cache.h"
#include "pki/certificates.h"
#include "tracker/audit_log.h"
#include "tracker/register.h"

namespace hone::tracker {

struct MembershipOptions {
  std::filesystem::path folder;
  std::filesystem::path records;  // the address of the tracker's records (storage/open.h)
  // Lifetimes of certificates: machine_life of agents and tuners, which renew them; user_life of users.
  absl::Duration machine_life = absl::Hours(24 * 30);
  absl::Duration user_life = absl::Hours(24 * 365);
};

class Membership {
 public:
  // Errors as CheckPrivateFolder; kNotFound: a file is missing; kInvalidArgument: a file cannot be read.
  static absl::StatusOr<std::unique_ptr<Membership>> Open(MembershipOptions options);

  Register& members() const { return *members_; }
  AuditLog& audit() const { return *audit_; }
  // Parsed certificates of gRPC callers.
  pki::CertificateCache& certificates() const { return *certificates_; }
  bool signs() const { return authority_.has_value(); }  // whether it has the key of the authority
  // Whether the farm's authority signed the certificate. TLS checks this for its own connections.
  bool IsOfFarm(const std::string& certificate_pem) const {
    return pki::IsSignedBy(certificate_pem, authority_certificates_);
  }

  // The function with which the register signs a certificate for the request. The function returns kFailedPrecondition
  // if there is no key to sign with. life: how long the certificate is valid; nullopt: as MembershipOptions says.
  Register::Sign SignerOf(const std::string& request_pem, absl::Time now,
                          std::optional<absl::Duration> life = std::nullopt) const;
  absl::StatusOr<std::string> Fingerprint() const;  // of the authority's certificate

  // Replaces the tracker's own certificate once two thirds of its lifetime are over. Must be called regularly. Does
  // nothing without the key of the authority.
  absl::Status RenewOwn(absl::Time now) const;

 private:
  Membership(MembershipOptions options, std::optional<pki::Authority> authority, std::string authority_certificates,
             std::unique_ptr<Register> members, std::unique_ptr<AuditLog> audit)
      : options_(std::move(options)),
        authority_(std::move(authority)),
        authority_certificates_(std::move(authority_certificates)),
        members_(std::move(members)),
        audit_(std::move(audit)) {}

  const MembershipOptions options_;
  const std::optional<pki::Authority> authority_;
  const std::string authority_certificates_;  // PEM
  const std::unique_ptr<Register> members_;
  const std::unique_ptr<AuditLog> audit_;
  const std::unique_ptr<pki::CertificateCache> certificates_ = std::make_unique<pki::CertificateCache>();
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_MEMBERSHIP_H_
