// SPDX-License-Identifier: Apache-2.0
// A disk that fails on command: an SQLite VFS over the system's one that is the process's default VFS while it lives.
//
// It counts every operation that changes the disk (write, sync, truncate, delete). The N-th one either fails once or
// cuts the power. After a power cut nothing reaches the disk, and LosePower() keeps only what was synced plus a random
// part of the rest. No real sync happens, so thousands of rounds are quick. Only one object may exist at a time;
// several threads may use its files.
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

// kShortWrite writes half of the bytes and then fails.
enum class Fault { kWriteError, kShortWrite, kSyncError, kTruncateError, kDeleteError, kDiskFull, kPowerCut };

class FaultVfs {
 public:
  FaultVfs();  // becomes the default VFS
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;

  // The n-th operation from this call on (from 1) that `fault` applies to fails.
  void Arm(Fault fault, int n);
  void Disarm() { countdown_ = 0; }
  bool hit() const { return hit_; }
  int syncs() const { return syncs_; }  // since the object was made

  // Call after a power cut, with every file closed. Reduces the files to what the disk held. `seed` chooses which
  // unsynced writes had reached it.
  void LosePower(uint64_t seed);

  // Called by the VFS before each file operation, under mutex(). Returns SQLITE_OK or the error to report.
  enum class Operation { kWrite, kSync, kTruncate, kDelete };
  int Check(Operation operation);
  bool writes_half() const { return fault_ == Fault::kShortWrite && !dark_; }
  std::mutex& mutex() { return mutex_; }

  struct Change {
    int64_t offset = 0;
    std::string bytes;  // empty: truncation to offset
  };
  // A file on the disk: the part that is certainly there, and the changes that may be.
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
  int countdown_ = 0;  // operations until the fault; 0: no fault is armed
  bool hit_ = false;
  std::atomic<int> syncs_ = 0;
  bool dark_ = false;  // the power is cut
  std::map<std::string, Disk> disks_;
};

}  // namespace hone::records

#endif  // HONE_TESTS_ANOMALY_RECORDS_FAULT_VFS_H_
