// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/record_schema.h"

#include <algorithm>
#include <type_traits>

#include "base/status.h"
#include "fmt/format.h"
#include "records/columns.h"
#include "records/winner.h"

namespace hone::storage {
namespace {

using records::Column;
using records::kColumns;
using records::Key;
using records::Range;
using records::Record;
using records::RulesOutSchedule;
using records::Storage;

constexpr int64_t kFirstVersion = 2;  // the first version with the tables below; version 1 had all texts in every row

constexpr char kWorkloads[] = R"sql(
CREATE TABLE IF NOT EXISTS workloads (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE CHECK (digest <> ''),
  operator TEXT NOT NULL,
  flops REAL NOT NULL CHECK (flops >= 0),
  text TEXT NOT NULL CHECK (text <> '')
) STRICT;
)sql";

// Texts that many rows share. A device fingerprint has hundreds of bytes, so a row has only the number of its text.
constexpr char kTexts[] = R"sql(
CREATE TABLE texts (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;
)sql";

// The kinds that the schema version has and for which `wanted` is true, as SQL: "'crashed', 'wrong_output'".
template <typename Wanted>
std::string KindsSql(int64_t version, Wanted wanted) {
  std::string kinds;
  for (const FailureKindRow& row : kFailureKindRows) {
    if (row.since_schema > version || !wanted(row.kind)) continue;
    kinds += fmt::format("{}'{}'", kinds.empty() ? "" : ", ", row.name);
  }
  return kinds;
}

template <typename Value>
constexpr bool kIsOptional = std::is_same_v<Value, std::optional<double>>;

// The SQL type and CHECK of a column of measurements. Repeats are stored as JSON text, so that every repeat is kept and
// plain SQL reads them with json_each. Their CHECK is a pattern, because SQLite 3.40 does not trust its JSON functions
// in a schema.
template <typename Value>
std::string TypeSql(const Column& column, int64_t version) {
  const std::string_view name = column.name;
  if constexpr (std::is_same_v<Value, FailureKind>) {
    return fmt::format("TEXT CHECK ({} IN ({}))", name, KindsSql(version, [](FailureKind) { return true; }));
  } else if constexpr (std::is_same_v<Value, std::vector<double>>) {
    return fmt::format("TEXT CHECK ({} GLOB '[[][0-9]*]')", name);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return column.range == Range::kNotEmpty ? fmt::format("TEXT CHECK ({} <> '')", name) : "TEXT";
  } else if constexpr (std::is_same_v<Value, bool>) {
    return fmt::format("INTEGER CHECK ({} IN (0, 1))", name);
  } else {
    const bool real = std::is_same_v<Value, double> || kIsOptional<Value>;
    const std::string_view type = real ? "REAL" : "INTEGER";
    if (column.range == Range::kPositive) return fmt::format("{} CHECK ({} > 0)", type, name);
    if (column.range == Range::kNotNegative) return fmt::format("{} CHECK ({} >= 0)", type, name);
    return std::string(type);
  }
}

// The definition of a column in CREATE TABLE or ADD COLUMN. A column may be NULL if only one kind of outcome has it, or
// if it was added to a table that had rows already.
std::string DefinitionSql(const Column& column, int64_t version) {
  const auto define = [&]<typename Value, typename Part>(Value Part::*) {
    const bool always = std::is_same_v<Part, Record> || std::is_same_v<Part, Key>;
    const char* null = always && column.since == kFirstVersion ? " NOT NULL" : "";
    if (column.storage == Storage::kText) {
      return fmt::format("{}_id INTEGER{} REFERENCES texts (id)", column.name, null);
    }
    return fmt::format("{} {}{}", column.name, TypeSql<Value>(column, version), null);
  };
  return std::visit(define, column.member);
}

bool InMeasurements(const Column& column) { return column.storage != Storage::kWorkload; }

std::string MeasurementsTable(int64_t version) {
  std::string columns;
  for (const Column& column : kColumns) {
    if (column.since > version || !InMeasurements(column)) continue;
    columns += fmt::format("  {},\n", DefinitionSql(column, version));
  }
  return fmt::format(R"sql(
CREATE TABLE measurements (
  id INTEGER PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES workloads (id),
{}  median_seconds REAL CHECK (median_seconds > 0),
  CHECK ((failure IS NULL) = (seconds IS NOT NULL)),
  CHECK ((seconds IS NULL) = (median_seconds IS NULL)),
  CHECK ((failure IS NULL) = (failure_text IS NULL))
) STRICT;
)sql",
                     columns);
}

// The first version with the column `model`, and its index.
constexpr int64_t kModelVersion = 7;
constexpr char kModelIndex[] = "CREATE INDEX measurements_by_model ON measurements (model_id);\n";

std::string MeasurementsIndexes(int64_t version) {
  return (version < kModelVersion ? "" : kModelIndex) + fmt::format(R"sql(
CREATE UNIQUE INDEX measurements_once ON measurements (measurement);
CREATE INDEX measurements_by_key ON measurements (workload_id, target_id, device_id, compiler_id);
CREATE INDEX measurements_deciding ON measurements (workload_id, target_id, device_id, compiler_id) WHERE {};
CREATE INDEX measurements_by_failure ON measurements (failure) WHERE failure IS NOT NULL;
CREATE INDEX measurements_by_device ON measurements (device_id);
)sql",
                                                                    DecidingSql(version));
}

// The view `records`: measurements with their texts, for users.
std::string RecordsView(int64_t version) {
  std::string columns = "m.id, m.workload_id";
  for (const Column& column : kColumns) {
    if (column.since > version || column.name == "text") continue;
    columns += fmt::format(",\n  {} AS {}", ColumnSql(column), column.name);
  }
  return fmt::format("CREATE VIEW records AS\nSELECT {},\n  m.median_seconds\nFROM {};\n", columns, RowSource(version));
}

// Copies the rows of version 1, which had every text in every row, and a view `best`. Values that version 1 did not
// have become NULL or 0.
std::string CopyOfVersion1() {
  return R"sql(
INSERT OR IGNORE INTO texts (text) SELECT DISTINCT target FROM records_1;
INSERT OR IGNORE INTO texts (text) SELECT DISTINCT device FROM records_1;
INSERT OR IGNORE INTO texts (text) SELECT DISTINCT compiler FROM records_1;
INSERT OR IGNORE INTO texts (text) SELECT DISTINCT measured_by FROM records_1;
INSERT OR IGNORE INTO texts (text) VALUES ('');
INSERT INTO measurements (id, workload_id, measurement, batch, target_id, device_id, compiler_id, schedule, decisions,
  is_default, seconds, first_interleaved, calls_per_repeat, confirmed, verified, tolerance, reference_seconds,
  temperature_celsius, clock_hertz, failure, failure_text, environment_id, measured_by_id, measured_at_ms, seed,
  median_seconds)
SELECT r.id, r.workload_id, r.measurement, r.batch, t.id, d.id, c.id, r.schedule, r.decisions,
  0, r.seconds, iif(r.failure IS NULL, 0, NULL), iif(r.failure IS NULL, 0, NULL),
  iif(r.failure IS NULL, r.confirmed, NULL), iif(r.failure IS NULL, r.verified, NULL), r.tolerance, r.reference_seconds,
  r.temperature_celsius, r.clock_hertz, r.failure, r.failure_text, e.id, b.id, r.measured_at_ms, r.seed,
  r.median_seconds
FROM records_1 r JOIN texts t ON t.text = r.target JOIN texts d ON d.text = r.device
  JOIN texts c ON c.text = r.compiler JOIN texts b ON b.text = r.measured_by JOIN texts e ON e.text = '';
DROP TABLE records_1;
)sql";
}

std::string FirstTables(int64_t from) {
  const std::string tables =
      std::string(kWorkloads) + kTexts + MeasurementsTable(kFirstVersion) + MeasurementsIndexes(kFirstVersion);
  if (from == 0) return tables;
  return "DROP VIEW best;\nALTER TABLE records RENAME TO records_1;\n" + tables + CopyOfVersion1();
}

// The SQL that admits the version's new kinds of failure. SQLite cannot change a CHECK, so the table is made again with
// all its rows. The index of deciding rows also names kinds, so the indexes are made again, too.
std::string NewKinds(int64_t version) {
  std::string columns = "id, workload_id, median_seconds";
  for (const Column& column : kColumns) {
    if (column.since > version || !InMeasurements(column)) continue;
    columns += fmt::format(", {}{}", column.name, column.storage == Storage::kText ? "_id" : "");
  }
  return "ALTER TABLE measurements RENAME TO measurements_old;\n" + MeasurementsTable(version) +
         fmt::format("INSERT INTO measurements ({0}) SELECT {0} FROM measurements_old;\n", columns) +
         "DROP TABLE measurements_old;\n" + MeasurementsIndexes(version);
}

std::string Additions(int64_t version) {
  std::string sql = "DROP VIEW records;\n";
  for (const Column& column : kColumns) {
    if (column.since != version) continue;
    sql += fmt::format("ALTER TABLE measurements ADD COLUMN {};\n", DefinitionSql(column, version));
  }
  if (std::ranges::any_of(kFailureKindRows, [&](const FailureKindRow& row) { return row.since_schema == version; }))
    sql += NewKinds(version);
  else if (version == kModelVersion)
    sql += kModelIndex;
  return sql;
}

absl::StatusOr<int64_t> Upgrade(const Connection& connection, int64_t from) {
  const int64_t version = std::max(from + 1, kFirstVersion);
  const std::string tables = version == kFirstVersion ? FirstTables(from) : Additions(version);
  HONE_RETURN_IF_ERROR(connection.Execute(tables + RecordsView(version)));
  return version;
}

}  // namespace

constinit const DatabaseKind kRecordsFile = {
    .what = "records file",
    .advice_if_locked =
        "wait until it ends, use another --records file, or send the work to its tracker with --tracker HOST:PORT",
    .advice_if_newer = "export the records with that version's `hone records export`",
    .application_id = kApplicationId,
    .version = kSchemaVersion,
    .unmarked_table = "",
    .upgrade = Upgrade,
};

std::string ColumnSql(const Column& column) {
  switch (column.storage) {
    case Storage::kRow:
      return fmt::format("m.{}", column.name);
    case Storage::kText:
      return fmt::format("{}.text", column.name);
    case Storage::kWorkload:
      return fmt::format("w.{}", column.name);
  }
  HONE_CHECK(!"a column that is nowhere");
  return {};
}

// The joins are LEFT JOINs, because a row that is older than a text column has no number of a text in it.
std::string RowSource(int64_t version) {
  std::string source = "measurements m LEFT JOIN workloads w ON w.id = m.workload_id";
  for (const Column& column : kColumns) {
    if (column.storage != Storage::kText || column.since > version) continue;
    source += fmt::format("\n  LEFT JOIN texts {0} ON {0}.id = m.{0}_id", column.name);
  }
  return source;
}

std::string DecidingSql(int64_t version) {
  return fmt::format("(confirmed = 1 OR failure IN ({}))", KindsSql(version, RulesOutSchedule));
}

}  // namespace hone::storage
