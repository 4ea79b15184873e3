// SPDX-License-Identifier: Apache-2.0
// Joins a farm: gets the program's certificate from the tracker, and later renews it.
//
// Join reads the authority's certificate from the tracker's TLS handshake and trusts it only if it has the fingerprint
// in the token. The tracker must then prove its identity by that authority before the token is sent. The private key is
// made here and never leaves this machine. All calls block. Not here: the decision who may join (tracker/register.h).
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
  std::string name;       // empty: the tracker chooses one, from the token or from host_name
  std::string host_name;  // of this machine
  Settings settings;      // written into the folder; must hold the tracker's address
};

// Writes a new identity into the folder and returns its name. kAlreadyExists: the folder has an identity, or the name
// is taken. kUnauthenticated: the tracker is not of the token's farm, or does not accept the token. kUnavailable: no
// tracker answers there. kFailedPrecondition: this machine's clock is before the start of the tracker's certificate.
// Other errors as in hone/v1/identity.proto. After an error the folder may hold the authority and the settings, but no
// identity, so that Join may be called again.
absl::StatusOr<std::string> Join(const std::filesystem::path& folder, const JoinOptions& options);

// The authority's certificate (PEM) from the tracker's handshake. kUnauthenticated: none there has that fingerprint.
// kFailedPrecondition, kUnavailable: as Join.
absl::StatusOr<std::string> FetchAuthority(const std::string& address, const std::string& fingerprint);

// The time by the tracker's clock. Errors as of WhoAmI in hone/v1/identity.proto.
absl::StatusOr<absl::Time> TrackerTime(const std::shared_ptr<grpc::Channel>& channel);

// Writes a new key and certificate into the folder, for the role and name of the present one. On an error the present
// ones stay. Errors as of Renew in hone/v1/identity.proto; kUnavailable also if the file cannot be written.
absl::Status Renew(const std::shared_ptr<grpc::Channel>& channel, const std::filesystem::path& folder);

}  // namespace hone::pki

#endif  // HONE_PKI_JOIN_H_
