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

absl::Status Flock(int fd, int operation) {
  while (flock(fd, operation) != 0) {
    if (errno != EINTR) return FlockError();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TryFlock(int fd, int operation) {
  while (flock(fd, operation | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return FlockError();
  }
  return true;
}

absl::StatusOr<int> OpenOwnFile(const std::string& path) {
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
  return fd;
}

}  // namespace

std::string HostLock::DefaultPath() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && access(runtime, W_OK) == 0) return fmt::format("{}/hone.lock", runtime);
  return fmt::format("/tmp/hone-{}.lock", getuid());
}

absl::StatusOr<HostLock> HostLock::Open(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const int fd, OpenOwnFile(path));
  HostLock lock(fd, -1);
  HONE_ASSIGN_OR_RETURN(lock.queue_fd_, OpenOwnFile(path + ".queue"));
  return lock;
}

HostLock::HostLock(HostLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), queue_fd_(std::exchange(other.queue_fd_, -1)) {}

HostLock& HostLock::operator=(HostLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(queue_fd_, other.queue_fd_);
  return *this;
}

HostLock::~HostLock() {
  if (fd_ >= 0) close(fd_);
  if (queue_fd_ >= 0) close(queue_fd_);
}

absl::Status HostLock::Lock(Mode mode) {
  HONE_RETURN_IF_ERROR(Flock(queue_fd_, LOCK_EX));
  const absl::Status status = Flock(fd_, Operation(mode));
  flock(queue_fd_, LOCK_UN);
  return status;
}

absl::StatusOr<bool> HostLock::TryLock(Mode mode) {
  HONE_ASSIGN_OR_RETURN(const bool first_in_queue, TryFlock(queue_fd_, LOCK_EX));
  if (!first_in_queue) return false;
  absl::StatusOr<bool> locked = TryFlock(fd_, Operation(mode));
  flock(queue_fd_, LOCK_UN);
  return locked;
}

void HostLock::Unlock() { flock(fd_, LOCK_UN); }

}  // namespace hone
