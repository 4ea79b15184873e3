// SPDX-License-Identifier: Apache-2.0
// What a tracker on HOST:PORT knows and decides about those who call it: the folder of `hone pki init`, opened.
//
//   identity.pem    the tracker's own key and certificate, renewed here before it ends
//   authority.pem   the farm's authority
//   authority.key   its key; where it is missing nobody can join and nothing is renewed: certificates come from
//   elsewhere register.db     certificates and tokens (tracker/register.h) audit.db        the audit log
//   (tracker/audit_log.h)
//
// Safe from any thread. Start at Open.
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
#include "pki/certificates.h"
#include "pki/read_certificates.h"
#include "tracker/audit_log.h"
#include "tracker/register.h"

namespace hone::tracker {

struct MembershipOptions {
  std::filesystem::path folder;
  absl::Duration machines =
      absl::Hours(24 * 30);  // how long certificates of agents and tuners, who renew them, are good
  absl::Duration people = absl::Hours(24 * 365);
};

class Membership {
 public:
  // As CheckPrivateFolder; kNotFound, kInvalidArgument: the folder lacks something, or it cannot be read.
  static absl::StatusOr<std::unique_ptr<Membership>> Open(MembershipOptions options);

  Register& members() const { return *members_; }
  AuditLog& audit() const { return *audit_; }
  // Of those who call over gRPC.
  pki::ReadCertificates& certificates() const { return *certificates_; }
  bool signs() const { return authority_.has_value(); }
  // Whether the farm's authority signed the certificate, which TLS asks of those that are shown to it.
  bool IsOfFarm(const std::string& certificate_pem) const {
    return pki::IsSignedBy(certificate_pem, authority_certificates_);
  }

  // How the register makes a certificate. kFailedPrecondition: there is no key to sign with.
  // life: how long it is good; nullopt: as long as its role's are.
  Register::Sign SignerOf(const std::string& request_pem, absl::Time now,
                          std::optional<absl::Duration> life = std::nullopt) const;
  absl::StatusOr<std::string> Fingerprint() const;  // of the authority's certificate

  // Replaces the tracker's own certificate when two thirds of its time are over. To be called now and then.
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
  const std::unique_ptr<pki::ReadCertificates> certificates_ = std::make_unique<pki::ReadCertificates>();
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_MEMBERSHIP_H_
