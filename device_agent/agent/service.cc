// SPDX-License-Identifier: Apache-2.0
#include "device_agent/agent/service.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/run_program.h"
#include "base/status.h"

namespace hone::agent {

ServiceWatchdog::ServiceWatchdog() {
  const char* told = std::getenv("NOTIFY_SOCKET");
  const std::string path = told == nullptr ? "" : told;
  unsetenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path.empty() || path.size() >= sizeof(address.sun_path)) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';  // a name that is no file
  socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (socket_ < 0 || connect(socket_, reinterpret_cast<const sockaddr*>(&address), size) == 0) return;
  close(socket_);
  socket_ = -1;
}

ServiceWatchdog::~ServiceWatchdog() {
  if (socket_ >= 0) close(socket_);
}

void ServiceWatchdog::ReportAlive() const {
  constexpr std::string_view kAlive = "READY=1\nWATCHDOG=1";
  if (socket_ >= 0) send(socket_, kAlive.data(), kAlive.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

absl::StatusOr<ScopedUser> ScopedUser::Begin(const std::string& user) {
  errno = 0;
  const passwd* entry = getpwnam(user.c_str());
  if (entry == nullptr) {
    return absl::FailedPreconditionError(fmt::format(
        "user '{}', which {} names, does not exist; install the package hone-agent again", user, kServiceConfig));
  }
  if (setegid(entry->pw_gid) != 0 || seteuid(entry->pw_uid) != 0) {
    return absl::FailedPreconditionError(
        fmt::format("cannot act as user '{}': {}; run this command as root", user, std::strerror(errno)));
  }
  return ScopedUser();
}

ScopedUser::~ScopedUser() {
  if (!active_) return;
  HONE_CHECK(seteuid(getuid()) == 0 && setegid(getgid()) == 0);
}

absl::Status RestartService(const std::filesystem::path& systemd) {
  if (!std::filesystem::exists(systemd)) return absl::FailedPreconditionError("systemd is not running on this machine");
  // `restart` succeeds without a start if a condition of the unit is not met, so `is-active` checks the result.
  for (const char* verb : {"restart", "is-active"}) {
    HONE_RETURN_IF_ERROR(RunProgram({"systemctl", verb, "hone-agent.service"}).status());
  }
  return absl::OkStatus();
}

}  // namespace hone::agent
