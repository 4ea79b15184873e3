// SPDX-License-Identifier: Apache-2.0
// A unix socket on which a gRPC server listens to processes of its own user, and to nobody else.
//
// Two walls. The folder of the socket is closed to other users, so that they cannot connect. And the kernel says for
// each connection which user opened it (SO_PEERCRED): a foreign one is closed before gRPC sees a byte of it. Whoever
// connects checks the same folder (OpenChannel), so that no other user can pose as the server.
// Start at Listen, then Serve.
#ifndef HONE_TRACKER_PRIVATE_SOCKET_H_
#define HONE_TRACKER_PRIVATE_SOCKET_H_

#include <filesystem>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "grpcpp/server.h"

namespace hone::tracker {

class PrivateSocket {
 public:
  // The socket of a process that is gone is replaced.
  // kPermissionDenied, kNotFound: as CheckPrivateFolder. kUnavailable: another process listens, or the system refuses.
  static absl::StatusOr<std::unique_ptr<PrivateSocket>> Listen(const std::filesystem::path& path);
  ~PrivateSocket();  // stops, and removes the socket

  // Hands every connection of this user to `server`, on a thread of its own. Once.
  void Serve(grpc::Server* server);
  // No connection from now on. Must come before the server shuts down.
  void Stop();

 private:
  PrivateSocket(std::filesystem::path path, int listening, int stopping)
      : path_(std::move(path)), listening_(listening), stopping_(stopping) {}
  void AcceptLoop(grpc::Server* server) const;
  bool WaitForConnection() const;

  const std::filesystem::path path_;
  const int listening_, stopping_;  // the second: an eventfd, readable once Stop was called
  std::thread acceptor_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_PRIVATE_SOCKET_H_
