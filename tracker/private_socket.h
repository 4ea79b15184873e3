// SPDX-License-Identifier: Apache-2.0
// A unix socket on which a gRPC server accepts only processes of its own user.
//
// Two checks keep other users out. The folder of the socket is closed to them, so that they cannot connect. And the
// kernel reports the user of each connection (SO_PEERCRED): one of another user is closed before gRPC reads from it.
// Clients check the same folder (OpenChannel), so that no other user can pose as the server.
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
  // Creates the socket. The socket file of a process that has ended is replaced. kPermissionDenied, kNotFound: as
  // CheckPrivateFolder. kUnavailable: another process listens there, or the system refuses.
  static absl::StatusOr<std::unique_ptr<PrivateSocket>> Listen(const std::filesystem::path& path);
  ~PrivateSocket();  // stops, and removes the socket

  // Starts a thread that hands every connection of this user to `server`. Must be called at most once.
  void Serve(grpc::Server* server);
  // Stops accepting connections. Must be called before the server shuts down.
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
