// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/record_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/resolve_path.h"
#include "base/status.h"
#include "fmt/format.h"
#include "storage/sqlite/record_row.h"
#include "storage/sqlite/record_schema.h"

namespace hone::storage {
namespace {

using records::AppendReport;
using records::OpenMode;
using records::Record;
using records::Validate;

namespace fs = std::filesystem;

constexpr int kQueriesMax = 8;

// Writes the folder's entries to the disk, so that a new file or folder in it survives a power cut. Ignores errors,
// because some file systems cannot do it.
void SyncFolder(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  (void)fsync(descriptor);
  close(descriptor);
}

absl::Status CreateFolders(const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return absl::OkStatus();
  if (folder.has_parent_path() && folder.parent_path() != folder) {
    HONE_RETURN_IF_ERROR(CreateFolders(folder.parent_path()));
  }
  error.clear();
  if (!fs::create_directory(folder, error) && error) {
    const std::string message =
        fmt::format("cannot create folder {} for the records: {}", folder.string(), error.message());
    if (error.value() == ENOSPC || error.value() == EDQUOT) {
      return absl::ResourceExhaustedError(message + "; free some space on that disk");
    }
    return absl::PermissionDeniedError(message + "; pass --records FILE in a writable folder");
  }
  SyncFolder(folder.parent_path());
  return absl::OkStatus();
}

// Checks the path before SQLite opens it, because SQLite's own errors say less. It only reads attributes of the file
// and must not open it: write_lock.h says why.
absl::Status CheckFile(const fs::path& path, OpenMode mode) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    if (mode == OpenMode::kReadWrite) return absl::OkStatus();
    return absl::NotFoundError(fmt::format(
        "there is no records file {}; `hone tune` or `hone records import` creates it, --records FILE names another",
        path.string()));
  }
  if (status.type() == fs::file_type::directory) {
    return absl::FailedPreconditionError(fmt::format("{} is a folder; pass the path of a records file, for example {}",
                                                     path.string(), (path / "records.db").string()));
  }
  if (!CanAccess(path, R_OK)) {
    return absl::PermissionDeniedError(
        fmt::format("cannot read records file {}: {}; check its permissions", path.string(), std::strerror(errno)));
  }
  if (status.type() != fs::file_type::regular) {
    return absl::FailedPreconditionError(
        fmt::format("{} is not a regular file; pass the path of a records file", path.string()));
  }
  if (mode == OpenMode::kReadWrite && !CanAccess(path, W_OK)) {
    return absl::PermissionDeniedError(fmt::format(
        "records file {} cannot be written: {}; make it writable (chmod u+w), or pass another with --records FILE",
        path.string(), std::strerror(errno)));
  }
  return absl::OkStatus();
}

// The URI parameters with which a file is opened for reading. SQLite needs an index file (FILE-shm) to read a
// write-ahead log. If it cannot create one in the folder, and no log with rows would be missed, the file is opened as
// immutable.
std::string_view ReadOnlyUri(const fs::path& path) {
  std::error_code error;
  const fs::path log = path.string() + "-wal";
  const bool index = fs::exists(path.string() + "-shm", error);
  const bool missed = fs::exists(log, error) && (index || fs::file_size(log, error) > 0);
  return !missed && !CanAccess(path.parent_path(), W_OK) ? "immutable=1" : "";
}

}  // namespace

SqliteStore::SqliteStore(fs::path path, std::optional<Writer> writer, std::string reading_parameters, bool snapshot)
    : path_(std::move(path)),
      writer_(std::move(writer)),
      readers_(path_, kRecordsFile, std::move(reading_parameters), snapshot ? 1 : kQueriesMax, snapshot) {}

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const fs::path& given, OpenMode mode) {
  std::error_code error;
  // The path is made canonical, because the lock must not depend on how it was spelled.
  const fs::path whole = fs::absolute(given, error);
  if (!given.empty() && error) {
    return absl::NotFoundError(
        fmt::format("records file {}: the working folder does not exist ({}); change to another folder, or give the "
                    "absolute path with --records",
                    given.string(), error.message()));
  }
  const fs::path path = fs::weakly_canonical(FollowLinks(whole), error);
  if (given.empty() || error) {
    return absl::InvalidArgumentError(fmt::format("'{}' is not the path of a records file: {}", given.string(),
                                                  given.empty() ? "it is empty" : error.message()));
  }
  HONE_RETURN_IF_ERROR(CheckFile(path, mode));
  if (mode == OpenMode::kReadWrite) {
    HONE_RETURN_IF_ERROR(CreateFolders(path.parent_path()));
    HONE_ASSIGN_OR_RETURN(Writer writer, OpenToWrite(path, kRecordsFile));
    return std::unique_ptr<SqliteStore>(new SqliteStore(path, std::move(writer), "", false));
  }
  std::unique_ptr<SqliteStore> store(
      new SqliteStore(path, std::nullopt, std::string(ReadOnlyUri(path)), mode == OpenMode::kSnapshot));
  HONE_ASSIGN_OR_RETURN(const Readers::Borrowed reader, store->readers_.Borrow());
  HONE_RETURN_IF_ERROR(CheckSmallFile(*reader, path));
  return store;
}

absl::StatusOr<AppendReport> SqliteStore::Append(std::span<const Record> records) {
  const std::lock_guard<std::mutex> guard(write_mutex_);
  if (!writer_.has_value()) {
    return absl::FailedPreconditionError(fmt::format("records file {} was opened for reading only", path_.string()));
  }
  AppendReport report;
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(writer_->connection));
  {
    HONE_ASSIGN_OR_RETURN(RowWriter writer, RowWriter::Prepare(writer_->connection));
    for (size_t i = 0; i < records.size(); ++i) {
      if (absl::Status invalid = Validate(records[i]); !invalid.ok()) {
        report.rejected.push_back({i, std::move(invalid)});
        continue;
      }
      const absl::StatusOr<bool> written = writer.Write(records[i]);
      if (written.ok()) {
        ++(*written ? report.appended : report.duplicates);
      } else if (IsConstraintError(written.status()) || absl::IsFailedPrecondition(written.status())) {
        report.rejected.push_back({i, written.status()});
      } else {
        return written.status();  // the transaction rolls back, so no record of the span is stored
      }
    }
  }
  HONE_RETURN_IF_ERROR(transaction.Commit());
  return report;
}

absl::Status SqliteStore::CheckIntegrity() const {
  HONE_ASSIGN_OR_RETURN(const Readers::Borrowed reader, readers_.Borrow());
  return RunCheck(*reader, "PRAGMA integrity_check(1)");
}

}  // namespace hone::storage
