// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/disk.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status.h"

namespace hone::simulation {
namespace {

struct Handle {
  sqlite3_file base;
  Disk* disk;
  std::shared_ptr<Disk::File>* file;  // owned by this object
  int lock;
  bool index_shared[SQLITE_SHM_NLOCK], index_exclusive[SQLITE_SHM_NLOCK];
};

Handle& Of(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }
Disk::File& FileOf(sqlite3_file* file) { return **Of(file).file; }
Disk& DiskOf(sqlite3_vfs* vfs) { return *static_cast<Disk*>(vfs->pAppData); }
int Check(sqlite3_file* file) { return Of(file).disk->Check(FileOf(file).folder); }

void Apply(std::string& contents, const Disk::Change& change) {
  const auto offset = static_cast<size_t>(change.offset);
  if (change.bytes.empty()) return contents.resize(offset);
  if (contents.size() < offset + change.bytes.size()) contents.resize(offset + change.bytes.size());
  contents.replace(offset, change.bytes.size(), change.bytes);
}

void ChangeFile(sqlite3_file* file, Disk::Change change) {
  Apply(FileOf(file).contents, change);
  FileOf(file).pending.push_back(std::move(change));
}

int Unlock(sqlite3_file* file, int lock) {
  Handle& handle = Of(file);
  Disk::File& of = FileOf(file);
  if (handle.lock >= SQLITE_LOCK_EXCLUSIVE) of.exclusive = false;
  if (handle.lock >= SQLITE_LOCK_PENDING) of.pending_lock = false;
  if (handle.lock >= SQLITE_LOCK_RESERVED && lock < SQLITE_LOCK_RESERVED) of.reserved = false;
  if (handle.lock >= SQLITE_LOCK_SHARED && lock < SQLITE_LOCK_SHARED) --of.readers;
  handle.lock = std::min(handle.lock, lock);
  return SQLITE_OK;
}

int Lock(sqlite3_file* file, int lock) {
  Handle& handle = Of(file);
  Disk::File& of = FileOf(file);
  if (handle.lock >= lock) return SQLITE_OK;
  if (lock == SQLITE_LOCK_SHARED) {
    if (of.pending_lock || of.exclusive) return SQLITE_BUSY;
    ++of.readers;
  } else if (lock == SQLITE_LOCK_RESERVED) {
    if (of.reserved) return SQLITE_BUSY;
    of.reserved = true;
  } else {
    if (handle.lock < SQLITE_LOCK_RESERVED && of.reserved) return SQLITE_BUSY;
    of.reserved = of.pending_lock = true;
    handle.lock = SQLITE_LOCK_PENDING;
    if (of.readers > 1) return SQLITE_BUSY;
    of.exclusive = true;
  }
  handle.lock = lock;
  return SQLITE_OK;
}

int Reserved(sqlite3_file* file, int* out) {
  *out = FileOf(file).reserved ? 1 : 0;
  return SQLITE_OK;
}

int Close(sqlite3_file* file) {
  Unlock(file, SQLITE_LOCK_NONE);
  delete Of(file).file;
  Of(file).file = nullptr;
  return SQLITE_OK;
}

int Read(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
  const std::string& contents = FileOf(file).contents;
  const auto wanted = static_cast<size_t>(size), from = std::min(static_cast<size_t>(offset), contents.size());
  const size_t there = std::min(wanted, contents.size() - from);
  std::memcpy(to, contents.data() + from, there);
  if (there == wanted) return SQLITE_OK;
  std::memset(static_cast<char*>(to) + there, 0, wanted - there);
  return SQLITE_IOERR_SHORT_READ;
}

int Write(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
  if (const int code = Check(file); code != SQLITE_OK) return code;
  ChangeFile(file, {offset, std::string(static_cast<const char*>(from), static_cast<size_t>(size))});
  return SQLITE_OK;
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (const int code = Check(file); code != SQLITE_OK) return code;
  ChangeFile(file, {size, ""});
  return SQLITE_OK;
}

int Sync(sqlite3_file* file, int /*flags*/) {
  if (const int code = Check(file); code != SQLITE_OK) return code;
  for (const Disk::Change& change : FileOf(file).pending) Apply(FileOf(file).synced, change);
  FileOf(file).pending.clear();
  return SQLITE_OK;
}

int Size(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(FileOf(file).contents.size());
  return SQLITE_OK;
}

int Control(sqlite3_file* /*file*/, int /*op*/, void* /*argument*/) { return SQLITE_NOTFOUND; }
int SectorSize(sqlite3_file* /*file*/) { return 4096; }
// Promises nothing: writes may be torn and reordered.
int Characteristics(sqlite3_file* /*file*/) { return 0; }

int IndexMap(sqlite3_file* file, int region, int size, int extend, void volatile** out) {
  auto& index = FileOf(file).index;
  HONE_CHECK(size == 32768);
  *out = nullptr;
  while (static_cast<int>(index.size()) <= region) {
    if (extend == 0) return SQLITE_OK;
    index.push_back(std::make_unique<std::array<char, 32768>>());
    index.back()->fill(0);
  }
  *out = index[static_cast<size_t>(region)]->data();
  return SQLITE_OK;
}

int IndexLock(sqlite3_file* file, int offset, int n, int flags) {
  Handle& handle = Of(file);
  Disk::File& of = FileOf(file);
  for (int pass = 0; pass < 2; ++pass) {  // all of the locks or none
    for (int i = offset; i < offset + n; ++i) {
      const auto slot = static_cast<size_t>(i);
      if ((flags & SQLITE_SHM_UNLOCK) != 0) {
        if (std::exchange(handle.index_shared[slot], false)) --of.index_readers[slot];
        if (std::exchange(handle.index_exclusive[slot], false)) of.index_writer[slot] = false;
      } else if ((flags & SQLITE_SHM_SHARED) != 0) {
        if (handle.index_shared[slot]) continue;
        if (of.index_writer[slot]) return SQLITE_BUSY;
        if (pass == 1) handle.index_shared[slot] = true, ++of.index_readers[slot];
      } else {
        if (handle.index_exclusive[slot]) continue;
        if (of.index_writer[slot] || of.index_readers[slot] > 0) return SQLITE_BUSY;
        if (pass == 1) handle.index_exclusive[slot] = of.index_writer[slot] = true;
      }
    }
  }
  return SQLITE_OK;
}

void IndexBarrier(sqlite3_file* /*file*/) {}

int IndexUnmap(sqlite3_file* file, int remove) {
  IndexLock(file, 0, SQLITE_SHM_NLOCK, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
  if (remove != 0) FileOf(file).index.clear();
  return SQLITE_OK;
}

constexpr sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = Close,
    .xRead = Read,
    .xWrite = Write,
    .xTruncate = Truncate,
    .xSync = Sync,
    .xFileSize = Size,
    .xLock = Lock,
    .xUnlock = Unlock,
    .xCheckReservedLock = Reserved,
    .xFileControl = Control,
    .xSectorSize = SectorSize,
    .xDeviceCharacteristics = Characteristics,
    .xShmMap = IndexMap,
    .xShmLock = IndexLock,
    .xShmBarrier = IndexBarrier,
    .xShmUnmap = IndexUnmap,
};

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* opened, int flags, int* out_flags) {
  Disk& disk = DiskOf(vfs);
  std::memset(opened, 0, sizeof(Handle));
  std::shared_ptr<Disk::File> file;
  if (name == nullptr) {  // a temporary file
    file = std::make_shared<Disk::File>();
  } else if (const auto found = disk.files().find(name); found != disk.files().end()) {
    file = found->second;
  } else {
    if ((flags & SQLITE_OPEN_CREATE) == 0) return SQLITE_CANTOPEN;
    if (const int code = disk.Check(FolderOf(name)); code != SQLITE_OK) return code;
    file = disk.files()[name] = std::make_shared<Disk::File>();
    file->folder = FolderOf(name);
  }
  Of(opened).disk = &disk;
  Of(opened).file = new std::shared_ptr<Disk::File>(std::move(file));
  opened->pMethods = &kMethods;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs* vfs, const char* name, int /*sync_folder*/) {
  if (const int code = DiskOf(vfs).Check(FolderOf(name)); code != SQLITE_OK) return code;
  return DiskOf(vfs).files().erase(name) > 0 ? SQLITE_OK : SQLITE_IOERR_DELETE_NOENT;
}

int Access(sqlite3_vfs* vfs, const char* name, int /*flags*/, int* out) {
  *out = DiskOf(vfs).files().contains(name) ? 1 : 0;
  return SQLITE_OK;
}

int FullPath(sqlite3_vfs* /*vfs*/, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}

int Randomness(sqlite3_vfs* vfs, int size, char* out) {
  for (int i = 0; i < size; ++i) out[i] = static_cast<char>(DiskOf(vfs).random().Next());
  return size;
}

int Sleep(sqlite3_vfs* /*vfs*/, int micros) { return micros; }
int LastError(sqlite3_vfs* /*vfs*/, int /*size*/, char* /*out*/) { return 0; }

}  // namespace

Disk::Disk(Random* random) : random_(random) {
  vfs_ = *sqlite3_vfs_find(nullptr);
  vfs_.szOsFile = static_cast<int>(sizeof(Handle));
  vfs_.zName = "hone-simulation";
  vfs_.pAppData = this;
  vfs_.pNext = nullptr;
  vfs_.xOpen = Open;
  vfs_.xDelete = Delete;
  vfs_.xAccess = Access;
  vfs_.xFullPathname = FullPath;
  vfs_.xRandomness = Randomness;
  vfs_.xSleep = Sleep;
  vfs_.xGetLastError = LastError;
  HONE_CHECK(sqlite3_vfs_register(&vfs_, /*makeDflt=*/1) == SQLITE_OK);
  sqlite3_randomness(0, nullptr);  // reseeds SQLite's own generator from ours
}

Disk::~Disk() { sqlite3_vfs_unregister(&vfs_); }

int Disk::Check(const std::string& folder) {
  const auto found = failures_.find(folder);
  if (found == failures_.end()) return SQLITE_OK;
  DiskFailures& failures = found->second;
  if (failures.until_strike > 0 && --failures.until_strike == 0) {
    failures.until_strike = -1;
    const std::function<void()> strike = std::move(failures.strike);
    failures.strike = nullptr;
    strike();
  }
  return failures.chance > 0 && random_->Uniform() < failures.chance ? failures.code : SQLITE_OK;
}

template <typename Contents>
void Disk::Copy(const std::string& from, const std::string& to, const Contents& contents) {
  std::map<std::string, std::shared_ptr<File>> copies;
  for (const auto& [path, file] : files_) {
    if (file->folder != from) continue;
    auto copy = std::make_shared<File>();
    copy->folder = to;
    copy->contents = copy->synced = contents(*file);
    copies[to + path.substr(from.size())] = std::move(copy);
  }
  files_.merge(copies);
}

void Disk::CopyAfterKill(const std::string& from, const std::string& to) {
  Copy(from, to, [](const File& file) { return file.contents; });
}

void Disk::CopyAfterPowerCut(const std::string& from, const std::string& to) {
  Copy(from, to, [this](const File& file) {
    std::string contents = file.synced;
    for (const Change& change : file.pending) {
      if (random_->Below(2) == 0) Apply(contents, change);
    }
    return contents;
  });
}

void Disk::Remove(const std::string& folder) {
  std::erase_if(files_, [&](const auto& entry) { return entry.second->folder == folder; });
  failures_.erase(folder);
}

}  // namespace hone::simulation
