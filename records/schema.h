// The tables of a records file, how an older file becomes a current one, and the query that defines "best".
//
// docs/RECORDS.md describes the schema for people; schema.cc holds the SQL. A migration that has been released is never
// edited: add the next one. Start at Migrate.
#ifndef HONE_RECORDS_SCHEMA_H_
#define HONE_RECORDS_SCHEMA_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "records/sqlite.h"

namespace hone::records {

inline constexpr int64_t kApplicationId = 0x484F4E45;  // "HONE": what file(1) and we recognize the file by
inline constexpr int64_t kSchemaVersion = 1;

// kFailedPrecondition where the database belongs to another program or to a newer Hone; a file with nothing in it is
// ours.
absl::Status CheckOwner(const Connection& connection, const std::filesystem::path& path);

// Brings the database up to kSchemaVersion, each step in a transaction of its own: a crash leaves a valid older one.
// Fails as CheckOwner does.
absl::Status Migrate(const Connection& connection, const std::filesystem::path& path);

// For a reader, which may not migrate: CheckOwner, and the schema must be current (kNotFound for an empty file).
absl::Status RequireCurrent(const Connection& connection, const std::filesystem::path& path);

// The winner of each key among the rows of `records r` that satisfy `condition`. The condition may speak of key columns
// only: workload_id, target, device, compiler. Columns: record_id, workload_id, target, device, compiler,
// median_seconds, records (rows under the key). The view `best` is this with the condition TRUE.
std::string WinnerSql(std::string_view condition);

}  // namespace hone::records

#endif  // HONE_RECORDS_SCHEMA_H_
