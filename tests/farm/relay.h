// SPDX-License-Identifier: Apache-2.0
// A bad network between two programs: forwards connections to a port of this machine with a delay, drops one of them,
// or cuts each after some bytes.
#ifndef HONE_TESTS_FARM_RELAY_H_
#define HONE_TESTS_FARM_RELAY_H_

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "base/status.h"

namespace hone::farm {

class Relay {
 public:
  // dropped: the number, from 0, of the connection that is closed as soon as it is accepted; -1: none. delay: added to
  // all bytes, in both directions. cut_after: the bytes of both directions after which a connection is closed.
  Relay(int port, int dropped, std::chrono::milliseconds delay = {}, int64_t cut_after = INT64_MAX)
      : to_(Loopback(port)),
        dropped_(dropped),
        listening_(socket(AF_INET, SOCK_STREAM, 0)),
        delay_(delay),
        cut_after_(cut_after) {
    sockaddr_in own = Loopback(0);
    socklen_t size = sizeof(own);
    HONE_CHECK(bind(listening_, reinterpret_cast<sockaddr*>(&own), size) == 0 && listen(listening_, 8) == 0);
    HONE_CHECK(getsockname(listening_, reinterpret_cast<sockaddr*>(&own), &size) == 0);
    port_ = ntohs(own.sin_port);
    accepting_ = std::thread([this] { Accept(); });
  }
  ~Relay() {
    shutdown(listening_, SHUT_RDWR);
    accepting_.join();
    close(listening_);
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int port() const { return port_; }
  int connections() const { return connections_; }

 private:
  static sockaddr_in Loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  void Accept() {
    for (int client = -1; (client = accept(listening_, nullptr, nullptr)) >= 0;) {
      if (connections_++ == dropped_) {
        close(client);
        continue;
      }
      const int server = socket(AF_INET, SOCK_STREAM, 0);
      HONE_CHECK(connect(server, reinterpret_cast<const sockaddr*>(&to_), sizeof(to_)) == 0);
      std::thread([client, server, delay = delay_, most = cut_after_] {
        HandOn(client, server, delay, most);
      }).detach();
    }
  }

  // Forwards bytes both ways until either side closes, or so many bytes were forwarded.
  static void HandOn(int client, int server, std::chrono::milliseconds delay, int64_t most) {
    char bytes[4096];
    pollfd ends[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    bool open = true;
    while (open && poll(ends, 2, -1) > 0) {
      for (int from = 0; from < 2 && open; ++from) {
        if (ends[from].revents == 0) continue;
        const ssize_t got = read(ends[from].fd, bytes, sizeof(bytes));
        std::this_thread::sleep_for(delay);
        most -= got;
        open = got > 0 && most > 0 && send(ends[1 - from].fd, bytes, static_cast<size_t>(got), MSG_NOSIGNAL) == got;
      }
    }
    close(client);
    close(server);
  }

  const sockaddr_in to_;
  const int dropped_, listening_;
  const std::chrono::milliseconds delay_;
  const int64_t cut_after_;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::thread accepting_;
};

}  // namespace hone::farm

#endif  // HONE_TESTS_FARM_RELAY_H_
