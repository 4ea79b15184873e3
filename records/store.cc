#include "records/store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/status.h"
#include "fmt/format.h"
#include "records/row.h"
#include "records/schema.h"

namespace hone::records {
namespace {

namespace fs = std::filesystem;

// Reading that much takes a fraction of a second.
constexpr uintmax_t kCheckedOnOpenBytes = uintmax_t{64} << 20;

// Makes the entry of a new file or folder survive a power cut. Best effort: some file systems cannot.
void SyncFolder(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  (void)fsync(descriptor);
  close(descriptor);
}

// access(2) for the effective user, whose rights open() will use.
bool May(const fs::path& path, int mode) { return faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0; }

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
    return absl::PermissionDeniedError(message + "; pass --records FILE in a folder that may be written");
  }
  SyncFolder(folder.parent_path());
  return absl::OkStatus();
}

// What can be said clearly before SQLite sees the file. Only asks for attributes: see write_lock.h on opening it.
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
  if (!May(path, R_OK)) {
    return absl::PermissionDeniedError(
        fmt::format("cannot read records file {}: {}; check its permissions", path.string(), std::strerror(errno)));
  }
  if (status.type() != fs::file_type::regular) {
    return absl::FailedPreconditionError(
        fmt::format("{} is not a regular file; pass the path of a records file", path.string()));
  }
  if (mode == OpenMode::kReadWrite && !May(path, W_OK)) {
    return absl::PermissionDeniedError(fmt::format(
        "records file {} may not be written: {}; make it writable (chmod u+w), or pass another with --records FILE",
        path.string(), std::strerror(errno)));
  }
  return absl::OkStatus();
}

// SQLite reads a write-ahead log through a file it creates beside it. In a folder where it cannot, and with no log that
// would be missed, the file is read as one that never changes.
std::string_view ReadOnlyUri(const fs::path& path) {
  std::error_code error;
  const bool log = fs::exists(path.string() + "-wal", error);
  return !log && !May(path.parent_path(), W_OK) ? "immutable=1" : "";
}

absl::Status RunCheck(const Connection& connection, const fs::path& path, std::string_view pragma) {
  HONE_ASSIGN_OR_RETURN(const std::string finding, connection.QueryText(pragma));
  if (finding == "ok") return absl::OkStatus();
  return DamagedError(path.string(), finding);
}

absl::Status CheckIfSmall(const Connection& connection, const fs::path& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error || size > kCheckedOnOpenBytes) return absl::OkStatus();
  return RunCheck(connection, path, "PRAGMA quick_check(1)");
}

absl::Status ConfigureCommon(const Connection& connection) {
  HONE_RETURN_IF_ERROR(connection.Configure(SQLITE_DBCONFIG_TRUSTED_SCHEMA, false));
  HONE_RETURN_IF_ERROR(connection.Configure(SQLITE_DBCONFIG_DEFENSIVE, true));
  // No mmap: an I/O error would be a signal, and a stray pointer could write into the file.
  return connection.Execute(
      "PRAGMA busy_timeout = 5000; PRAGMA mmap_size = 0; PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON");
}

absl::Status PrepareForWriting(const Connection& connection, const fs::path& path) {
  HONE_RETURN_IF_ERROR(ConfigureCommon(connection));
  HONE_RETURN_IF_ERROR(CheckOwner(connection, path));  // before anything is changed in a file that is not ours
  HONE_ASSIGN_OR_RETURN(const std::string journal, connection.QueryText("PRAGMA journal_mode = WAL"));
  if (journal != "wal") {
    return absl::FailedPreconditionError(
        fmt::format("the file system of {} cannot share memory between processes, which records need; keep the file on "
                    "a local disk",
                    path.string()));
  }
  // FULL: every commit reaches the disk before it is acknowledged. With NORMAL a power cut loses the last ones.
  HONE_RETURN_IF_ERROR(connection.Execute("PRAGMA synchronous = FULL"));
  HONE_RETURN_IF_ERROR(CheckIfSmall(connection, path));
  return Migrate(connection, path);
}

absl::Status PrepareForReading(const Connection& connection, const fs::path& path) {
  HONE_RETURN_IF_ERROR(ConfigureCommon(connection));
  // Only the one writer may move the log into the file: see write_lock.h.
  HONE_RETURN_IF_ERROR(connection.Configure(SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
  HONE_RETURN_IF_ERROR(connection.Execute("PRAGMA wal_autocheckpoint = 0; PRAGMA query_only = ON"));
  HONE_RETURN_IF_ERROR(RequireCurrent(connection, path));
  return CheckIfSmall(connection, path);
}

}  // namespace

Store::Store(fs::path path, OpenMode mode, std::optional<WriteLock> lock, Connection connection)
    : path_(std::move(path)), mode_(mode), lock_(std::move(lock)), connection_(std::move(connection)) {}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const fs::path& given, OpenMode mode) {
  std::error_code error;
  // One file, one name: the lock must not depend on how the path was spelled.
  const fs::path path = fs::weakly_canonical(fs::absolute(given, error), error);
  if (given.empty() || error) {
    return absl::InvalidArgumentError(fmt::format("'{}' is not the path of a records file: {}", given.string(),
                                                  given.empty() ? "it is empty" : error.message()));
  }
  HONE_RETURN_IF_ERROR(CheckFile(path, mode));
  std::optional<WriteLock> lock;
  if (mode == OpenMode::kReadWrite) {
    HONE_RETURN_IF_ERROR(CreateFolders(path.parent_path()));
    HONE_ASSIGN_OR_RETURN(lock, WriteLock::Acquire(path));
    HONE_ASSIGN_OR_RETURN(Connection connection,
                          Connection::Open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ""));
    HONE_RETURN_IF_ERROR(PrepareForWriting(connection, path));
    return std::unique_ptr<Store>(new Store(path, mode, std::move(lock), std::move(connection)));
  }
  HONE_ASSIGN_OR_RETURN(Connection connection, Connection::Open(path, SQLITE_OPEN_READONLY, ReadOnlyUri(path)));
  HONE_RETURN_IF_ERROR(PrepareForReading(connection, path));
  return std::unique_ptr<Store>(new Store(path, mode, std::nullopt, std::move(connection)));
}

absl::StatusOr<AppendReport> Store::Append(std::span<const Record> records) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (mode_ != OpenMode::kReadWrite) {
    return absl::FailedPreconditionError(fmt::format("records file {} was opened for reading only", path_.string()));
  }
  AppendReport report;
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  {
    HONE_ASSIGN_OR_RETURN(RowWriter writer, RowWriter::Prepare(connection_));
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
        return written.status();  // the transaction rolls back: nothing of this span is acknowledged
      }
    }
  }
  HONE_RETURN_IF_ERROR(transaction.Commit());
  return report;
}

absl::Status Store::CheckIntegrity() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return RunCheck(connection_, path_, "PRAGMA integrity_check(1)");
}

}  // namespace hone::records
