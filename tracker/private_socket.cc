// SPDX-License-Identifier: Apache-2.0
#include "tracker/private_socket.h"

#include <fmt/format.h>
#include <grpcpp/server_posix.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/private_folder.h"
#include "base/status.h"

namespace hone::tracker {
namespace {

constexpr int kWaitingConnections = 64;
constexpr int kPauseMs = 100;  // before accepting again, when the process has no free file descriptor

absl::StatusOr<sockaddr_un> AddressOf(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.string().size() >= sizeof(address.sun_path)) {
    return absl::UnavailableError(
        fmt::format("the socket path {} is too long; the limit is {} characters; choose a folder with a shorter name "
                    "(TMPDIR, or --state of hone up)",
                    path.string(), sizeof(address.sun_path) - 1));
  }
  std::strcpy(address.sun_path, path.c_str());
  return address;
}

absl::Status Bind(int socket, const std::filesystem::path& path) {
  HONE_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  // The socket file of a killed process refuses connections and is removed. No other process can bind between the two
  // calls, because only this user may write to the folder.
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool left_behind = connect(probe, generic, sizeof(address)) != 0 && errno == ECONNREFUSED;
  close(probe);
  if (left_behind) unlink(path.c_str());
  if (bind(socket, generic, sizeof(address)) != 0 || chmod(path.c_str(), 0600) != 0 ||
      listen(socket, kWaitingConnections) != 0) {
    return absl::UnavailableError(fmt::format("cannot listen on {}: {}", path.string(), std::strerror(errno)));
  }
  return absl::OkStatus();
}

bool OfThisUser(int connection) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  if (peer.uid == geteuid()) return true;
  spdlog::warn("refused a connection of user {}", peer.uid);
  return false;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrivateSocket>> PrivateSocket::Listen(const std::filesystem::path& path) {
  HONE_RETURN_IF_ERROR(CheckPrivateFolder(path.parent_path()));
  const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int stopping = eventfd(0, EFD_CLOEXEC);
  const absl::Status bound = Bind(listening, path);
  if (bound.ok()) return std::unique_ptr<PrivateSocket>(new PrivateSocket(path, listening, stopping));
  close(listening);
  close(stopping);
  return bound;
}

PrivateSocket::~PrivateSocket() {
  Stop();
  close(listening_);
  close(stopping_);
  unlink(path_.c_str());
}

void PrivateSocket::Serve(grpc::Server* server) {
  HONE_CHECK(!acceptor_.joinable());
  acceptor_ = std::thread([this, server] { AcceptLoop(server); });
}

void PrivateSocket::Stop() {
  eventfd_write(stopping_, 1);
  if (acceptor_.joinable()) acceptor_.join();
}

bool PrivateSocket::WaitForConnection() const {
  pollfd events[] = {{stopping_, POLLIN, 0}, {listening_, POLLIN, 0}};
  while (poll(events, 2, -1) < 0) HONE_CHECK(errno == EINTR);
  return events[0].revents == 0;
}

void PrivateSocket::AcceptLoop(grpc::Server* server) const {
  while (WaitForConnection()) {
    const int connection = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0) {
      const bool gone = errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
      pollfd stop{stopping_, POLLIN, 0};
      if (!gone) poll(&stop, 1, kPauseMs);
    } else if (OfThisUser(connection)) {
      grpc::AddInsecureChannelFromFd(server, connection);
    } else {
      close(connection);
    }
  }
}

}  // namespace hone::tracker
