// SPDX-License-Identifier: Apache-2.0
// What certificates say, kept from one call to the next: to read one costs more than the rest of a call that has
// nothing to say. Not whether they are good: who asks that asks each time (tracker/register.h).
//
// For certificates that TLS has checked, so that nobody fills it with his own. Safe from any thread.
#ifndef HONE_PKI_READ_CERTIFICATES_H_
#define HONE_PKI_READ_CERTIFICATES_H_

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "pki/certificates.h"

namespace hone::pki {

class ReadCertificates {
 public:
  // Keeps so many; about 2 KB each. With one more all are forgotten, and read again when they come.
  explicit ReadCertificates(size_t most = 20'000) : most_(most) {}

  // As ReadCertificate.
  absl::StatusOr<CertificateFacts> Read(std::string_view pem);

  size_t kept() const;

 private:
  const size_t most_;
  mutable std::mutex mutex_;
  std::map<std::string, CertificateFacts, std::less<>> kept_;  // by the whole text
};

}  // namespace hone::pki

#endif  // HONE_PKI_READ_CERTIFICATES_H_
