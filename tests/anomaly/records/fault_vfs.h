// SPDX-License-Identifier: Apache-2.0
// A disk that fails on command: an SQLite VFS over the system's one, which the whole process uses while it lives.
//
// It counts every operation that changes the disk (write, sync, truncate, delete) and makes the N-th fail, once, or
// cuts the power there: from then on nothing reaches the disk, and LosePower() leaves behind only what was synced plus
// a random part of what was not. Nothing is really synced, so thousands of rounds are quick. One at a time; files may
// be used by several threads while it stands.
#ifndef HONE_TESTS_ANOMALY_RECORDS_FAULT_VFS_H_
#define HONE_TESTS_ANOMALY_RECORDS_FAULT_VFS_H_

#include <sqlite3.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/random.h"

namespace hone::records {

// A short write leaves half of what was to be written.
enum class Fault { kWriteError, kShortWrite, kSyncError, kTruncateError, kDeleteError, kDiskFull, kPowerCut };

class FaultVfs {
 public:
  FaultVfs();  // becomes the default VFS
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;

  // From now on the n-th operation (from 1) that `fault` can hit fails.
  void Arm(Fault fault, int n);
  void Disarm() { countdown_ = 0; }
  bool hit() const { return hit_; }
  int syncs() const { return syncs_; }  // since it was made

  // After a power cut, with every file closed: makes the files what the disk held. `seed` chooses which unsynced writes
  // had reached it.
  void LosePower(uint64_t seed);

  // For the file operations of the VFS, under mutex(): SQLITE_OK, or the error to return.
  enum class Operation { kWrite, kSync, kTruncate, kDelete };
  int Check(Operation operation);
  bool writes_half() const { return fault_ == Fault::kShortWrite && !dark_; }
  std::mutex& mutex() { return mutex_; }

  struct Change {
    int64_t offset = 0;
    std::string bytes;  // empty: truncation to offset
  };
  // What of a file has surely reached the disk, and what has not yet.
  struct Disk {
    std::string synced;
    std::vector<Change> pending;
    bool exists = true;
  };
  Disk& disk(const std::string& name) { return disks_[name]; }
  sqlite3_vfs* real() const { return real_; }

 private:
  sqlite3_vfs* real_;
  sqlite3_vfs vfs_;
  Fault fault_ = Fault::kWriteError;
  std::mutex mutex_;
  int countdown_ = 0;  // 0: no fault to come
  bool hit_ = false;
  std::atomic<int> syncs_ = 0;
  bool dark_ = false;  // the power is cut
  std::map<std::string, Disk> disks_;
};

}  // namespace hone::records

#endif  // HONE_TESTS_ANOMALY_RECORDS_FAULT_VFS_H_
