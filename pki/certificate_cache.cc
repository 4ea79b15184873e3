// SPDX-License-Identifier: Apache-2.0
#include "pki/certificate_cache.h"

#include "base/status.h"

namespace hone::pki {

absl::StatusOr<CertificateFacts> CertificateCache::Read(std::string_view pem) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = kept_.find(pem); known != kept_.end()) return known->second;
  }
  HONE_ASSIGN_OR_RETURN(CertificateFacts facts, ReadCertificate(pem));
  const std::lock_guard lock(mutex_);
  if (kept_.size() >= most_) kept_.clear();
  kept_.emplace(pem, facts);
  return facts;
}

size_t CertificateCache::size() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

}  // namespace hone::pki
