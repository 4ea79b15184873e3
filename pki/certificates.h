// SPDX-License-Identifier: Apache-2.0
// Keys, certificate requests and certificates as PEM text: made, signed and read. Pure: no files, no network, no clock.
//
// Every key is an EC P-256 one. Nothing here decides who may have which certificate (tracker/join.h does). All
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

// What a certificate says.
struct CertificateFacts {
  std::string serial;             // upper-case hex, as openssl prints it
  std::vector<std::string> uris;  // among its subject alternative names
  absl::Time from, until;
  std::string fingerprint;  // SHA-256 of its bytes, base64url without padding
};

// Of the first certificate in the text. kInvalidArgument: there is none, or one without a time that can be read.
absl::StatusOr<CertificateFacts> ReadCertificate(std::string_view pem);

// Whether a certificate in `authority_pem` has the key that the first one in `pem` is signed with. Asks nothing else.
bool IsSignedBy(std::string_view pem, std::string_view authority_pem);

// A certificate is renewed when two thirds of its time are over.
absl::Time RenewalTime(const CertificateFacts& facts);

// What to tell people where `now`, by this machine's clock, is before the certificate's time; else empty.
std::string WhyNotYet(const CertificateFacts& facts, absl::Time now);

std::string MakeKey();

// Signed with the key, which proves that whoever asks has it; no names. kInvalidArgument: no private key in the text.
absl::StatusOr<std::string> MakeRequest(std::string_view key_pem);

struct Validity {
  absl::Time from, until;
};

// The authority of a farm: its certificate, and the key to sign others with. Whoever has the key is the farm.
class Authority {
 public:
  // A new one. kInternal: the library refuses.
  static absl::StatusOr<Authority> Make(const Validity& validity);
  // kInvalidArgument: one of them cannot be read, or the key is not the certificate's.
  static absl::StatusOr<Authority> Read(std::string_view certificate_pem, std::string_view key_pem);

  // A certificate for the key in a request, with names of ours only. kInvalidArgument: the request cannot be read, is
  // not signed with its own key, or its key is of another kind.
  absl::StatusOr<std::string> SignMember(std::string_view request_pem, const FarmIdentity& identity,
                                         const Validity& validity) const;
  // For a tracker: `hosts` are the names and addresses under which it is reached, as CheckHost allows; at least one.
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

// Whether the text can be a name or an address in a tracker's certificate. kInvalidArgument.
absl::Status CheckHost(std::string_view host);

// The hosts in a tracker's certificate.
absl::StatusOr<std::vector<std::string>> HostsIn(std::string_view certificate_pem);

}  // namespace hone::pki

#endif  // HONE_PKI_CERTIFICATES_H_
