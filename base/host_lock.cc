// SPDX-License-Identifier: Apache-2.0
#include "base/host_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/status.h"

namespace hone {
namespace {

absl::Status FlockError() {
  return absl::UnavailableError(fmt::format("cannot take the host lock: {}", strerror(errno)));
}

int Operation(HostLock::Mode mode) { return mode == HostLock::Mode::kShared ? LOCK_SH : LOCK_EX; }

// False: it would block, and the operation has LOCK_NB.
absl::StatusOr<bool> Flock(int fd, int operation) {
  while (flock(fd, operation) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return FlockError();
  }
  return true;
}

absl::StatusOr<int> OpenOwnFile(const std::string& path, int flags = O_CREAT) {
  // NOFOLLOW and the owner check: /tmp is writable by all.
  const int fd = open(path.c_str(), O_RDWR | flags | O_CLOEXEC | O_NOFOLLOW, 0600);
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

// As Flock, of the file that has this name: `fd` is opened anew where its own was removed, and kept where that cannot
// be done, as behind a wall: there it still keeps those apart who opened it before.
absl::StatusOr<bool> LockFile(const std::string& path, int operation, int& fd) {
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool locked, Flock(fd, operation));
    if (!locked) return false;
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_nlink > 0) break;
    // A launcher has become another user: a file that it made, its agent could not use.
    const absl::StatusOr<int> again = OpenOwnFile(path, status.st_uid == geteuid() ? O_CREAT : 0);
    if (!again.ok()) break;
    close(fd);  // and gives its lock back
    fd = *again;
  }
  // Systems remove what is old from /tmp. A launcher that has become another user may not set the time, but its agent
  // does with each self-test.
  futimens(fd, nullptr);
  return true;
}

}  // namespace

std::string HostLock::DefaultPath() { return fmt::format("/tmp/hone-{}.lock", geteuid()); }

absl::StatusOr<HostLock> HostLock::Open(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const int fd, OpenOwnFile(path));
  HostLock lock(path, fd);
  HONE_ASSIGN_OR_RETURN(lock.queue_fd_, OpenOwnFile(lock.QueuePath()));
  return lock;
}

HostLock::HostLock(HostLock&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), queue_fd_(std::exchange(other.queue_fd_, -1)) {}

HostLock& HostLock::operator=(HostLock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(queue_fd_, other.queue_fd_);
  return *this;
}

HostLock::~HostLock() {
  if (fd_ >= 0) close(fd_);
  if (queue_fd_ >= 0) close(queue_fd_);
}

absl::Status HostLock::Lock(Mode mode) {
  HONE_RETURN_IF_ERROR(LockFile(QueuePath(), LOCK_EX, queue_fd_).status());
  const absl::Status status = LockFile(path_, Operation(mode), fd_).status();
  flock(queue_fd_, LOCK_UN);
  return status;
}

absl::StatusOr<bool> HostLock::TryLock(Mode mode) {
  HONE_ASSIGN_OR_RETURN(const bool first_in_queue, LockFile(QueuePath(), LOCK_EX | LOCK_NB, queue_fd_));
  if (!first_in_queue) return false;
  absl::StatusOr<bool> locked = LockFile(path_, Operation(mode) | LOCK_NB, fd_);
  flock(queue_fd_, LOCK_UN);
  return locked;
}

void HostLock::Unlock() { flock(fd_, LOCK_UN); }

}  // namespace hone
