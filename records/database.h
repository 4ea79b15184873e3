// SPDX-License-Identifier: Apache-2.0
// The SQLite files of ours, and how each is opened: whose a file is, which version its tables have and how they become
// those of today, who else may read it, and what is set on every connection.
//
// A file has at most one connection that writes it, on the whole machine, and only that one moves its write-ahead log
// into it: two that do so at once can corrupt it in SQLite before 3.51.3 (docs/decisions/0129). A lock beside the file
// keeps out other processes; readers are set so that they never do. What is committed is on the disk. Not here: any
// table. Start at OpenToWrite.
#ifndef HONE_RECORDS_DATABASE_H_
#define HONE_RECORDS_DATABASE_H_

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "records/sqlite.h"
#include "records/write_lock.h"

namespace hone::records {

// One kind of file. Texts are for errors.
struct DatabaseKind {
  std::string_view what;        // "records file"
  std::string_view when_held;   // what to do where another process writes it
  std::string_view when_newer;  // what to do, beside using the version of Hone that wrote it
  int64_t application_id;       // in the file's header: what file(1) and we recognize it by
  int64_t version;              // of today's tables; `PRAGMA user_version` in the file
  // The table by which a file is known that was written before its kind had an application_id. Empty: there are none.
  std::string_view unmarked_table;
  // Brings tables of `version` to a later one and says which; 0 is a file without any, or an unmarked one. Runs in a
  // transaction. What is in files of people is never edited.
  absl::StatusOr<int64_t> (*upgrade)(const Connection& connection, int64_t version);
  bool secret = false;  // other users of the machine must not read it
};

// kFailedPrecondition where the database belongs to another program or to a newer Hone; a file with nothing in it is
// ours.
absl::Status CheckOwner(const Connection& connection, const std::filesystem::path& path, const DatabaseKind& kind);

// Brings the database up to `version` in one transaction: a crash leaves it as it was. Fails as CheckOwner does.
absl::Status Migrate(const Connection& connection, const std::filesystem::path& path, const DatabaseKind& kind,
                     int64_t version);

// access(2) for the effective user, whose rights open() will use.
bool May(const std::filesystem::path& path, int mode);

// For a reader, which may not migrate: CheckOwner, and the schema must be current (kNotFound for an empty file).
absl::Status RequireCurrent(const Connection& connection, const std::filesystem::path& path, const DatabaseKind& kind);

// Reads the file: kDataLoss with SQLite's finding if it is damaged. pragma: "PRAGMA integrity_check(1)".
absl::Status RunCheck(const Connection& connection, std::string_view pragma);
// Does so where the file is small enough for it to take no time.
absl::Status CheckIfSmall(const Connection& connection, const std::filesystem::path& path);

// Both do nothing where the kind is no secret.
// Makes the file, empty, where it is missing: SQLite lets everybody read what it makes.
absl::Status CreateSecret(const std::filesystem::path& path, const DatabaseKind& kind);
// Takes the rights of other users from the file, where there is one, and from its log. kPermissionDenied.
absl::Status CloseToOthers(const std::filesystem::path& path, const DatabaseKind& kind);

// The one connection of a file that writes it, and the right to: declared first, held longest.
struct Writer {
  WriteLock lock;
  Connection connection;
};

// Makes the file where missing (its folder must be there) and brings its tables up to date. CheckIfSmall. What is a
// secret is closed to others. A link is followed, so that a file has one lock by whatever name it is opened.
// Errors as Store's.
absl::StatusOr<Writer> OpenToWrite(const std::filesystem::path& path, const DatabaseKind& kind);

// Moves what the file's log has into the file, for whoever holds its lock and is not connected to it. That the file is
// missing or cannot be read is no error. kFailedPrecondition: another program is reading it.
absl::Status EmptyLog(const std::filesystem::path& path, const DatabaseKind& kind);

// A connection that only reads, and never moves the log; uri_parameters as for Connection::Open. For one thread at a
// time. Of any version; OpenToRead also requires that of today.
absl::StatusOr<Connection> OpenToCopy(const std::filesystem::path& path, const DatabaseKind& kind,
                                      std::string_view uri_parameters);
absl::StatusOr<Connection> OpenToRead(const std::filesystem::path& path, const DatabaseKind& kind,
                                      std::string_view uri_parameters);

}  // namespace hone::records

#endif  // HONE_RECORDS_DATABASE_H_
