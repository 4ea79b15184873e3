// SPDX-License-Identifier: Apache-2.0
#include "tests/anomaly/records/fault_vfs.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/status.h"

namespace hone::records {
namespace {

// The real file follows in the same allocation, as in SQLite's own shims.
struct FaultFile {
  sqlite3_file base;
  FaultVfs* vfs;
  FaultVfs::Disk* disk;  // null for a temporary file without a name
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

FaultFile* Of(sqlite3_file* file) { return reinterpret_cast<FaultFile*>(file); }
sqlite3_file* Real(sqlite3_file* file) { return Of(file)->real(); }
const sqlite3_io_methods* Methods(sqlite3_file* file) { return Real(file)->pMethods; }

std::string Contents(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void Apply(std::string& contents, const FaultVfs::Change& change) {
  const auto offset = static_cast<size_t>(change.offset);
  if (change.bytes.empty()) {
    contents.resize(offset);
    return;
  }
  if (contents.size() < offset + change.bytes.size()) contents.resize(offset + change.bytes.size());
  contents.replace(offset, change.bytes.size(), change.bytes);
}

int Close(sqlite3_file* file) { return Methods(file)->xClose(Real(file)); }
int Read(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
  return Methods(file)->xRead(Real(file), to, size, offset);
}

int Write(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
  const std::lock_guard lock(Of(file)->vfs->mutex());
  const int code = Of(file)->vfs->Check(FaultVfs::Operation::kWrite);
  if (code != SQLITE_OK) {
    if (Of(file)->vfs->writes_half()) Methods(file)->xWrite(Real(file), from, size / 2, offset);
    return code;
  }
  if (FaultVfs::Disk* disk = Of(file)->disk) {
    disk->pending.push_back({offset, std::string(static_cast<const char*>(from), static_cast<size_t>(size))});
  }
  return Methods(file)->xWrite(Real(file), from, size, offset);
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  const std::lock_guard lock(Of(file)->vfs->mutex());
  if (const int code = Of(file)->vfs->Check(FaultVfs::Operation::kTruncate); code != SQLITE_OK) return code;
  if (FaultVfs::Disk* disk = Of(file)->disk) disk->pending.push_back({size, ""});
  return Methods(file)->xTruncate(Real(file), size);
}

int Sync(sqlite3_file* file, int /*flags*/) {
  const std::lock_guard lock(Of(file)->vfs->mutex());
  if (const int code = Of(file)->vfs->Check(FaultVfs::Operation::kSync); code != SQLITE_OK) return code;
  if (FaultVfs::Disk* disk = Of(file)->disk) {
    for (const FaultVfs::Change& change : disk->pending) Apply(disk->synced, change);
    disk->pending.clear();
  }
  return SQLITE_OK;
}

int FileSize(sqlite3_file* file, sqlite3_int64* size) { return Methods(file)->xFileSize(Real(file), size); }
int Lock(sqlite3_file* file, int lock) { return Methods(file)->xLock(Real(file), lock); }
int Unlock(sqlite3_file* file, int lock) { return Methods(file)->xUnlock(Real(file), lock); }
int CheckReserved(sqlite3_file* file, int* out) { return Methods(file)->xCheckReservedLock(Real(file), out); }
int FileControl(sqlite3_file* file, int op, void* argument) {
  return Methods(file)->xFileControl(Real(file), op, argument);
}
int SectorSize(sqlite3_file* file) { return Methods(file)->xSectorSize(Real(file)); }
// Promises nothing: writes may be torn and reordered.
int Characteristics(sqlite3_file* /*file*/) { return 0; }
int ShmMap(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
  return Methods(file)->xShmMap(Real(file), page, size, extend, out);
}
int ShmLock(sqlite3_file* file, int offset, int n, int flags) {
  return Methods(file)->xShmLock(Real(file), offset, n, flags);
}
void ShmBarrier(sqlite3_file* file) { Methods(file)->xShmBarrier(Real(file)); }
int ShmUnmap(sqlite3_file* file, int remove) { return Methods(file)->xShmUnmap(Real(file), remove); }

constexpr sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = Close,
    .xRead = Read,
    .xWrite = Write,
    .xTruncate = Truncate,
    .xSync = Sync,
    .xFileSize = FileSize,
    .xLock = Lock,
    .xUnlock = Unlock,
    .xCheckReservedLock = CheckReserved,
    .xFileControl = FileControl,
    .xSectorSize = SectorSize,
    .xDeviceCharacteristics = Characteristics,
    .xShmMap = ShmMap,
    .xShmLock = ShmLock,
    .xShmBarrier = ShmBarrier,
    .xShmUnmap = ShmUnmap,
};

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto* self = static_cast<FaultVfs*>(vfs->pAppData);
  FaultFile* opened = Of(file);
  std::memset(opened, 0, sizeof(FaultFile));
  opened->vfs = self;
  const std::lock_guard lock(self->mutex());
  const bool existed = name != nullptr && std::filesystem::exists(name);
  const int code = self->real()->xOpen(self->real(), name, opened->real(), flags, out_flags);
  opened->base.pMethods = opened->real()->pMethods != nullptr ? &kMethods : nullptr;
  if (code == SQLITE_OK && name != nullptr) {
    FaultVfs::Disk& disk = self->disk(name);
    if (existed && disk.synced.empty() && disk.pending.empty()) disk.synced = Contents(name);  // existed before the VFS
    disk.exists = true;
    opened->disk = &disk;
  }
  return code;
}

int Delete(sqlite3_vfs* vfs, const char* name, int sync_folder) {
  auto* self = static_cast<FaultVfs*>(vfs->pAppData);
  const std::lock_guard lock(self->mutex());
  if (const int code = self->Check(FaultVfs::Operation::kDelete); code != SQLITE_OK) return code;
  self->disk(name) = {.exists = false};
  return self->real()->xDelete(self->real(), name, sync_folder);
}

}  // namespace

FaultVfs::FaultVfs() : real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
  vfs_.szOsFile = static_cast<int>(sizeof(FaultFile)) + real_->szOsFile;
  vfs_.zName = "hone-fault";
  vfs_.pAppData = this;
  vfs_.pNext = nullptr;
  vfs_.xOpen = Open;
  vfs_.xDelete = Delete;
  HONE_CHECK(sqlite3_vfs_register(&vfs_, /*makeDflt=*/1) == SQLITE_OK);
}

FaultVfs::~FaultVfs() { sqlite3_vfs_unregister(&vfs_); }

void FaultVfs::Arm(Fault fault, int n) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
  countdown_ = n;
  hit_ = false;
}

int FaultVfs::Check(Operation operation) {
  syncs_ += operation == Operation::kSync;
  const int error = operation == Operation::kWrite      ? SQLITE_IOERR_WRITE
                    : operation == Operation::kSync     ? SQLITE_IOERR_FSYNC
                    : operation == Operation::kTruncate ? SQLITE_IOERR_TRUNCATE
                                                        : SQLITE_IOERR_DELETE;
  if (dark_) return error;
  const Operation hit_by = fault_ == Fault::kSyncError       ? Operation::kSync
                           : fault_ == Fault::kTruncateError ? Operation::kTruncate
                           : fault_ == Fault::kDeleteError   ? Operation::kDelete
                                                             : Operation::kWrite;
  const bool concerned = fault_ == Fault::kPowerCut || operation == hit_by;
  if (!concerned || countdown_ == 0 || --countdown_ > 0) return SQLITE_OK;
  hit_ = true;
  dark_ = fault_ == Fault::kPowerCut;
  return fault_ == Fault::kDiskFull ? SQLITE_FULL : error;
}

void FaultVfs::LosePower(uint64_t seed) {
  Random random(seed);
  for (auto& [name, disk] : disks_) {
    if (!disk.exists) continue;
    for (const Change& change : disk.pending) {
      if (random.Below(2) == 0) Apply(disk.synced, change);
    }
    disk.pending.clear();
    std::ofstream(name, std::ios::binary | std::ios::trunc) << disk.synced;
    std::error_code ignored;
    std::filesystem::remove(name + "-shm", ignored);
  }
  disks_.clear();
  dark_ = false;
  countdown_ = 0;
}

}  // namespace hone::records
