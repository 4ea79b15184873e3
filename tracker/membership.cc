// SPDX-License-Identifier: Apache-2.0
#include "tracker/membership.h"

#include <fmt/format.h>

#include "base/private_folder.h"
#include "base/status.h"
#include "pki/identity_folder.h"
#include "pki/tracker_folder.h"
#include "storage/open.h"

namespace hone::tracker {

absl::StatusOr<std::unique_ptr<Membership>> Membership::Open(MembershipOptions options) {
  HONE_RETURN_IF_ERROR(CheckPrivateFolder(options.folder));
  HONE_ASSIGN_OR_RETURN(std::optional<pki::Authority> authority, pki::ReadAuthority(options.folder));
  HONE_ASSIGN_OR_RETURN(std::string certificates, pki::ReadFile(pki::FilesIn(options.folder).authority));
  const storage::TrackerAddresses addresses = storage::AddressesBeside(options.records, options.folder);
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Register> members, Register::Open(addresses.identities));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<AuditLog> audit, AuditLog::Open(addresses.audit));
  return std::unique_ptr<Membership>(new Membership(std::move(options), std::move(authority), std::move(certificates),
                                                    std::move(members), std::move(audit)));
}

Register::Sign Membership::SignerOf(const std::string& request_pem, absl::Time now,
                                    std::optional<absl::Duration> life) const {
  return [this, request_pem, now, life](const FarmIdentity& identity) -> absl::StatusOr<std::string> {
    if (!authority_.has_value()) {
      return absl::FailedPreconditionError(
          "this tracker has no key to sign with (authority.key): certificates of this farm are signed elsewhere");
    }
    const bool machine = identity.role == Role::kAgent || identity.role == Role::kTuner;
    return authority_->SignMember(request_pem, identity,
                                  {now, now + life.value_or(machine ? options_.machine_life : options_.user_life)});
  };
}

absl::StatusOr<std::string> Membership::Fingerprint() const {
  HONE_ASSIGN_OR_RETURN(const std::string pem, pki::ReadFile(pki::FilesIn(options_.folder).authority));
  HONE_ASSIGN_OR_RETURN(const pki::CertificateFacts facts, pki::ReadCertificate(pem));
  return facts.fingerprint;
}

absl::Status Membership::RenewOwn(absl::Time now) const {
  if (!authority_.has_value()) return absl::OkStatus();
  const std::filesystem::path file = pki::FilesIn(options_.folder).identity;
  HONE_ASSIGN_OR_RETURN(const std::string pem, pki::ReadFile(file));
  const auto facts = pki::ReadCertificate(pem);
  if (!facts.ok()) return Annotate(facts.status(), file.string());
  if (now < pki::RenewalTime(*facts)) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> hosts, pki::CertificateHosts(pem));
  return pki::WriteTrackerIdentity(options_.folder, *authority_, hosts, now);
}

}  // namespace hone::tracker
