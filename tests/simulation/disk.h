// SPDX-License-Identifier: Apache-2.0
// The disks of simulated machines: an SQLite VFS in memory, which the whole process uses while it lives.
//
// A file's folder says whose it is. A disk can be full or fail for a while; a process can be killed at any write, sync,
// truncation or deletion, and the power can go there: then what was not synced is there in part, at random. Nothing is
// really written, so thousands of rounds are quick. One thread. Not here: other files than SQLite's.
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

// How a disk is at present.
struct DiskTrouble {
  double chance = 0;       // that an operation fails
  int code = SQLITE_FULL;  // with this
  int until_strike = -1;   // operations until `strike` is called, once, in the middle of one; -1: never
  std::function<void()> strike;
};

class Disk {
 public:
  explicit Disk(Random* random);  // becomes the default VFS
  ~Disk();
  Disk(const Disk&) = delete;

  DiskTrouble& trouble(const std::string& folder) { return troubles_[folder]; }

  // What is in `from` now, as after a kill: everything that was written is there.
  void CopyAfterKill(const std::string& from, const std::string& to);
  // As after a power cut: everything that was synced is there, and of the rest some.
  void CopyAfterPowerCut(const std::string& from, const std::string& to);
  // With every file closed.
  void Remove(const std::string& folder);

  struct Change {
    int64_t offset = 0;
    std::string bytes;  // empty: truncation to offset
  };
  struct File {
    std::string folder, contents, synced;
    std::vector<Change> pending;
    // Of the write-ahead log's index: memory and locks, shared by all connections.
    std::vector<std::unique_ptr<std::array<char, 32768>>> index;
    std::array<int, SQLITE_SHM_NLOCK> index_readers{};
    std::array<bool, SQLITE_SHM_NLOCK> index_writer{};
    int readers = 0;
    bool reserved = false, pending_lock = false, exclusive = false;
  };

  // For the VFS: SQLITE_OK, or with what the operation fails.
  int Check(const std::string& folder);
  std::map<std::string, std::shared_ptr<File>>& files() { return files_; }
  Random& random() { return *random_; }

 private:
  template <typename Contents>
  void Copy(const std::string& from, const std::string& to, const Contents& contents);

  Random* const random_;
  sqlite3_vfs vfs_{};
  std::map<std::string, std::shared_ptr<File>> files_;  // by path
  std::map<std::string, DiskTrouble> troubles_;         // by folder
};

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_DISK_H_
