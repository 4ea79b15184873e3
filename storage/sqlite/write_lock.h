// SPDX-License-Identifier: Apache-2.0
// The lock that a process holds while it writes an SQLite file. At most one process of this machine holds it.
//
// SQLite alone lets writers take turns, but its write-ahead log has been corrupted by two connections that write and
// checkpoint at once (fixed only in 3.51.3), and two trackers over one file are a mistake anyhow. The lock is a flock
// on FILE.lock: the kernel drops it when the process dies, so there are no stale locks. FILE.lock gets the access
// rights of FILE, so that every user who may write FILE may lock it. FILE itself is never opened here: closing any
// descriptor of it would drop SQLite's own locks in this process.
#ifndef HONE_STORAGE_SQLITE_WRITE_LOCK_H_
#define HONE_STORAGE_SQLITE_WRITE_LOCK_H_

#include <filesystem>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone::storage {

class WriteLock {
 public:
  // Does not wait. `file` may be missing, its folder must exist; of a link, the file it leads to is locked.
  // kFailedPrecondition names the process that holds it, or says that FILE.lock is another file. what: how errors call
  // the file; instead: what to do where another process has it.
  static absl::StatusOr<WriteLock> Acquire(const std::filesystem::path& file, std::string_view what,
                                           std::string_view instead);
  WriteLock(WriteLock&& other) noexcept;
  WriteLock& operator=(WriteLock&& other) noexcept;
  ~WriteLock();

 private:
  explicit WriteLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_SQLITE_WRITE_LOCK_H_
