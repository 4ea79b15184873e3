// SPDX-License-Identifier: Apache-2.0
#include "base/digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <charconv>

#include "base/status.h"

namespace hone {
namespace {

EVP_MD_CTX* Context(void* context) { return static_cast<EVP_MD_CTX*>(context); }

}  // namespace

void Sha256::Free::operator()(void* context) const { EVP_MD_CTX_free(Context(context)); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  HONE_CHECK(context_ != nullptr && EVP_DigestInit_ex(Context(context_.get()), EVP_sha256(), nullptr) == 1);
}

void Sha256::Add(std::string_view bytes) {
  HONE_CHECK(EVP_DigestUpdate(Context(context_.get()), bytes.data(), bytes.size()) == 1);
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  unsigned int length = 0;
  HONE_CHECK(EVP_DigestFinal_ex(Context(context_.get()), digest.data(), &length) == 1 && length == digest.size());
  return digest;
}

Sha256Digest Sha256Of(std::string_view bytes) {
  Sha256 sum;
  sum.Add(bytes);
  return sum.Finish();
}

std::string Hex(const Sha256Digest& digest) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  for (const uint8_t byte : digest) {
    hex += kHex[byte >> 4];
    hex += kHex[byte & 15];
  }
  return hex;
}

std::string Sha256Hex(std::string_view bytes) { return Hex(Sha256Of(bytes)); }

bool IsSha256Hex(std::string_view text) {
  return text.size() == 2 * sizeof(Sha256Digest) &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::optional<Sha256Digest> ParseSha256Hex(std::string_view text) {
  if (!IsSha256Hex(text)) return std::nullopt;
  Sha256Digest digest = {};
  for (size_t i = 0; i < digest.size(); ++i) {
    std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, digest[i], 16);
  }
  return digest;
}

}  // namespace hone
