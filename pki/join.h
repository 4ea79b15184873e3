// SPDX-License-Identifier: Apache-2.0
// How a program gets its certificate from the farm's tracker, and a new one before that ends.
//
// Joining: the authority's certificate is taken from the tracker's TLS handshake and believed only if it has the
// fingerprint in the token; then the tracker must prove itself by it, and only then is the token shown. The key is made
// here and never leaves this machine. All calls block. Not here: who may join (tracker/join.h).
#ifndef HONE_PKI_JOIN_H_
#define HONE_PKI_JOIN_H_

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "pki/identity_folder.h"
#include "pki/token.h"

namespace hone::pki {

struct JoinOptions {
  Token token;
  std::string name;  // empty: what the tracker makes of host_name
  std::string host_name;
  Settings settings;  // with the tracker's address; kept in the folder
};

// Fills the folder, which must not have an identity, and returns the name.
// kAlreadyExists: there is one, or the name is taken. kUnauthenticated: the tracker is not of the token's farm, or
// does not know the token. kUnavailable: no tracker there. kFailedPrecondition: by this machine's clock the tracker's
// certificate is not good yet. Others as the tracker answers (hone/v1/identity.proto).
absl::StatusOr<std::string> Join(const std::filesystem::path& folder, const JoinOptions& options);

// The authority's certificate (PEM) that a tracker shows. kUnauthenticated: it shows none of that fingerprint.
// kFailedPrecondition as Join.
absl::StatusOr<std::string> FetchAuthority(const std::string& address, const std::string& fingerprint);

// By the clock of the tracker. Errors as of hone/v1/identity.proto's WhoAmI.
absl::StatusOr<absl::Time> TimeAt(const std::shared_ptr<grpc::Channel>& channel);

// Puts a new key and certificate into the folder, for the role and the name of the old one.
absl::Status Renew(const std::shared_ptr<grpc::Channel>& channel, const std::filesystem::path& folder);

}  // namespace hone::pki

#endif  // HONE_PKI_JOIN_H_
