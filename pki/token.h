// SPDX-License-Identifier: Apache-2.0
// The text of a join token, ROLE.SECRET.FINGERPRINT: what an admin gives to a machine that shall join.
//
// The role and the fingerprint of the authority's certificate are for the machine that joins: what it becomes, and how
// it knows the farm's tracker before it shows the secret. The tracker believes neither, and looks the secret up.
#ifndef HONE_PKI_TOKEN_H_
#define HONE_PKI_TOKEN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "transport/farm_identity.h"

namespace hone::pki {

// Metadata under which the secret travels.
inline constexpr char kTokenMetadata[] = "hone-token";

struct Token {
  Role role;
  std::string secret;       // 256 random bits, base64url
  std::string fingerprint;  // as CertificateFacts has it
};

std::string Print(const Token& token);
// kInvalidArgument: it is not one; most likely a part is missing.
absl::StatusOr<Token> ParseToken(std::string_view text);

// Of whoever joins: the first line of `file` ("-": of standard input), else `given`. What is given on a command line
// every user of the machine can read while the program runs, and a shell keeps it.
// kInvalidArgument: neither, or it is no token. Else as ReadFile in identity_folder.h.
absl::StatusOr<Token> TakeToken(const std::string& given, const std::string& file);

std::string RandomSecret();

}  // namespace hone::pki

#endif  // HONE_PKI_TOKEN_H_
