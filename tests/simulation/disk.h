// SPDX-License-Identifier: Apache-2.0
// The disks of simulated machines: an SQLite VFS in memory that is the whole process's default VFS while the object
// lives.
//
// A file's folder tells which machine it belongs to. A disk can be full or fail for a while. A process can be killed at
// any write, sync, truncation or deletion. A power cut at such a point loses a random part of what was not synced. No
// real file is written, so thousands of rounds are quick. Used by one thread. Holds SQLite's files only.
#ifndef HONE_TESTS_SIMULATION_DISK_H_
#define HONE_TESTS_SIMULATION_DISK_H_

#include <sqlite3.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace hone::simulation {

// The current condition of a disk.
struct DiskFailures {
  double chance = 0;       // chance that an operation fails
  int code = SQLITE_FULL;  // SQLite's error code of such a failure
  int until_strike = -1;   // operations until `strike` is called, once, in the middle of one; -1: never
  std::function<void()> strike;
};

class Disk {
 public:
  explicit Disk(Random* random);  // becomes the default VFS
  ~Disk();
  Disk(const Disk&) = delete;

  DiskFailures& failures(const std::string& folder) { return failures_[folder]; }

  // Copies the files as they are after a kill: with everything that was written.
  void CopyAfterKill(const std::string& from, const std::string& to);
  // Copies the files as they are after a power cut: with everything that was synced and a random part of the rest.
  void CopyAfterPowerCut(const std::string& from, const std::string& to);
  // Removes the files of a folder. All of them must be closed.
  void Remove(const std::string& folder);

  struct Change {
    int64_t offset = 0;
    std::string bytes;  // empty: truncation to offset
  };
  struct File {
    std::string folder, contents, synced;
    std::vector<Change> pending;
    // Index of the write-ahead log: memory and locks that all connections share.
    std::vector<std::unique_ptr<std::array<char, 32768>>> index;
    std::array<int, SQLITE_SHM_NLOCK> index_readers{};
    std::array<bool, SQLITE_SHM_NLOCK> index_writer{};
    int readers = 0;
    bool reserved = false, pending_lock = false, exclusive = false;
  };

  // Called by the VFS before each operation. Returns SQLITE_OK, or the error with which the operation must fail.
  int Check(const std::string& folder);
  std::map<std::string, std::shared_ptr<File>>& files() { return files_; }
  Random& random() { return *random_; }

 private:
  template <typename Contents>
  void Copy(const std::string& from, const std::string& to, const Contents& contents);

  Random* const random_;
  sqlite3_vfs vfs_{};
  std::map<std::string, std::shared_ptr<File>> files_;  // by path
  std::map<std::string, DiskFailures> failures_;        // by folder
};

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_DISK_H_
