// SPDX-License-Identifier: Apache-2.0
#include "pki/token.h"

#include <openssl/rand.h>

#include <algorithm>
#include <iostream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "pki/identity_folder.h"

namespace hone::pki {
namespace {

constexpr size_t kBytes = 32;  // of the secret and of the fingerprint

bool Is256Bits(const std::string& text) {
  std::string bytes;
  return absl::WebSafeBase64Unescape(text, &bytes) && bytes.size() == kBytes;
}

}  // namespace

std::string Print(const Token& token) {
  return std::string(Name(token.role)) + "." + token.secret + "." + token.fingerprint;
}

absl::StatusOr<Token> ParseToken(std::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(absl::string_view(text.data(), text.size()), '.');
  if (parts.size() == 3 && Is256Bits(parts[1]) && Is256Bits(parts[2])) {
    if (const auto role = ParseRole(parts[0])) return Token{*role, parts[1], parts[2]};
  }
  return absl::InvalidArgumentError(
      "the token is incomplete: a token has the form ROLE.SECRET.FINGERPRINT; `hone token create` prints one");
}

absl::StatusOr<Token> ReadToken(const std::string& given, const std::string& file) {
  std::string token = given;
  if (file == "-") {
    std::getline(std::cin, token);
  } else if (!file.empty()) {
    HONE_ASSIGN_OR_RETURN(token, ReadFile(file));
    token.erase(std::find(token.begin(), token.end(), '\n'), token.end());
  } else if (given.empty()) {
    return absl::InvalidArgumentError(
        "the token is missing: give a file with --token-file (- is standard input), or set HONE_TOKEN; `hone token "
        "create` prints a token");
  }
  absl::StripAsciiWhitespace(&token);
  return ParseToken(token);
}

std::string RandomSecret() {
  unsigned char bytes[kBytes];
  HONE_CHECK(RAND_bytes(bytes, kBytes) == 1);
  return absl::WebSafeBase64Escape(std::string(reinterpret_cast<const char*>(bytes), kBytes));
}

}  // namespace hone::pki
