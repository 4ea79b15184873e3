// SPDX-License-Identifier: Apache-2.0
// The lock that a process holds while it writes an SQLite file. At most one process of this machine holds it.
//
// SQLite itself lets several processes write in turn. But before 3.51.3, two connections that write and checkpoint at
// once can corrupt its write-ahead log. Two trackers on one file are also a mistake of the operator.
// The lock is a flock on FILE.lock. The kernel drops it when the process dies, so a lock is never stale. FILE.lock gets
// the access rights of FILE, so that every user who may write FILE may lock it. This code must never open FILE itself:
// closing any descriptor of FILE would drop SQLite's own locks in this process.
#ifndef HONE_STORAGE_SQLITE_WRITE_LOCK_H_
#define HONE_STORAGE_SQLITE_WRITE_LOCK_H_

#include <filesystem>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone::storage {

class WriteLock {
 public:
  // Takes the lock of `file`, or fails at once. `file` may be missing, but its folder must exist. For a link, the file
  // that it leads to is locked. kFailedPrecondition: another process holds the lock (the message names it), or
  // FILE.lock is not a lock. Other errors: FILE.lock cannot be created or written. what: the name of the file's kind in
  // errors. instead: the advice if another process holds the lock.
  static absl::StatusOr<WriteLock> Acquire(const std::filesystem::path& file, std::string_view what,
                                           std::string_view instead);
  WriteLock(WriteLock&& other) noexcept;
  WriteLock& operator=(WriteLock&& other) noexcept;
  ~WriteLock();

 private:
  explicit WriteLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;  // of FILE.lock, which the flock belongs to; -1 once moved from
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_SQLITE_WRITE_LOCK_H_
