// SPDX-License-Identifier: Apache-2.0
// The tables of a records file as SQL, and how an older file becomes a current one.
//
// docs/RECORDS.md describes the schema for people. The columns come from kColumns (record.h) and the kinds of failure
// from failure.h: one that is added with `since` one above the others makes a new version of the schema. What is in
// files already is never edited. Start at kRecordsFile; database.h opens files by it.
#ifndef HONE_RECORDS_SCHEMA_H_
#define HONE_RECORDS_SCHEMA_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "records/database.h"
#include "records/record.h"

namespace hone::records {

inline constexpr int64_t kApplicationId = 0x484F4E45;  // "HONE"
inline constexpr int64_t kSchemaVersion =
    std::max(std::ranges::max(kColumns, {}, &Column::since).since, SinceSchema(kAllFailureKinds.back()));

extern const DatabaseKind kRecordsFile;

// Measurements as `m`, with their workloads as `w` and each interned text under the name of its column: what to put
// after FROM.
std::string RowSource(int64_t version = kSchemaVersion);
// The column in RowSource: "m.schedule", "device.text", "w.flops".
std::string ColumnSql(const Column& column);

// Which rows of `m` decide who wins where one of them is confirmed (winner.h); an index finds these.
std::string DecidingSql(int64_t version = kSchemaVersion);

}  // namespace hone::records

#endif  // HONE_RECORDS_SCHEMA_H_
