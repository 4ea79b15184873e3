// The host-wide lock that keeps compiling from overlapping timing where tuner and agent share a machine.
//
// An agent holds it exclusively while it times, a compile worker holds it shared while it compiles. It is a flock on
// one file per user, so that it also works between processes that know nothing of each other, and a process that dies
// lets go of it. A second file is the queue: whoever waits in it holds back those who come later, so that an endless
// stream of compilers cannot starve the agent. It is no security device: another user's processes are not held back.
#ifndef HONE_BASE_HOST_LOCK_H_
#define HONE_BASE_HOST_LOCK_H_

#include <string>

#include "absl/status/statusor.h"

namespace hone {

class HostLock {
 public:
  enum class Mode { kShared, kExclusive };

  // $XDG_RUNTIME_DIR/hone.lock, else /tmp/hone-<uid>.lock.
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
  HostLock(int fd, int queue_fd) : fd_(fd), queue_fd_(queue_fd) {}
  int fd_, queue_fd_;
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
