// SPDX-License-Identifier: Apache-2.0
// A join token, ROLE.SECRET.FINGERPRINT: the text that an admin gives to a machine so that it can join the farm.
//
// The joining machine uses the role and the fingerprint of the authority's certificate: the role that it gets, and the
// proof that it talks to the farm's tracker before it sends the secret. The tracker uses only the secret, which it
// looks up.
#ifndef HONE_PKI_TOKEN_H_
#define HONE_PKI_TOKEN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "transport/farm_identity.h"

namespace hone::pki {

// The gRPC metadata key of the secret.
inline constexpr char kTokenMetadata[] = "hone-token";

struct Token {
  Role role;
  std::string secret;       // 256 random bits, base64url
  std::string fingerprint;  // of the authority's certificate, as CertificateFacts::fingerprint
};

std::string Print(const Token& token);
// kInvalidArgument: the text is no token; most likely a part is missing.
absl::StatusOr<Token> ParseToken(std::string_view text);

// The token of a joining program: the first line of `file` ("-": of standard input), else `given`. A file is better
// than a command line, which all users of the machine can read and which shells keep in their history.
// kInvalidArgument: neither is given, or it is no token. Other errors as ReadFile in identity_folder.h.
absl::StatusOr<Token> ReadToken(const std::string& given, const std::string& file);

std::string RandomSecret();  // a new value for Token::secret

}  // namespace hone::pki

#endif  // HONE_PKI_TOKEN_H_
