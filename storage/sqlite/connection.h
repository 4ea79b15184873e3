// SPDX-License-Identifier: Apache-2.0
// Owning wrappers of SQLite's C interface: a connection, a prepared statement, a transaction, errors as Status.
//
// It has only what the stores beside it need, and no SQL. Every error says what was being done, on which file, and what
// to do about it. Not thread-safe: the owner guards it. database.h opens Hone's files. Only storage/sqlite and tests
// may include this header. Start at Connection::Open.
#ifndef HONE_STORAGE_SQLITE_CONNECTION_H_
#define HONE_STORAGE_SQLITE_CONNECTION_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace hone::storage {

class Connection;

// A prepared statement. Parameters count from 1, columns from 0. An error of Bind is kept and returned by Step.
class Statement {
 public:
  void Bind(int index, std::string_view text);
  void BindBytes(int index, std::string_view bytes);  // as a BLOB
  void Bind(int index, int64_t value);
  void Bind(int index, double value);
  void Bind(int index, std::optional<double> value);  // NULL where empty
  void BindNull(int index);

  absl::StatusOr<bool> Step();  // true: a row is there to read; false: done
  absl::Status Run();           // steps to the end, ignoring rows; Reset must come before the next Bind
  void Reset();                 // ready to run again, all parameters NULL

  bool IsNull(int column) const;
  std::string Text(int column) const;   // a copy; empty for NULL
  std::string Bytes(int column) const;  // likewise, of a BLOB
  int64_t Int(int column) const;
  double Real(int column) const;
  std::optional<double> OptionalReal(int column) const;  // empty for NULL

 private:
  friend class Connection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(const Connection* connection, sqlite3_stmt* statement) : connection_(connection), statement_(statement) {}

  const Connection* connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bind_error_ = 0;
};

class Connection {
 public:
  // `flags` are SQLite's SQLITE_OPEN_*; `uri_parameters` ("immutable=1") may be empty. Opening reads nothing yet.
  // what: how errors call the file.
  static absl::StatusOr<Connection> Open(const std::filesystem::path& path, int flags, std::string_view uri_parameters,
                                         std::string_view what = "records file");

  absl::StatusOr<Statement> Prepare(std::string_view sql) const;
  absl::Status Execute(const std::string& sql) const;  // any number of statements, no results
  // Begins to read: from here on the connection sees the state of the file at this call, even if the file changes or is
  // deleted. Only for a connection that never writes.
  absl::Status HoldSnapshot();
  // The first column of the first row. kInternal: there is no row.
  absl::StatusOr<int64_t> QueryInt(std::string_view sql) const;
  absl::StatusOr<std::string> QueryText(std::string_view sql) const;
  int64_t Changes() const;  // rows changed by the last statement
  bool InTransaction() const;
  absl::Status Configure(int option, bool on) const;  // SQLITE_DBCONFIG_*

  // Copies the whole database, as of now, into `file`, which is created if it is missing. The contents of an existing
  // database are replaced. The copy is on the disk when this returns. Other connections may write to the source
  // meanwhile.
  absl::Status CopyTo(const std::filesystem::path& file) const;

  // The Status for SQLite's result code `code`.
  absl::Status Error(int code) const;
  // kDataLoss with SQLite's finding, and how to save the rest of the file.
  absl::Status Damaged(std::string_view finding) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  Connection(std::string what, std::string path, sqlite3* handle)
      : what_(std::move(what)), path_(std::move(path)), handle_(handle) {}
  std::string file() const { return what_ + " " + path_; }

  std::string what_, path_;
  std::unique_ptr<sqlite3, Close> handle_;
  bool holds_snapshot_ = false;
  friend class Transaction;
};

// Begins a transaction. Destroyed before Commit, it rolls back.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(const Connection& connection);  // to write
  // Several queries see one state. Does nothing if the connection holds a snapshot.
  static absl::StatusOr<Transaction> BeginRead(const Connection& connection);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  absl::Status Commit();

 private:
  explicit Transaction(const Connection* connection) : connection_(connection) {}

  const Connection* connection_;  // null once committed or moved from
};

// Whether the error concerns one row that breaks a constraint, and not the file.
bool IsConstraintError(const absl::Status& status);

}  // namespace hone::storage

#endif  // HONE_STORAGE_SQLITE_CONNECTION_H_
