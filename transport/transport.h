// SPDX-License-Identifier: Apache-2.0
// How two programs of the farm connect: gRPC channels and credentials, keep-alive, message sizes, conversion of Status.
//
// An address is unix:/PATH, a socket in a folder closed to other users; or HOST:PORT, which always needs mutual TLS, on
// one machine too: each side presents a certificate signed by the farm's authority. Not here: any message of the
// protocol. Start at OpenChannel and ListenCredentials.
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

// Paths of PEM files; both or none. identity: the program's private key and certificate, and for a tracker also the
// certificate of its authority. authority: the certificates to verify the other side with.
struct TlsFiles {
  std::string identity, authority;
  bool none() const { return identity.empty() && authority.empty(); }
};

// The largest message: a batch of 64 MiB with its surroundings.
inline constexpr int kMessageBytesMax = 72 << 20;

// The path in "unix:/PATH"; nullopt for an address of another kind.
std::optional<std::filesystem::path> SocketPath(const std::string& address);
// "tracker.lab" in "tracker.lab:9190", "::1" in "[::1]:9190"; kInvalidArgument where it is not HOST:PORT.
absl::StatusOr<std::string> HostOf(const std::string& address);

// Makes a channel. It connects at the first call; calls fail with UNAVAILABLE while there is no connection.
// kInvalidArgument: TLS files are missing, unreadable, or given for a socket. For a socket, errors as
// CheckPrivateFolder, because in an open folder another user could pose as the server.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& address, const TlsFiles& tls);

// Makes a channel to HOST:PORT without a client certificate, over which a tracker accepts only Join. authority: PEM.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenAnonymousChannel(const std::string& address,
                                                                    const std::string& authority);

// What a server does with clients that present no certificate. An invalid certificate always ends the TLS handshake.
enum class AnonymousClients {
  kReject,  // the handshake fails
  kAccept,  // the connection is made, and the server checks each call
};

// The server's credentials for HOST:PORT. Errors as OpenChannel. The files are read again when they change.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenCredentials(const TlsFiles& tls,
                                                                           AnonymousClients anonymous_clients);

// Sets keep-alive and message sizes to match OpenChannel, and the limits of connections.
void ConfigureServer(grpc::ServerBuilder& builder);

grpc::Status ToGrpc(const absl::Status& status);
// Replaces gRPC's text for a connection that cannot be made by one that says what to do.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace hone

#endif  // HONE_TRANSPORT_TRANSPORT_H_
