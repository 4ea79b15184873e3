// SPDX-License-Identifier: Apache-2.0
// The host-wide lock that keeps compiling from overlapping timing where tuner and agent share a machine.
//
// An agent holds it exclusively while it times, a compile worker holds it shared while it compiles. It is a flock on
// one file per user, so that it also works between processes that know nothing of each other, and a process that dies
// lets go of it. A second file is the queue: whoever waits in it holds back those who come later, so that an endless
// stream of compilers cannot starve the agent. A file that was removed while nobody held the lock is made and found
// again; who removes it under a holder lets others in beside him. It is no security device: another user's processes
// are not held back.
#ifndef HONE_BASE_HOST_LOCK_H_
#define HONE_BASE_HOST_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace hone {

class HostLock {
 public:
  enum class Mode { kShared, kExclusive };

  // /tmp/hone-<uid>.lock. Not in $XDG_RUNTIME_DIR: who is started by cron or as a service has none, and the folder is
  // removed when the user's last session ends.
  static std::string DefaultPath();

  // Opens, and creates if needed, the two lock files (path and path.queue) without taking the lock. Errors: cannot
  // create the file, or somebody else's file is in the way.
  static absl::StatusOr<HostLock> Open(const std::string& path = DefaultPath());

  HostLock(HostLock&& other) noexcept;
  HostLock& operator=(HostLock&& other) noexcept;
  ~HostLock();  // unlocks

  // Blocks until the lock is held in `mode`; converts a lock held in the other mode (not atomically).
  absl::Status Lock(Mode mode);
  // As Lock, but answers false at once where it would block.
  absl::StatusOr<bool> TryLock(Mode mode);
  void Unlock();

 private:
  HostLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string QueuePath() const { return path_ + ".queue"; }

  std::string path_;
  int fd_, queue_fd_ = -1;
};

// Holds `lock` from construction to destruction; failing to take it leaves the work unprotected, never undone.
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
