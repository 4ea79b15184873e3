// SPDX-License-Identifier: Apache-2.0
// Connects to a unix socket as another user of this machine. Needs root, which can switch to any user.
#ifndef HONE_TESTS_FARM_OTHER_USER_H_
#define HONE_TESTS_FARM_OTHER_USER_H_

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/status.h"

namespace hone::farm {

enum class Welcome {
  kNoWay,   // the socket cannot be reached
  kClosed,  // the connection was accepted and closed without a byte
  kServed,  // the server sent something: a gRPC server sends its settings before the client asks
  kSilent,
};

inline constexpr uid_t kNobody = 65534;

// Connects to the socket at `path` in a child process that runs as `user`, and reports how the server reacted.
inline Welcome WelcomeOf(uid_t user, const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  HONE_CHECK(path.string().size() < sizeof(address.sun_path));
  std::strcpy(address.sun_path, path.c_str());
  const pid_t child = fork();
  HONE_CHECK(child >= 0);
  if (child == 0) {  // only async-signal-safe calls, because the parent has threads
    const int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    if (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0) std::abort();
    if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      _exit(static_cast<int>(Welcome::kNoWay));
    }
    pollfd event{connection, POLLIN, 0};
    if (poll(&event, 1, 10'000) != 1) _exit(static_cast<int>(Welcome::kSilent));
    char byte = 0;
    _exit(static_cast<int>(read(connection, &byte, 1) == 1 ? Welcome::kServed : Welcome::kClosed));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) HONE_CHECK(errno == EINTR);
  HONE_CHECK(WIFEXITED(status));
  return static_cast<Welcome>(WEXITSTATUS(status));
}

}  // namespace hone::farm

#endif  // HONE_TESTS_FARM_OTHER_USER_H_
