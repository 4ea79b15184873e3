// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/connection.h"

#include <sqlite3.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/cord.h"
#include "base/shell_word.h"
#include "base/status.h"
#include "fmt/format.h"

namespace hone::storage {
namespace {

constexpr char kConstraintMark[] = "hone.records/constraint";

absl::Status ConstraintError(const std::string& text) {
  absl::Status status = absl::InvalidArgumentError(fmt::format("the database rejects the row: {}", text));
  status.SetPayload(kConstraintMark, absl::Cord());
  return status;
}

// `file`: the kind of file and its path: "records file a.db". `system_error`: an errno; 0: not known.
absl::Status DiskError(const std::string& file, int system_error, const char* text) {
  if (system_error == ENOSPC || system_error == EDQUOT) {
    return absl::ResourceExhaustedError(fmt::format(
        "no space left on the disk of {} ({}); free some space and try again; everything stored before is safe", file,
        std::strerror(system_error)));
  }
  const char* reason = system_error != 0 ? std::strerror(system_error) : text;
  return absl::UnavailableError(
      fmt::format("the disk of {} failed ({}); try again, and check the disk if it fails again", file, reason));
}

absl::Status CannotOpen(const std::string& file, const std::string& path, int system_error) {
  std::error_code error;
  const bool missing = system_error == ENOENT;
  if (missing && !std::filesystem::exists(path, error)) return absl::NotFoundError(fmt::format("there is no {}", file));
  if (missing) {
    return absl::PermissionDeniedError(
        fmt::format("cannot read the log of {}, because {}-shm is missing and cannot be created in its folder; copy {} "
                    "and {}-wal to a writable folder",
                    file, path, path, path));
  }
  return absl::PermissionDeniedError(fmt::format(
      "cannot open {} or the -wal and -shm files beside it ({}); check the permissions of the file and its folder",
      file, system_error != 0 ? std::strerror(system_error) : "SQLite gives no reason"));
}

// The file name as an SQLite URI without parameters.
std::string UriPath(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '?' || c == '#' || c == '%') {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return uri;
}

}  // namespace

bool IsConstraintError(const absl::Status& status) { return status.GetPayload(kConstraintMark).has_value(); }

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::Bind(int index, std::string_view text) {
  // A null data pointer would bind NULL: an empty view must still be an empty string.
  const char* data = text.data() != nullptr ? text.data() : "";
  const int code = sqlite3_bind_text64(statement_.get(), index, data, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (bind_error_ == SQLITE_OK) bind_error_ = code;
}

void Statement::BindBytes(int index, std::string_view bytes) {
  const char* data = bytes.data() != nullptr ? bytes.data() : "";
  const int code = sqlite3_bind_blob64(statement_.get(), index, data, bytes.size(), SQLITE_TRANSIENT);
  if (bind_error_ == SQLITE_OK) bind_error_ = code;
}

void Statement::Bind(int index, int64_t value) {
  const int code = sqlite3_bind_int64(statement_.get(), index, value);
  if (bind_error_ == SQLITE_OK) bind_error_ = code;
}

void Statement::Bind(int index, double value) {
  const int code = sqlite3_bind_double(statement_.get(), index, value);
  if (bind_error_ == SQLITE_OK) bind_error_ = code;
}

void Statement::Bind(int index, std::optional<double> value) {
  if (value.has_value()) {
    Bind(index, *value);
  } else {
    BindNull(index);
  }
}

void Statement::BindNull(int index) {
  const int code = sqlite3_bind_null(statement_.get(), index);
  if (bind_error_ == SQLITE_OK) bind_error_ = code;
}

absl::StatusOr<bool> Statement::Step() {
  if (bind_error_ != SQLITE_OK) return connection_->Error(bind_error_);
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return connection_->Error(code);
}

absl::Status Statement::Run() {
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, Step());
    if (!row) return absl::OkStatus();
  }
}

void Statement::Reset() {
  sqlite3_reset(statement_.get());  // its code repeats the error that Step has returned already
  sqlite3_clear_bindings(statement_.get());
  bind_error_ = SQLITE_OK;
}

bool Statement::IsNull(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

std::string Statement::Text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  if (text == nullptr) return {};
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return std::string(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
}

std::string Statement::Bytes(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  if (bytes == nullptr) return {};
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return std::string(static_cast<const char*>(bytes), static_cast<size_t>(size));
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::Real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::optional<double> Statement::OptionalReal(int column) const {
  if (IsNull(column)) return std::nullopt;
  return Real(column);
}

void Connection::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

absl::StatusOr<Connection> Connection::Open(const std::filesystem::path& path, int flags,
                                            std::string_view uri_parameters, std::string_view what) {
  const std::string name = path.string();
  std::string opened = name;
  if (!uri_parameters.empty()) {
    opened = fmt::format("{}?{}", UriPath(name), uri_parameters);
    flags |= SQLITE_OPEN_URI;
  }
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(opened.c_str(), &handle, flags | SQLITE_OPEN_EXRESCODE, nullptr);
  if (handle == nullptr) return absl::ResourceExhaustedError("out of memory while opening " + name);
  Connection connection(std::string(what), name, handle);
  if (code != SQLITE_OK) return connection.Error(code);
  return connection;
}

absl::StatusOr<Statement> Connection::Prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()), &statement, /*pzTail=*/nullptr);
  if (code != SQLITE_OK) return Error(code);
  return Statement(this, statement);
}

absl::Status Connection::Execute(const std::string& sql) const {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::StatusOr<int64_t> Connection::QueryInt(std::string_view sql) const {
  HONE_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  HONE_ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return absl::InternalError(fmt::format("no row from: {}", sql));
  return statement.Int(0);
}

absl::StatusOr<std::string> Connection::QueryText(std::string_view sql) const {
  HONE_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  HONE_ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return absl::InternalError(fmt::format("no row from: {}", sql));
  return statement.Text(0);
}

absl::Status Connection::HoldSnapshot() {
  HONE_RETURN_IF_ERROR(Execute("BEGIN; SELECT count(*) FROM sqlite_schema"));  // the first read decides the state
  holds_snapshot_ = true;
  return absl::OkStatus();
}

int64_t Connection::Changes() const { return sqlite3_changes64(handle_.get()); }
bool Connection::InTransaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }

absl::Status Connection::Configure(int option, bool on) const {
  const int code = sqlite3_db_config(handle_.get(), option, on ? 1 : 0, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::Status Connection::CopyTo(const std::filesystem::path& file) const {
  HONE_ASSIGN_OR_RETURN(const Connection to, Open(file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "", what_));
  HONE_RETURN_IF_ERROR(to.Execute("PRAGMA synchronous = FULL"));
  sqlite3_backup* backup = sqlite3_backup_init(to.handle_.get(), "main", handle_.get(), "main");
  if (backup == nullptr) return to.Error(sqlite3_errcode(to.handle_.get()));
  // One step copies all pages. With several steps, a write to the source in between would start the copy again.
  const int stepped = sqlite3_backup_step(backup, -1);
  const int finished = sqlite3_backup_finish(backup);
  if (finished != SQLITE_OK) return to.Error(finished);
  if (stepped != SQLITE_DONE) return to.Error(stepped);
  return to.Execute("PRAGMA journal_mode = DELETE");  // the copy has the source's mode WAL, but must be a single file
}

// The advice uses `.dump`, because Debian's sqlite3 is built without `.recover`. A dump lacks application_id and
// user_version, by which Hone recognizes its files, so the advice adds them.
absl::Status Connection::Damaged(std::string_view finding) const {
  return absl::DataLossError(fmt::format(
      "{0} is damaged ({1}); restore a backup, or save what can be read with: (sqlite3 {2} \"SELECT 'PRAGMA "
      "application_id='||application_id||';PRAGMA user_version='||user_version||';' FROM pragma_application_id, "
      "pragma_user_version\"; sqlite3 {2} .dump | sed 's/^ROLLBACK.*/COMMIT;/') | sqlite3 recovered.db",
      file(), finding, ShellWord(path_)));
}

absl::Status Connection::Error(int code) const {
  const char* text = sqlite3_errmsg(handle_.get());
  switch (code & 0xff) {
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
      return ConstraintError(text);
    case SQLITE_FULL:
      return DiskError(file(), ENOSPC, text);
    case SQLITE_IOERR:
      return DiskError(file(), sqlite3_system_errno(handle_.get()), text);
    case SQLITE_CANTOPEN:
      return CannotOpen(file(), path_, sqlite3_system_errno(handle_.get()));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return absl::UnavailableError(
          fmt::format("{} is locked by another program ({}); end that program and try again", file(), text));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::PermissionDeniedError(
          fmt::format("{} or its folder cannot be written ({}); check the permissions of both", file(), text));
    case SQLITE_NOTADB:
      return absl::FailedPreconditionError(
          fmt::format("{} is not a {} (not an SQLite database); pass the path of one, or of a new file", path_, what_));
    case SQLITE_CORRUPT:
      return Damaged(text);
    case SQLITE_NOMEM:
      return absl::ResourceExhaustedError(fmt::format("out of memory while using {}", file()));
    default:
      return absl::InternalError(fmt::format("{}: {} (SQLite code {})", file(), text, code));
  }
}

absl::StatusOr<Transaction> Transaction::Begin(const Connection& connection) {
  HONE_RETURN_IF_ERROR(connection.Execute("BEGIN IMMEDIATE"));
  return Transaction(&connection);
}

absl::StatusOr<Transaction> Transaction::BeginRead(const Connection& connection) {
  if (connection.holds_snapshot_) return Transaction(nullptr);
  HONE_RETURN_IF_ERROR(connection.Execute("BEGIN"));
  return Transaction(&connection);
}

Transaction::Transaction(Transaction&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}

Transaction::~Transaction() {
  // After a disk error SQLite may have rolled back by itself, so there is nothing to undo. If ROLLBACK fails, the
  // transaction stays open, and the next BEGIN reports it.
  if (connection_ != nullptr && connection_->InTransaction()) (void)connection_->Execute("ROLLBACK");
}

absl::Status Transaction::Commit() {
  HONE_RETURN_IF_ERROR(connection_->Execute("COMMIT"));
  connection_ = nullptr;
  return absl::OkStatus();
}

}  // namespace hone::storage
