// SPDX-License-Identifier: Apache-2.0
// What somebody sends who is not of the farm yet: certificate requests and certificates, tokens, addresses.
#include <cstdint>
#include <string_view>

#include "pki/certificates.h"
#include "pki/token.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone::pki;  // NOLINT: one function
  static const Validity kValidity{absl::FromUnixSeconds(1'700'000'000), absl::FromUnixSeconds(1'800'000'000)};
  static const Authority* const authority = new Authority(Authority::Make(kValidity).value());
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ReadCertificate(text).status().IgnoreError();
  CertificateHosts(text).status().IgnoreError();
  ParseToken(text).status().IgnoreError();
  authority->SignMember(text, {}, kValidity).status().IgnoreError();
  return 0;
}
