#include "pki/token.h"

#include <openssl/rand.h>

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

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
    if (const auto role = RoleNamed(parts[0])) return Token{*role, parts[1], parts[2]};
  }
  return absl::InvalidArgumentError(
      "this is not the whole of a token, which is ROLE.SECRET.FINGERPRINT; `hone token create` prints one");
}

std::string RandomSecret() {
  unsigned char bytes[kBytes];
  HONE_CHECK(RAND_bytes(bytes, kBytes) == 1);
  return absl::WebSafeBase64Escape(std::string(reinterpret_cast<const char*>(bytes), kBytes));
}

}  // namespace hone::pki
