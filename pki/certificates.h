// SPDX-License-Identifier: Apache-2.0
// Makes, signs and reads keys, certificate requests and certificates, as PEM text. Pure: no files, no network, no
// clock.
//
// All keys are EC P-256. Not here: the decision which program may have which certificate (tracker/register.h). All
// functions are safe from any thread. Start at Authority.
#ifndef HONE_PKI_CERTIFICATES_H_
#define HONE_PKI_CERTIFICATES_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/farm_identity.h"

struct evp_pkey_st;
struct x509_st;

namespace hone::pki {

// The fields of a certificate.
struct CertificateFacts {
  std::string serial;             // upper-case hex, as openssl prints it
  std::vector<std::string> uris;  // among its subject alternative names
  absl::Time from, until;
  std::string fingerprint;  // SHA-256 of its bytes, base64url without padding
};

// Reads the first certificate in the text. kInvalidArgument: there is none, or its times cannot be read.
absl::StatusOr<CertificateFacts> ReadCertificate(std::string_view pem);

// Whether the first certificate in `pem` is signed with the key of a certificate in `authority_pem`. Checks nothing
// else, such as validity.
bool IsSignedBy(std::string_view pem, std::string_view authority_pem);

// When to renew a certificate: after two thirds of its lifetime.
absl::Time RenewalTime(const CertificateFacts& facts);

// A warning for users if this machine's clock, `now`, is before the certificate's start; else "".
std::string ClockBehindWarning(const CertificateFacts& facts, absl::Time now);

std::string MakeKey();  // a new private key, PEM

// A certificate request without names, signed with the key to prove that the requester has it. kInvalidArgument: there
// is no private key in the text.
absl::StatusOr<std::string> MakeRequest(std::string_view key_pem);

struct Validity {
  absl::Time from, until;
};

// The certificate authority of a farm: its certificate, and the key that signs all others. The key must stay secret,
// because it can make certificates for any role.
class Authority {
 public:
  // Makes a new authority. kInternal: OpenSSL failed.
  static absl::StatusOr<Authority> Make(const Validity& validity);
  // kInvalidArgument: certificate or key cannot be read, or they do not belong together.
  static absl::StatusOr<Authority> Read(std::string_view certificate_pem, std::string_view key_pem);

  // Signs a certificate for the key in the request, with this identity; names in the request are ignored.
  // kInvalidArgument: the request cannot be read, is not signed with its own key, or its key is not EC P-256.
  absl::StatusOr<std::string> SignMember(std::string_view request_pem, const FarmIdentity& identity,
                                         const Validity& validity) const;
  // The same for a tracker. hosts: the names and addresses under which it is reached. Aborts if there are none.
  // kInvalidArgument also for a host that CheckHost rejects.
  absl::StatusOr<std::string> SignTracker(std::string_view request_pem, const std::vector<std::string>& hosts,
                                          const Validity& validity) const;

  std::string certificate() const;  // PEM
  std::string key() const;          // PEM

 private:
  using Key = std::shared_ptr<evp_pkey_st>;
  using Certificate = std::shared_ptr<x509_st>;
  Authority(Certificate certificate, Key key) : certificate_(std::move(certificate)), key_(std::move(key)) {}
  absl::StatusOr<std::string> Sign(std::string_view request_pem, const std::string& names, const char* usage,
                                   const Validity& validity) const;

  Certificate certificate_;
  Key key_;
};

// Whether the text can be a host name or an address in a tracker's certificate. kInvalidArgument: it cannot.
absl::Status CheckHost(std::string_view host);

// The host names and addresses in a tracker's certificate. kInvalidArgument: there is no certificate in the text.
absl::StatusOr<std::vector<std::string>> CertificateHosts(std::string_view certificate_pem);

}  // namespace hone::pki

#endif  // HONE_PKI_CERTIFICATES_H_
