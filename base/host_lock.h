// SPDX-License-Identifier: Apache-2.0
// The lock of a machine that keeps compiling from overlapping with timing if a tuner and an agent share the machine.
//
// An agent holds it exclusively while it times kernels. A compile worker holds it shared while it compiles. The lock is
// a flock on one file per user: it works between unrelated processes, and the system releases it when a process dies.
// A second file is the queue. A process that waits for the lock holds the queue, so later processes wait behind it and
// an endless stream of compilers cannot starve the agent. A lock file that is removed while the lock is free is created
// again. A lock file must not be removed while the lock is held, because the next process would create a new file and
// get the lock at once. The lock is no protection against other users: their processes use their own file.
#ifndef HONE_BASE_HOST_LOCK_H_
#define HONE_BASE_HOST_LOCK_H_

#include <chrono>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace hone {

class HostLock {
 public:
  enum class Mode { kShared, kExclusive };

  // /tmp/hone-<uid>.lock. $XDG_RUNTIME_DIR is unsuitable: programs started by cron or as a service have none, and the
  // system removes that folder when the user's last login session ends.
  static std::string DefaultPath();

  // Opens the two lock files (path and path.queue), creates them if needed, and does not take the lock.
  // kUnavailable: a file cannot be created. kPermissionDenied: a file of that name belongs to another user.
  static absl::StatusOr<HostLock> Open(const std::string& path = DefaultPath());

  HostLock(HostLock&& other) noexcept;
  HostLock& operator=(HostLock&& other) noexcept;
  ~HostLock();  // unlocks

  // Blocks until the lock is held in `mode`. Call Unlock first if this process holds the lock: a process that waits for
  // it holds the queue, for which Lock would then wait for ever. Without such a process, Lock converts a lock held in
  // the other mode. The conversion is not atomic, so another process may hold the lock in between.
  absl::Status Lock(Mode mode);
  // As Lock, but returns false at once if Lock would block.
  absl::StatusOr<bool> TryLock(Mode mode);
  // As Lock, but returns false if that takes longer than `most`. Later processes wait behind this one meanwhile, so an
  // endless stream of shared holders keeps it from the lock only if one of them holds it for longer than `most`.
  absl::StatusOr<bool> TryLockFor(Mode mode, std::chrono::milliseconds most);
  void Unlock();

 private:
  HostLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string QueuePath() const { return path_ + ".queue"; }

  std::string path_;
  int fd_, queue_fd_ = -1;
};

// Holds `lock` from construction to destruction. If the lock cannot be taken, status() has the error and the work goes
// on without it.
class ScopedHostLock {
 public:
  ScopedHostLock(HostLock& lock, HostLock::Mode mode) : lock_(lock) { status_ = lock.Lock(mode); }
  ~ScopedHostLock() {
    if (status_.ok()) lock_.Unlock();
  }
  ScopedHostLock(const ScopedHostLock&) = delete;
  ScopedHostLock& operator=(const ScopedHostLock&) = delete;
  const absl::Status& status() const { return status_; }

 private:
  HostLock& lock_;
  absl::Status status_;
};

}  // namespace hone

#endif  // HONE_BASE_HOST_LOCK_H_
