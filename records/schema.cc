#include "records/schema.h"

#include <array>

#include "base/status.h"
#include "fmt/format.h"

namespace hone::records {
namespace {

// The repeats are JSON text so that plain SQL reads them with json_each, and none is ever lost to a mean. Their CHECK
// is a pattern: SQLite 3.40 does not trust its JSON functions in a schema.
constexpr char kTables[] = R"sql(
CREATE TABLE workloads (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE CHECK (digest <> ''),
  operator TEXT NOT NULL,
  flops REAL NOT NULL CHECK (flops >= 0),
  text TEXT NOT NULL CHECK (text <> '')
) STRICT;

CREATE TABLE records (
  id INTEGER PRIMARY KEY,
  measurement TEXT NOT NULL UNIQUE CHECK (measurement <> ''),
  batch TEXT NOT NULL,
  workload_id INTEGER NOT NULL REFERENCES workloads (id),
  target TEXT NOT NULL CHECK (target <> ''),
  device TEXT NOT NULL CHECK (device <> ''),
  compiler TEXT NOT NULL CHECK (compiler <> ''),
  schedule TEXT NOT NULL,
  decisions TEXT NOT NULL,
  seconds TEXT CHECK (seconds GLOB '[[][0-9]*]'),
  median_seconds REAL CHECK (median_seconds > 0),
  confirmed INTEGER NOT NULL DEFAULT 0 CHECK (confirmed IN (0, 1)),
  verified INTEGER NOT NULL DEFAULT 0 CHECK (verified IN (0, 1)),
  tolerance REAL CHECK (tolerance >= 0),
  reference_seconds REAL CHECK (reference_seconds > 0),
  failure TEXT CHECK (failure IN ('schedule_illegal', 'compile_error', 'compile_timeout', 'crashed', 'run_timeout',
                                  'wrong_output', 'out_of_bounds_write', 'lost_device')),
  failure_text TEXT,
  temperature_celsius REAL,
  clock_hertz REAL CHECK (clock_hertz > 0),
  measured_by TEXT NOT NULL,
  measured_at_ms INTEGER NOT NULL CHECK (measured_at_ms >= 0),
  seed INTEGER NOT NULL,
  CHECK ((failure IS NULL) = (seconds IS NOT NULL)),
  CHECK ((seconds IS NULL) = (median_seconds IS NULL)),
  CHECK ((failure IS NULL) = (failure_text IS NULL)),
  CHECK (failure IS NULL OR (confirmed = 0 AND verified = 0))
) STRICT;

CREATE INDEX records_by_key ON records (workload_id, target, device, compiler);
CREATE INDEX records_by_failure ON records (failure) WHERE failure IS NOT NULL;
CREATE INDEX records_by_device ON records (device);
)sql";

// Of each schedule one row counts: its newest confirmed measurement, else its newest. A schedule that gave a wrong
// result since then is out. Among those left a confirmed one beats an unconfirmed one, then the median decides, then
// age. The newest, not the fastest, since a lucky measurement must not stand for ever against later ones.
constexpr char kWinner[] = R"sql(
WITH judged AS (
  SELECT r.id, r.workload_id, r.target, r.device, r.compiler, r.median_seconds, r.confirmed, r.measured_at_ms,
    r.verified,
    row_number() OVER (
      PARTITION BY r.workload_id, r.target, r.device, r.compiler, r.schedule
      ORDER BY r.verified DESC, r.confirmed DESC, r.measured_at_ms DESC, r.id DESC) AS nth,
    max(CASE WHEN r.failure IN ('wrong_output', 'out_of_bounds_write', 'crashed') THEN r.measured_at_ms END) OVER (
      PARTITION BY r.workload_id, r.target, r.device, r.compiler, r.schedule) AS last_wrong_ms,
    count(*) OVER (PARTITION BY r.workload_id, r.target, r.device, r.compiler) AS records
  FROM records r
  WHERE {condition}
), ranked AS (
  SELECT j.*,
    row_number() OVER (
      PARTITION BY j.workload_id, j.target, j.device, j.compiler
      ORDER BY j.confirmed DESC, j.median_seconds, j.id) AS place
  FROM judged j
  WHERE j.nth = 1 AND j.verified AND (j.last_wrong_ms IS NULL OR j.last_wrong_ms < j.measured_at_ms)
)
SELECT id AS record_id, workload_id, target, device, compiler, median_seconds, records FROM ranked WHERE place = 1
)sql";

std::string BestView() {
  return fmt::format(R"sql(
CREATE VIEW best AS
SELECT w.digest AS workload, w.operator, b.target, b.device, b.compiler, r.schedule, r.decisions,
  b.median_seconds * 1e3 AS median_ms, w.flops / b.median_seconds * 1e-9 AS gflops, r.confirmed, b.records,
  datetime(r.measured_at_ms / 1000, 'unixepoch') AS measured_at, b.record_id
FROM ({}) b
JOIN records r ON r.id = b.record_id
JOIN workloads w ON w.id = b.workload_id;
)sql",
                     WinnerSql("TRUE"));
}

// The step to version i + 1 stands at i.
std::array<std::string, kSchemaVersion> Migrations() {
  return {fmt::format("PRAGMA application_id = {};\n", kApplicationId) + kTables + BestView()};
}

struct Header {
  int64_t application_id = 0;
  int64_t version = 0;
  int64_t objects = 0;  // tables, indexes and views
  bool Fresh() const { return application_id == 0 && version == 0 && objects == 0; }
};

absl::StatusOr<Header> ReadHeader(const Connection& connection, const std::filesystem::path& path) {
  Header header;
  HONE_ASSIGN_OR_RETURN(header.application_id, connection.QueryInt("PRAGMA application_id"));
  HONE_ASSIGN_OR_RETURN(header.version, connection.QueryInt("PRAGMA user_version"));
  HONE_ASSIGN_OR_RETURN(header.objects, connection.QueryInt("SELECT count(*) FROM sqlite_schema"));
  if (!header.Fresh() && header.application_id != kApplicationId) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is an SQLite database of another program, not a records file; pass another path", path.string()));
  }
  if (header.version > kSchemaVersion) {
    return absl::FailedPreconditionError(
        fmt::format("records file {} was written by a newer Hone (schema {}, this one knows {}); use that version, or "
                    "carry the records over with its `hone records export`",
                    path.string(), header.version, kSchemaVersion));
  }
  return header;
}

}  // namespace

std::string WinnerSql(std::string_view condition) { return fmt::format(kWinner, fmt::arg("condition", condition)); }

absl::Status CheckOwner(const Connection& connection, const std::filesystem::path& path) {
  return ReadHeader(connection, path).status();
}

absl::Status Migrate(const Connection& connection, const std::filesystem::path& path) {
  HONE_ASSIGN_OR_RETURN(const Header header, ReadHeader(connection, path));
  const auto migrations = Migrations();
  for (int64_t version = header.version; version < kSchemaVersion; ++version) {
    HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection));
    HONE_RETURN_IF_ERROR(connection.Execute(migrations[static_cast<size_t>(version)]));
    HONE_RETURN_IF_ERROR(connection.Execute(fmt::format("PRAGMA user_version = {}", version + 1)));
    HONE_RETURN_IF_ERROR(transaction.Commit());
  }
  return absl::OkStatus();
}

absl::Status RequireCurrent(const Connection& connection, const std::filesystem::path& path) {
  HONE_ASSIGN_OR_RETURN(const Header header, ReadHeader(connection, path));
  if (header.Fresh()) {
    return absl::NotFoundError(
        fmt::format("records file {} is empty; `hone tune` or `hone records import` fills it", path.string()));
  }
  if (header.version < kSchemaVersion) {
    return absl::FailedPreconditionError(
        fmt::format("records file {} has an old schema ({}, this Hone wants {}); open it once for writing, for example "
                    "with: hone records import --records {} /dev/null",
                    path.string(), header.version, kSchemaVersion, path.string()));
  }
  return absl::OkStatus();
}

}  // namespace hone::records
