// SPDX-License-Identifier: Apache-2.0
#include "pki/signature.h"

#include "absl/strings/escaping.h"
#include "pki/openssl_values.h"

namespace hone::pki {
namespace {

const unsigned char* Bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

absl::StatusOr<std::string> SignText(std::string_view text, std::string_view key_pem) {
  const auto key = ParseKey(key_pem);
  if (key == nullptr || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_EC) {
    return absl::InvalidArgumentError("there is no private key of a farm's member");
  }
  const auto context = Own(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  size_t size = 0;
  if (EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, Bytes(text), text.size()) != 1) {
    return absl::InternalError("OpenSSL cannot sign with the key");
  }
  std::string signature(size, '\0');
  auto* const out = reinterpret_cast<unsigned char*>(signature.data());
  if (EVP_DigestSign(context.get(), out, &size, Bytes(text), text.size()) != 1) {
    return absl::InternalError("OpenSSL cannot sign with the key");
  }
  signature.resize(size);
  return absl::Base64Escape(signature);
}

absl::Status CheckSignature(std::string_view text, std::string_view signature, std::string_view certificate_pem) {
  const auto certificate = ParseCertificate(certificate_pem);
  if (certificate == nullptr) return absl::InvalidArgumentError("there is no certificate");
  std::string bytes;
  if (!absl::Base64Unescape({signature.data(), signature.size()}, &bytes))
    return absl::InvalidArgumentError("the signature is not base64");
  const auto context = Own(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  const bool holds =
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, X509_get0_pubkey(certificate.get())) == 1 &&
      EVP_DigestVerify(context.get(), Bytes(bytes), bytes.size(), Bytes(text), text.size()) == 1;
  if (holds) return absl::OkStatus();
  return absl::PermissionDeniedError("the signature is of another text, or was made with another key");
}

}  // namespace hone::pki
