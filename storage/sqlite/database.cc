// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "base/resolve_path.h"
#include "base/shell_word.h"
#include "base/status.h"
#include "fmt/format.h"

namespace hone::storage {
namespace {

namespace fs = std::filesystem;

// Files up to this size are checked whenever they are opened. Reading so much takes a fraction of a second.
constexpr uintmax_t kCheckedOnOpenBytes = uintmax_t{64} << 20;

// The values by which Hone recognizes a database.
struct Header {
  int64_t application_id = 0;
  int64_t version = 0;
  int64_t objects = 0;    // tables, indexes and views
  bool unmarked = false;  // has DatabaseKind::unmarked_table
  // Whether the database is empty, or was written before its kind had an application_id.
  bool Fresh() const { return application_id == 0 && version == 0 && (objects == 0 || unmarked); }
};

absl::StatusOr<Header> ReadHeader(const Connection& connection, const fs::path& path, const DatabaseKind& kind) {
  Header header;
  HONE_ASSIGN_OR_RETURN(header.application_id, connection.QueryInt("PRAGMA application_id"));
  HONE_ASSIGN_OR_RETURN(header.version, connection.QueryInt("PRAGMA user_version"));
  HONE_ASSIGN_OR_RETURN(header.objects, connection.QueryInt("SELECT count(*) FROM sqlite_schema"));
  if (!kind.unmarked_table.empty()) {
    HONE_ASSIGN_OR_RETURN(
        const int64_t found,
        connection.QueryInt(fmt::format("SELECT count(*) FROM sqlite_schema WHERE name = '{}'", kind.unmarked_table)));
    header.unmarked = found > 0;
  }
  if (!header.Fresh() && header.application_id != kind.application_id) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is an SQLite database of another program, not a {}; pass another path", path.string(), kind.what));
  }
  if (header.version > kind.version) {
    return absl::FailedPreconditionError(
        fmt::format("{} {} was written by a newer Hone (schema {}, this one knows {}); use that version, or {}",
                    kind.what, path.string(), header.version, kind.version, kind.advice_if_newer));
  }
  return header;
}

absl::Status ConfigureCommon(const Connection& connection) {
  HONE_RETURN_IF_ERROR(connection.Configure(SQLITE_DBCONFIG_TRUSTED_SCHEMA, false));
  HONE_RETURN_IF_ERROR(connection.Configure(SQLITE_DBCONFIG_DEFENSIVE, true));
  // mmap is off: with it an I/O error would be a signal, and a stray pointer could write into the file.
  return connection.Execute(
      "PRAGMA busy_timeout = 5000; PRAGMA mmap_size = 0; PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON");
}

absl::Status PrepareToWrite(const Connection& connection, const fs::path& path, const DatabaseKind& kind) {
  HONE_RETURN_IF_ERROR(ConfigureCommon(connection));
  HONE_RETURN_IF_ERROR(CheckOwner(connection, path, kind));  // first: a file of another program must not be changed
  HONE_RETURN_IF_ERROR(RestrictToOwner(path, kind));  // before SQLite makes the log, which gets the file's rights
  HONE_ASSIGN_OR_RETURN(const std::string journal, connection.QueryText("PRAGMA journal_mode = WAL"));
  if (journal != "wal") {
    return absl::FailedPreconditionError(
        fmt::format("the file system of {} cannot share memory between processes, which a {} needs; keep the file on a "
                    "local disk",
                    path.string(), kind.what));
  }
  // FULL: every commit reaches the disk before it is acknowledged. With NORMAL a power cut loses the last ones.
  HONE_RETURN_IF_ERROR(connection.Execute("PRAGMA synchronous = FULL"));
  HONE_RETURN_IF_ERROR(CheckSmallFile(connection, path));
  return Migrate(connection, path, kind, kind.version);
}

// kPermissionDenied if an existing log or its index cannot be written. Without this check SQLite's error would name the
// database.
absl::Status CheckLog(const fs::path& path, const DatabaseKind& kind) {
  std::error_code error;
  const fs::path file = fs::canonical(path, error);  // the log is beside the file that a link leads to
  if (error) return absl::OkStatus();                // there is no file
  for (const char* suffix : {"-wal", "-shm"}) {
    const fs::path each = file.string() + suffix;
    if (!fs::exists(each, error) || CanAccess(each, W_OK)) continue;
    const std::string reason = std::strerror(errno);
    const bool rows = suffix == std::string_view("-wal") && fs::file_size(each, error) > 0;
    return absl::PermissionDeniedError(fmt::format(
        "cannot write {} beside the {} ({}): it belongs to another user, who read the file; {}", each.string(),
        kind.what, reason,
        rows ? fmt::format("it contains rows: give it to the owner of the file (as root: chown --reference={} {})",
                           ShellWord(file.string()), ShellWord(each.string()))
             : "remove it when no program has the file open"));
  }
  return absl::OkStatus();
}

}  // namespace

bool CanAccess(const fs::path& path, int mode) { return faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0; }

absl::Status CheckOwner(const Connection& connection, const fs::path& path, const DatabaseKind& kind) {
  return ReadHeader(connection, path, kind).status();
}

absl::Status Migrate(const Connection& connection, const fs::path& path, const DatabaseKind& kind, int64_t version) {
  HONE_ASSIGN_OR_RETURN(const Header header, ReadHeader(connection, path, kind));
  if (header.version >= version) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection));
  for (int64_t now = header.version; now < version;) {
    HONE_ASSIGN_OR_RETURN(now, kind.upgrade(connection, now));
  }
  HONE_RETURN_IF_ERROR(connection.Execute(
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kind.application_id, version)));
  return transaction.Commit();
}

absl::Status RequireCurrent(const Connection& connection, const fs::path& path, const DatabaseKind& kind) {
  HONE_ASSIGN_OR_RETURN(const Header header, ReadHeader(connection, path, kind));
  if (header.Fresh()) {
    return absl::NotFoundError(
        fmt::format("{} {} is empty; nothing has been written to it yet", kind.what, path.string()));
  }
  if (header.version < kind.version) {
    return absl::FailedPreconditionError(
        fmt::format("{} {} has an old schema ({}; this Hone needs {}); open it once for writing, for example with: "
                    "hone records import --records {} "
                    "/dev/null",
                    kind.what, path.string(), header.version, kind.version, ShellWord(path.string())));
  }
  return absl::OkStatus();
}

absl::Status RunCheck(const Connection& connection, std::string_view pragma) {
  HONE_ASSIGN_OR_RETURN(const std::string finding, connection.QueryText(pragma));
  return finding == "ok" ? absl::OkStatus() : connection.Damaged(finding);
}

absl::Status CheckSmallFile(const Connection& connection, const fs::path& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error || size > kCheckedOnOpenBytes) return absl::OkStatus();
  return RunCheck(connection, "PRAGMA quick_check(1)");
}

// An existing file is not opened: closing it would drop the locks that this process holds on it (POSIX).
absl::Status CreateSecret(const fs::path& path, const DatabaseKind& kind) {
  if (!kind.secret) return absl::OkStatus();
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor >= 0) {
    close(descriptor);
  } else if (errno != EEXIST) {
    return absl::ErrnoToStatus(errno, fmt::format("cannot create {} {}; it needs free disk space and a writable folder",
                                                  kind.what, path.string()));
  }
  return absl::OkStatus();
}

absl::Status RestrictToOwner(const fs::path& path, const DatabaseKind& kind) {
  constexpr fs::perms kOthers = fs::perms::group_all | fs::perms::others_all;
  if (!kind.secret) return absl::OkStatus();
  std::error_code error;
  const fs::path file = fs::canonical(path, error);  // the log is beside the file that a link leads to
  if (error) return absl::OkStatus();                // there is no file
  for (const char* suffix : {"", "-wal", "-shm"}) {
    const fs::path each = file.string() + suffix;
    const fs::file_status found = fs::status(each, error);
    if (!fs::exists(found) || (found.permissions() & kOthers) == fs::perms::none) continue;
    fs::permissions(each, kOthers, fs::perm_options::remove, error);
    if (!error) continue;
    return absl::PermissionDeniedError(
        fmt::format("other users can read {}, which contains secrets of the {}, and its permissions cannot be changed "
                    "({}); as its owner, run: chmod go= {}",
                    each.string(), kind.what, error.message(), ShellWord(each.string())));
  }
  return absl::OkStatus();
}

absl::StatusOr<Writer> OpenToWrite(const fs::path& given, const DatabaseKind& kind) {
  const fs::path path = ResolvePath(given);
  HONE_ASSIGN_OR_RETURN(WriteLock lock, WriteLock::Acquire(path, kind.what, kind.advice_if_locked));
  HONE_RETURN_IF_ERROR(CreateSecret(path, kind));
  HONE_RETURN_IF_ERROR(CheckLog(path, kind));
  HONE_ASSIGN_OR_RETURN(Connection connection,
                        Connection::Open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "", kind.what));
  HONE_RETURN_IF_ERROR(PrepareToWrite(connection, path, kind));
  return Writer{std::move(lock), std::move(connection)};
}

absl::Status CheckpointLog(const fs::path& path, const DatabaseKind& kind) {
  const auto connection = Connection::Open(path, SQLITE_OPEN_READWRITE, "", kind.what);
  if (!connection.ok()) return absl::OkStatus();
  const auto blocked = connection->QueryInt("PRAGMA wal_checkpoint(TRUNCATE)");
  if (!blocked.ok() || *blocked == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("another program is reading the {} {}; end it, and try again", kind.what, path.string()));
}

absl::StatusOr<Connection> OpenToCopy(const fs::path& path, const DatabaseKind& kind, std::string_view uri_parameters) {
  HONE_ASSIGN_OR_RETURN(Connection connection, Connection::Open(path, SQLITE_OPEN_READONLY, uri_parameters, kind.what));
  HONE_RETURN_IF_ERROR(ConfigureCommon(connection));
  HONE_RETURN_IF_ERROR(connection.Configure(SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
  HONE_RETURN_IF_ERROR(connection.Execute("PRAGMA wal_autocheckpoint = 0; PRAGMA query_only = ON"));
  HONE_RETURN_IF_ERROR(CheckOwner(connection, path, kind));
  return connection;
}

absl::StatusOr<Connection> OpenToRead(const fs::path& path, const DatabaseKind& kind, std::string_view uri_parameters) {
  HONE_ASSIGN_OR_RETURN(Connection connection, OpenToCopy(path, kind, uri_parameters));
  HONE_RETURN_IF_ERROR(RequireCurrent(connection, path, kind));
  return connection;
}

}  // namespace hone::storage
