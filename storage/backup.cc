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
#include "storage/sqlite/audit_store.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/farm_store.h"
#include "storage/sqlite/identity_store.h"
#include "storage/sqlite/record_schema.h"

namespace hone::storage {
namespace {

namespace fs = std::filesystem;

struct Copied {
  const DatabaseKind& kind;
  std::string_view name;  // in the folder
  fs::path file;          // in use
};

// The files in the order in which they are copied and put back. The state is first: records that are copied later have
// the results of every job that has ended in it.
std::vector<Copied> FilesOf(const TrackerFiles& files) {
  std::vector<Copied> all = {{kFarmStateFile, "state.db", files.state}, {kRecordsFile, "records.db", files.records}};
  if (files.certificates.empty()) return all;
  all.push_back({kRegisterFile, "register.db", files.certificates / "register.db"});
  all.push_back({kAuditFile, "audit.db", files.certificates / "audit.db"});
  return all;
}

absl::Status SystemError(std::string_view what, const fs::path& path, const std::error_code& error) {
  return absl::UnavailableError(fmt::format("cannot {} {}: {}", what, path.string(), error.message()));
}

// For a file that no process writes.
constexpr char kImmutable[] = "immutable=1";
constexpr char kCheck[] = "PRAGMA integrity_check(1)";

absl::Status CopyAndCheck(const Connection& source, const DatabaseKind& kind, const fs::path& to) {
  HONE_RETURN_IF_ERROR(CreateSecret(to, kind));
  HONE_RETURN_IF_ERROR(source.CopyTo(to));
  HONE_ASSIGN_OR_RETURN(const Connection copy, OpenToCopy(to, kind, kImmutable));
  return RunCheck(copy, kCheck);
}

// A copy as of now of the file into one that is not there; then the copy is read and checked.
absl::Status CopyDatabase(const fs::path& from, const DatabaseKind& kind, std::string_view uri_parameters,
                          const fs::path& to) {
  HONE_ASSIGN_OR_RETURN(const Connection source, OpenToCopy(from, kind, uri_parameters));
  const absl::Status copied = CopyAndCheck(source, kind, to);
  // The error names the source, which stays, and not the copy, which is removed.
  if (absl::IsDataLoss(copied)) HONE_RETURN_IF_ERROR(RunCheck(source, kCheck));
  return copied;
}

absl::Status MoveFile(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  return error ? SystemError("rename", from, error) : absl::OkStatus();
}

// FILE.replaced-N, the first that is free.
fs::path ReplacedName(const fs::path& file) {
  for (int n = 1;; ++n) {
    const fs::path name = fmt::format("{}.replaced-{}", file.string(), n);
    if (!fs::exists(name)) return name;
  }
}

// Gives the file a second name, and keeps the first until another file takes its place, so that a killed restore leaves
// no database missing. The file's log is renamed too: SQLite would read it as the log of the restored file.
absl::Status SetAside(const fs::path& file, std::vector<fs::path>* replaced) {
  if (!fs::exists(file)) return absl::OkStatus();
  const fs::path aside = ReplacedName(file);
  std::error_code error;
  fs::create_hard_link(file, aside, error);
  if (error) HONE_RETURN_IF_ERROR(MoveFile(file, aside));  // a file system without links
  replaced->push_back(aside);
  fs::remove(file.string() + "-shm", error);
  if (!fs::exists(file.string() + "-wal")) return absl::OkStatus();
  return MoveFile(file.string() + "-wal", aside.string() + "-wal");
}

// The name of the copy that will take the file's place.
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
    HONE_RETURN_IF_ERROR(CloseToOthers(each.file, each.kind));  // it stays, beside the restored one
    HONE_RETURN_IF_ERROR(EmptyLog(each.file, each.kind));
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
    return absl::AlreadyExistsError(fmt::format("{} is there already; name a new folder for the copy", to.string()));
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
                          WriteLock::Acquire(each.file, each.kind.what, "stop the tracker, and restore then"));
    locks.push_back(std::move(lock));
  }
  RemoveFresh(all);  // of one that was killed
  // All copies first, so that a damaged one or a full disk changes nothing.
  absl::Status done = CopyFresh(from, all);
  if (done.ok() && !files.certificates.empty()) done = RevokeTokens(FreshName(files.certificates / "register.db"));
  if (done.ok()) done = PutInPlace(all, replaced);
  RemoveFresh(all);
  return done;
}

}  // namespace hone::storage
