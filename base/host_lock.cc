// SPDX-License-Identifier: Apache-2.0
#include "base/host_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "base/status.h"

namespace hone {
namespace {

absl::Status FlockError() {
  return absl::UnavailableError(fmt::format("cannot take the host lock: {}", strerror(errno)));
}

int Operation(HostLock::Mode mode) { return mode == HostLock::Mode::kShared ? LOCK_SH : LOCK_EX; }

// False if `operation` contains LOCK_NB and would block.
absl::StatusOr<bool> Flock(int fd, int operation) {
  while (flock(fd, operation) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return FlockError();
  }
  return true;
}

absl::StatusOr<int> OpenOwnFile(const std::string& path, int flags = O_CREAT) {
  // O_NOFOLLOW and the check of the owner are needed because all users can write to /tmp.
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

// As Flock, for the file that currently has the name `path`. If the file of `fd` was removed, `fd` is replaced by a
// newly opened file. If opening fails, as inside the sandbox, `fd` stays: it still excludes processes that opened the
// same file earlier.
absl::StatusOr<bool> LockFile(const std::string& path, int operation, int& fd) {
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool locked, Flock(fd, operation));
    if (!locked) return false;
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_nlink > 0) break;
    // A launcher runs as another user than its agent. It must not create the file, because its agent could not open it.
    const absl::StatusOr<int> again = OpenOwnFile(path, status.st_uid == geteuid() ? O_CREAT : 0);
    if (!again.ok()) break;
    close(fd);  // and gives its lock back
    fd = *again;
  }
  // Sets the file's time, because systems remove old files from /tmp. This fails for a launcher that runs as another
  // user; its agent sets the time with each self-test.
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

absl::StatusOr<bool> HostLock::TryLock(Mode mode) { return TryLockFor(mode, std::chrono::milliseconds(0)); }

absl::StatusOr<bool> HostLock::TryLockFor(Mode mode, std::chrono::milliseconds most) {
  constexpr std::chrono::milliseconds kPause(10);
  const auto end = std::chrono::steady_clock::now() + most;
  const auto poll = [&](const std::string& path, int operation, int& fd) -> absl::StatusOr<bool> {
    while (true) {
      HONE_ASSIGN_OR_RETURN(const bool locked, LockFile(path, operation | LOCK_NB, fd));
      if (locked || std::chrono::steady_clock::now() >= end) return locked;
      std::this_thread::sleep_for(kPause);
    }
  };
  HONE_ASSIGN_OR_RETURN(const bool first_in_queue, poll(QueuePath(), LOCK_EX, queue_fd_));
  if (!first_in_queue) return false;
  absl::StatusOr<bool> locked = poll(path_, Operation(mode), fd_);
  flock(queue_fd_, LOCK_UN);
  return locked;
}

void HostLock::Unlock() { flock(fd_, LOCK_UN); }

}  // namespace hone
