#include "tracker/backup.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/status.h"
#include "records/database.h"
#include "records/schema.h"
#include "tracker/audit_log.h"
#include "tracker/farm_state.h"
#include "tracker/register.h"

namespace hone::tracker {
namespace {

namespace fs = std::filesystem;

struct Copied {
  const records::DatabaseKind& kind;
  std::string_view name;  // in the folder
  fs::path file;          // in use
};

std::vector<Copied> FilesOf(const TrackerFiles& files) {
  std::vector<Copied> all = {{records::kRecordsFile, "records.db", files.records},
                             {kFarmStateFile, "state.db", files.state}};
  if (files.certificates.empty()) return all;
  all.push_back({kRegisterFile, "register.db", files.certificates / "register.db"});
  all.push_back({kAuditFile, "audit.db", files.certificates / "audit.db"});
  return all;
}

absl::Status SystemError(std::string_view what, const fs::path& path, const std::error_code& error) {
  return absl::UnavailableError(fmt::format("cannot {} {}: {}", what, path.string(), error.message()));
}

// What nobody writes to.
constexpr char kImmutable[] = "immutable=1";

// A copy as of now of the file into one that is not there; then the copy is read and checked.
absl::Status CopyDatabase(const fs::path& from, const records::DatabaseKind& kind, std::string_view uri_parameters,
                          const fs::path& to) {
  HONE_ASSIGN_OR_RETURN(const records::Connection source, records::OpenToCopy(from, kind, uri_parameters));
  HONE_RETURN_IF_ERROR(records::CreateSecret(to, kind));
  HONE_RETURN_IF_ERROR(source.CopyTo(to));
  HONE_ASSIGN_OR_RETURN(const records::Connection copy, records::OpenToCopy(to, kind, kImmutable));
  return records::RunCheck(copy, "PRAGMA integrity_check(1)");
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

// The log goes with its file: without it, the file lacks its newest rows.
absl::Status SetAside(const fs::path& file, std::vector<fs::path>* replaced) {
  if (!fs::exists(file)) return absl::OkStatus();
  const fs::path aside = ReplacedName(file);
  std::error_code ignored;
  fs::remove(file.string() + "-shm", ignored);
  if (fs::exists(file.string() + "-wal")) {
    HONE_RETURN_IF_ERROR(MoveFile(file.string() + "-wal", aside.string() + "-wal"));
  }
  HONE_RETURN_IF_ERROR(MoveFile(file, aside));
  replaced->push_back(aside);
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeBackup(const TrackerFiles& files, const fs::path& to) {
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
  for (const Copied& each : FilesOf(files)) {
    const absl::Status copied = CopyDatabase(each.file, each.kind, "", unfinished / each.name);
    if (copied.ok()) continue;
    fs::remove_all(unfinished, error);
    return copied;
  }
  return MoveFile(unfinished, to);
}

absl::Status RestoreBackup(const fs::path& from, const TrackerFiles& files, std::vector<fs::path>* replaced) {
  const std::vector<Copied> all = FilesOf(files);
  std::vector<records::WriteLock> locks;
  for (const Copied& each : all) {
    std::error_code error;
    if (each.file.has_parent_path()) fs::create_directories(each.file.parent_path(), error);
    HONE_ASSIGN_OR_RETURN(records::WriteLock lock,
                          records::WriteLock::Acquire(each.file, each.kind.what, "stop the tracker, and restore then"));
    locks.push_back(std::move(lock));
  }
  // All copies first, so that a damaged one or a full disk changes nothing.
  for (const Copied& each : all) {
    HONE_RETURN_IF_ERROR(records::CloseToOthers(each.file, each.kind));  // it stays, beside the restored one
    const fs::path fresh = each.file.string() + ".restored";
    std::error_code ignored;
    fs::remove(fresh, ignored);
    HONE_RETURN_IF_ERROR(CopyDatabase(from / each.name, each.kind, kImmutable, fresh));
  }
  for (const Copied& each : all) {
    HONE_RETURN_IF_ERROR(SetAside(each.file, replaced));
    HONE_RETURN_IF_ERROR(MoveFile(each.file.string() + ".restored", each.file));
  }
  return absl::OkStatus();
}

}  // namespace hone::tracker
