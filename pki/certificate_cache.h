// SPDX-License-Identifier: Apache-2.0
// A cache of parsed certificates. Parsing one costs more than the rest of a short call.
//
// Not here: whether a certificate is still valid, which the caller must check every time (tracker/register.h). Only for
// certificates that TLS has verified, so that strangers cannot fill the cache. Safe from any thread.
#ifndef HONE_PKI_CERTIFICATE_CACHE_H_
#define HONE_PKI_CERTIFICATE_CACHE_H_

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "pki/certificates.h"

namespace hone::pki {

class CertificateCache {
 public:
  // most: the number of entries, about 2 KB each. When it is exceeded, the cache is emptied.
  explicit CertificateCache(size_t most = 20'000) : most_(most) {}

  // As ReadCertificate.
  absl::StatusOr<CertificateFacts> Read(std::string_view pem);

  size_t size() const;

 private:
  const size_t most_;
  mutable std::mutex mutex_;
  std::map<std::string, CertificateFacts, std::less<>> kept_;  // by the whole PEM text
};

}  // namespace hone::pki

#endif  // HONE_PKI_CERTIFICATE_CACHE_H_
