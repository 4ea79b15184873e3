// SPDX-License-Identifier: Apache-2.0
#include "storage/backup.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/folder_path.h"
#include "base/status.h"
#include "storage/open.h"
#include "storage/sqlite/audit_store.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/farm_store.h"
#include "storage/sqlite/identity_store.h"
#include "storage/sqlite/record_schema.h"

namespace hone::storage {
namespace {

namespace fs = std::filesystem;

// One database of a tracker.
struct Copied {
  const DatabaseKind& kind;
  std::string_view name;  // its name in a backup's folder
  fs::path file;          // the file that the tracker uses
};

// The databases, in the order in which they are copied and put back. The state is first: the records, which are copied
// later, then have the results of every job that has ended in the copy of the state.
std::vector<Copied> FilesOf(const TrackerFiles& files) {
  std::vector<Copied> all = {{kFarmStateFile, "state.db", files.state}, {kRecordsFile, "records.db", files.records}};
  if (files.certificates.empty()) return all;
  const TrackerAddresses addresses = AddressesBeside(files.records, files.certificates);
  all.push_back({kRegisterFile, "register.db", addresses.identities});
  all.push_back({kAuditFile, "audit.db", addresses.audit});
  return all;
}

absl::Status SystemError(std::string_view what, const fs::path& path, const std::error_code& error) {
  return absl::UnavailableError(fmt::format("cannot {} {}: {}", what, path.string(), error.message()));
}

// URI parameters for a file that no process writes.
constexpr char kImmutable[] = "immutable=1";
constexpr char kCheck[] = "PRAGMA integrity_check(1)";

absl::Status CopyAndCheck(const Connection& source, const DatabaseKind& kind, const fs::path& to) {
  HONE_RETURN_IF_ERROR(CreateSecret(to, kind));
  HONE_RETURN_IF_ERROR(source.CopyTo(to));
  HONE_ASSIGN_OR_RETURN(const Connection copy, OpenToCopy(to, kind, kImmutable));
  return RunCheck(copy, kCheck);
}

// Copies the database `from`, as of now, to the new file `to`, and checks the copy.
absl::Status CopyDatabase(const fs::path& from, const DatabaseKind& kind, std::string_view uri_parameters,
                          const fs::path& to) {
  HONE_ASSIGN_OR_RETURN(const Connection source, OpenToCopy(from, kind, uri_parameters));
  const absl::Status copied = CopyAndCheck(source, kind, to);
  // If the source is damaged too, the error names the source, because the copy will be removed.
  if (absl::IsDataLoss(copied)) HONE_RETURN_IF_ERROR(RunCheck(source, kCheck));
  return copied;
}

absl::Status MoveFile(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  return error ? SystemError("rename", from, error) : absl::OkStatus();
}

// The first name FILE.replaced-N that is free.
fs::path ReplacedName(const fs::path& file) {
  for (int n = 1;; ++n) {
    const fs::path name = fmt::format("{}.replaced-{}", file.string(), n);
    if (!fs::exists(name)) return name;
  }
}

// Gives the file a second name, FILE.replaced-N. The first name stays until the restored file takes it, so that a
// killed restore leaves no database missing. The file's log is renamed, because SQLite would take it for the log of the
// restored file.
absl::Status SetAside(const fs::path& file, std::vector<fs::path>* replaced) {
  if (!fs::exists(file)) return absl::OkStatus();
  const fs::path aside = ReplacedName(file);
  std::error_code error;
  fs::create_hard_link(file, aside, error);
  if (error) HONE_RETURN_IF_ERROR(MoveFile(file, aside));  // the file system has no hard links
  replaced->push_back(aside);
  fs::remove(file.string() + "-shm", error);
  if (!fs::exists(file.string() + "-wal")) return absl::OkStatus();
  return MoveFile(file.string() + "-wal", aside.string() + "-wal");
}

// The name of the restored copy until it takes the file's place.
fs::path FreshName(const fs::path& file) { return file.string() + ".restored"; }

void RemoveFresh(const std::vector<Copied>& all) {
  std::error_code ignored;
  for (const Copied& each : all) {
    for (const char* suffix : {"", "-journal", "-wal", "-shm", ".lock"}) {
      fs::remove(FreshName(each.file).string() + suffix, ignored);
    }
  }
}

absl::Status CopyFresh(const fs::path& from, const std::vector<Copied>& all) {
  for (const Copied& each : all) {
    HONE_RETURN_IF_ERROR(RestrictToOwner(each.file, each.kind));  // because it stays as FILE.replaced-N
    HONE_RETURN_IF_ERROR(CheckpointLog(each.file, each.kind));
    HONE_RETURN_IF_ERROR(CopyDatabase(from / each.name, each.kind, kImmutable, FreshName(each.file)));
  }
  return absl::OkStatus();
}

absl::Status PutInPlace(const std::vector<Copied>& all, std::vector<fs::path>* replaced) {
  for (const Copied& each : all) {
    HONE_RETURN_IF_ERROR(SetAside(each.file, replaced));
    HONE_RETURN_IF_ERROR(MoveFile(FreshName(each.file), each.file));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeBackup(const TrackerFiles& files, const fs::path& given) {
  const fs::path to = FolderPath(given);
  if (fs::exists(to)) {
    return absl::AlreadyExistsError(fmt::format("{} exists already; name a new folder for the copy", to.string()));
  }
  const fs::path unfinished = to.string() + ".unfinished";
  std::error_code error;
  fs::remove_all(unfinished, error);
  fs::create_directories(to.has_parent_path() ? to.parent_path() : fs::path("."), error);
  if (mkdir(unfinished.c_str(), 0700) != 0) {
    return SystemError("make the folder", unfinished, std::error_code(errno, std::generic_category()));
  }
  absl::Status made;
  for (const Copied& each : FilesOf(files)) {
    if (made.ok()) made = CopyDatabase(each.file, each.kind, "", unfinished / each.name);
  }
  if (made.ok()) made = MoveFile(unfinished, to);
  if (!made.ok()) fs::remove_all(unfinished, error);
  return made;
}

absl::Status RestoreBackup(const fs::path& from, const TrackerFiles& files, std::vector<fs::path>* replaced) {
  const std::vector<Copied> all = FilesOf(files);
  std::vector<WriteLock> locks;
  for (const Copied& each : all) {
    std::error_code error;
    if (each.file.has_parent_path()) fs::create_directories(each.file.parent_path(), error);
    HONE_ASSIGN_OR_RETURN(WriteLock lock,
                          WriteLock::Acquire(each.file, each.kind.what, "stop the tracker, then restore"));
    locks.push_back(std::move(lock));
  }
  RemoveFresh(all);  // copies that a killed restore left
  // All copies are made before any is put in place, so that a damaged backup or a full disk changes nothing.
  absl::Status done = CopyFresh(from, all);
  const fs::path identities = AddressesBeside(files.records, files.certificates).identities;
  if (done.ok() && !identities.empty()) done = RevokeTokens(FreshName(identities));
  if (done.ok()) done = PutInPlace(all, replaced);
  RemoveFresh(all);
  return done;
}

}  // namespace hone::storage
