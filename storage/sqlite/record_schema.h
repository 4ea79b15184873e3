// SPDX-License-Identifier: Apache-2.0
// The tables of a records file as SQL, and how an older file becomes a current one.
//
// docs/RECORDS.md describes the schema for users. The columns come from kColumns (records/record.h), the kinds of
// failure from base/failure_kind.h. A column or kind that is added with `since` one above all others makes a new
// version of the schema. Tables of released versions are never edited. Start at kRecordsFile, by which database.h opens
// such files.
#ifndef HONE_STORAGE_SQLITE_RECORD_SCHEMA_H_
#define HONE_STORAGE_SQLITE_RECORD_SCHEMA_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "records/record.h"
#include "storage/sqlite/database.h"

namespace hone::storage {

inline constexpr int64_t kApplicationId = 0x484F4E45;  // "HONE"
inline constexpr int64_t kSchemaVersion = std::max(
    std::ranges::max(records::kColumns, {}, &records::Column::since).since, kFailureKindRows.back().since_schema);

extern const DatabaseKind kRecordsFile;

// The SQL after FROM: measurements as `m`, their workloads as `w`, and each shared text under the name of its column.
std::string RowSource(int64_t version = kSchemaVersion);
// The column in RowSource: "m.schedule", "device.text", "w.flops".
std::string ColumnSql(const records::Column& column);

// An SQL condition on `m`: confirmed rows, and failures that speak against a schedule. If one of them is confirmed,
// they alone decide the winner (records/winner.h). An index finds them.
std::string DecidingSql(int64_t version = kSchemaVersion);

}  // namespace hone::storage

#endif  // HONE_STORAGE_SQLITE_RECORD_SCHEMA_H_
