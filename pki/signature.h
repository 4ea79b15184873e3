// SPDX-License-Identifier: Apache-2.0
// Signatures of texts with the key of a member of a farm, so that others can check without the farm who stated them.
//
// ECDSA over SHA-256 with the P-256 keys of certificates.h. Pure; safe from any thread. Not here: who is a member
// (IsSignedBy in certificates.h).
#ifndef HONE_PKI_SIGNATURE_H_
#define HONE_PKI_SIGNATURE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::pki {

// The signature in base64. kInvalidArgument: there is no private key of this kind in the text.
absl::StatusOr<std::string> SignText(std::string_view text, std::string_view key_pem);

// OK if the signature of `text` was made with the key of the first certificate in `certificate_pem`. kInvalidArgument:
// there is no certificate, or no signature in base64. kPermissionDenied: it is the signature of another text, or was
// made with another key.
absl::Status CheckSignature(std::string_view text, std::string_view signature, std::string_view certificate_pem);

}  // namespace hone::pki

#endif  // HONE_PKI_SIGNATURE_H_
