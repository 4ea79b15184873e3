#include "base/host_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "base/status.h"

namespace hone {
namespace {

absl::Status FlockError() {
  return absl::UnavailableError(fmt::format("cannot take the host lock: {}", strerror(errno)));
}

int Operation(HostLock::Mode mode) { return mode == HostLock::Mode::kShared ? LOCK_SH : LOCK_EX; }

}  // namespace

std::string HostLock::DefaultPath() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && access(runtime, W_OK) == 0) return fmt::format("{}/hone.lock", runtime);
  return fmt::format("/tmp/hone-{}.lock", getuid());
}

absl::StatusOr<HostLock> HostLock::Open(const std::string& path) {
  // NOFOLLOW and the owner check: /tmp is writable by all.
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return absl::UnavailableError(fmt::format("cannot open the host lock {}: {}", path, strerror(errno)));
  }
  struct stat status;
  if (fstat(fd, &status) != 0 || status.st_uid != geteuid()) {
    close(fd);
    return absl::PermissionDeniedError(fmt::format("the host lock {} belongs to another user; remove it", path));
  }
  return HostLock(fd);
}

HostLock::HostLock(HostLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

HostLock& HostLock::operator=(HostLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

HostLock::~HostLock() {
  if (fd_ >= 0) close(fd_);
}

absl::Status HostLock::Lock(Mode mode) {
  while (flock(fd_, Operation(mode)) != 0) {
    if (errno != EINTR) return FlockError();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> HostLock::TryLock(Mode mode) {
  while (flock(fd_, Operation(mode) | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return FlockError();
  }
  return true;
}

void HostLock::Unlock() { flock(fd_, LOCK_UN); }

}  // namespace hone
