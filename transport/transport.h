// How two programs of the farm reach each other: credentials, keep-alive, message sizes, and the two worlds of Status.
//
// Plain text is allowed on loopback only; everything else needs TLS in both directions, each side showing a certificate
// that the common authority signed. Knows no message of ours.
#ifndef HONE_TRANSPORT_TRANSPORT_H_
#define HONE_TRANSPORT_TRANSPORT_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone {

// PEM files; all three or none.
struct TlsFiles {
  std::string certificate, key, authority;
  bool none() const { return certificate.empty() && key.empty() && authority.empty(); }
};

// A batch of 64 MiB and what surrounds it.
inline constexpr int kMaxMessageBytes = 72 << 20;

// Whether "HOST:PORT" can only be reached from this machine: localhost, 127.x.x.x, [::1], or unix:.
bool IsLoopback(const std::string& address);

// Never connects by itself: the first call does. Calls fail with UNAVAILABLE while there is no connection.
// kInvalidArgument: plain text beyond loopback, or TLS files missing or unreadable.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& address, const TlsFiles& tls);

// Credentials to listen on `address` with; errors as OpenChannel.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenCredentials(const std::string& address,
                                                                           const TlsFiles& tls);
// Keep-alive and sizes that fit OpenChannel's.
void ConfigureServer(grpc::ServerBuilder& builder);

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace hone

#endif  // HONE_TRANSPORT_TRANSPORT_H_
