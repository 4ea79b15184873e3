// SPDX-License-Identifier: Apache-2.0
// Opens Hone's SQLite files: checks that a file is ours, upgrades its tables, closes secret files to other users, and
// configures every connection.
//
// A file has at most one writing connection on the whole machine, and only that one moves the write-ahead log into the
// file: two at once can corrupt it in SQLite before 3.51.3 (docs/decisions/0129). A lock beside the file keeps other
// processes from writing; connections that read never move the log. A committed transaction is on the disk. Not here:
// any table. Start at OpenToWrite.
#ifndef HONE_STORAGE_SQLITE_DATABASE_H_
#define HONE_STORAGE_SQLITE_DATABASE_H_

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/write_lock.h"

namespace hone::storage {

// One kind of file. The texts stand in error messages.
struct DatabaseKind {
  std::string_view what;              // "records file"
  std::string_view advice_if_locked;  // what to do if another process writes it
  std::string_view advice_if_newer;   // what to do, besides using the version of Hone that wrote it
  int64_t application_id;             // in the file's header: what file(1) and we recognize it by
  int64_t version;                    // of today's tables; `PRAGMA user_version` in the file
  // A table that identifies files written before this kind had an application_id. Empty: there are no such files.
  std::string_view unmarked_table;
  // Upgrades the tables from `version` to a later version, and returns that version. Version 0 is an empty file or an
  // unmarked one. Runs in a transaction. The step from a released version is never edited.
  absl::StatusOr<int64_t> (*upgrade)(const Connection& connection, int64_t version);
  bool secret = false;  // other users of the machine must not read it
};

// kFailedPrecondition if the database belongs to another program or to a newer Hone. An empty file is ours.
absl::Status CheckOwner(const Connection& connection, const std::filesystem::path& path, const DatabaseKind& kind);

// Brings the database up to `version`, which tests may choose below kind.version, in one transaction: a crash leaves it
// as it was. Tables that are newer than `version` stay. Fails as CheckOwner does.
absl::Status Migrate(const Connection& connection, const std::filesystem::path& path, const DatabaseKind& kind,
                     int64_t version);

// Whether the effective user, whose rights open() uses, may access the file. mode: as for access(2).
bool CanAccess(const std::filesystem::path& path, int mode);

// For connections that read and so cannot migrate: CheckOwner, and the schema must be current. kFailedPrecondition: an
// older schema. kNotFound: an empty file.
absl::Status RequireCurrent(const Connection& connection, const std::filesystem::path& path, const DatabaseKind& kind);

// Reads the whole file. kDataLoss with SQLite's finding if it is damaged. pragma: such as "PRAGMA integrity_check(1)".
absl::Status RunCheck(const Connection& connection, std::string_view pragma);
// A quick check of files up to 64 MiB, which takes a fraction of a second. Larger files are not read.
absl::Status CheckSmallFile(const Connection& connection, const std::filesystem::path& path);

// Both of these do nothing if the kind is not secret.
// Creates a missing file, empty and closed to other users. SQLite would create it readable for all.
absl::Status CreateSecret(const std::filesystem::path& path, const DatabaseKind& kind);
// Takes all rights of other users from the file, if it exists, and from its log. kPermissionDenied.
absl::Status RestrictToOwner(const std::filesystem::path& path, const DatabaseKind& kind);

// The only connection that writes a file, and the lock that entitles it. The lock is released last.
struct Writer {
  WriteLock lock;
  Connection connection;
};

// Creates the file if it is missing (its folder must exist), closes a secret file to others, checks a small file, and
// upgrades the tables. A link is followed, so that a file has one lock whatever name it is opened by. Errors as
// records/store.h lists them.
absl::StatusOr<Writer> OpenToWrite(const std::filesystem::path& path, const DatabaseKind& kind);

// Moves the write-ahead log into the file. The caller holds the file's lock and has no connection to it. A file that is
// missing or cannot be read is no error. kFailedPrecondition: another program is reading the file.
absl::Status CheckpointLog(const std::filesystem::path& path, const DatabaseKind& kind);

// A connection that only reads and never moves the log; uri_parameters as for Connection::Open. One thread at a time.
// OpenToCopy opens a file of any version up to the current one, OpenToRead only one of the current version.
absl::StatusOr<Connection> OpenToCopy(const std::filesystem::path& path, const DatabaseKind& kind,
                                      std::string_view uri_parameters);
absl::StatusOr<Connection> OpenToRead(const std::filesystem::path& path, const DatabaseKind& kind,
                                      std::string_view uri_parameters);

}  // namespace hone::storage

#endif  // HONE_STORAGE_SQLITE_DATABASE_H_
