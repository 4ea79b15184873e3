// SPDX-License-Identifier: Apache-2.0
// How two programs of the farm reach each other: credentials, keep-alive, message sizes, and the two worlds of Status.
//
// An address is unix:/PATH of a socket in a folder that is closed to other users, or HOST:PORT, which needs TLS in both
// directions, also on this machine: each side shows a certificate that the common authority signed. Knows no message of
// ours.
#ifndef HONE_TRANSPORT_TRANSPORT_H_
#define HONE_TRANSPORT_TRANSPORT_H_

#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone {

// PEM files; both or none. `identity` has one's private key and certificate (and, of a tracker, its authority's).
struct TlsFiles {
  std::string identity, authority;
  bool none() const { return identity.empty() && authority.empty(); }
};

// A batch of 64 MiB and what surrounds it.
inline constexpr int kMaxMessageBytes = 72 << 20;

// The path in "unix:/PATH"; nullopt for an address of another kind.
std::optional<std::filesystem::path> SocketPath(const std::string& address);
// "tracker.lab" in "tracker.lab:9190", "::1" in "[::1]:9190"; kInvalidArgument where it is not HOST:PORT.
absl::StatusOr<std::string> HostOf(const std::string& address);

// Never connects by itself: the first call does. Calls fail with UNAVAILABLE while there is no connection.
// kInvalidArgument: TLS files missing, unreadable, or given for a socket.
// As CheckPrivateFolder: another user could pose as the server of the socket.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& address, const TlsFiles& tls);

// To HOST:PORT without a certificate of one's own: for joining, which is all that it is good for. authority: PEM.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenAnonymousChannel(const std::string& address,
                                                                    const std::string& authority);

enum class Strangers {
  kNotConnected,  // a connection without a certificate ends in the TLS handshake
  kConnected,     // it is made, and each call decides; a certificate that is shown and not good ends it all the same
};

// Credentials to listen on HOST:PORT with; errors as OpenChannel. The files are read again when they change.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenCredentials(const TlsFiles& tls, Strangers strangers);

// Keep-alive and sizes that fit OpenChannel's, and what a connection may take.
void ConfigureServer(grpc::ServerBuilder& builder);

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace hone

#endif  // HONE_TRANSPORT_TRANSPORT_H_
