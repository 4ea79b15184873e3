#include "records/row.h"

#include <utility>

#include "base/status.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace hone::records {
namespace {

using nlohmann::json;

constexpr size_t kFailureTextLimit = 16 * 1024;

constexpr char kInsert[] = R"sql(
INSERT INTO records (measurement, batch, workload_id, target, device, compiler, schedule, decisions,
  temperature_celsius, clock_hertz, measured_by, measured_at_ms, seed, seconds, median_seconds,
  confirmed, verified, tolerance, reference_seconds, failure, failure_text)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)
ON CONFLICT (measurement) DO NOTHING
)sql";

absl::Status BadRow(int64_t row, std::string_view what) {
  return absl::DataLossError(
      fmt::format("row {} of the records is not readable: {}; it was written by another program", row, what));
}

absl::StatusOr<std::vector<double>> ParseSeconds(int64_t row, const std::string& text) {
  const json array = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!array.is_array() || array.empty()) return BadRow(row, "the repeats are not a list");
  std::vector<double> seconds;
  for (const json& value : array) {
    if (!value.is_number()) return BadRow(row, "a repeat is not a number");
    seconds.push_back(value.get<double>());
  }
  return seconds;
}

}  // namespace

const std::string_view kRowColumns =
    "r.id, w.digest, r.target, r.device, r.compiler, r.measurement, r.batch, r.schedule, r.decisions, w.operator, "
    "w.flops, r.temperature_celsius, r.clock_hertz, r.measured_by, r.measured_at_ms, r.seed, r.seconds, r.confirmed, "
    "r.verified, r.tolerance, r.reference_seconds, r.failure, r.failure_text";

absl::StatusOr<StoredRecord> ReadRow(const Statement& statement) {
  StoredRecord stored;
  int column = 0;
  stored.row = statement.Int(column++);
  Record& record = stored.record;
  for (std::string* text :
       {&record.key.workload_digest, &record.key.target, &record.key.device_fingerprint, &record.key.compiler_version,
        &record.measurement_id, &record.batch_id, &record.schedule, &record.decisions, &record.operator_label}) {
    *text = statement.Text(column++);
  }
  record.flops = statement.Real(column++);
  record.temperature_celsius = statement.OptionalReal(column++);
  record.clock_hertz = statement.OptionalReal(column++);
  record.measured_by = statement.Text(column++);
  record.measured_at = Instant(std::chrono::milliseconds(statement.Int(column++)));
  record.seed = static_cast<uint64_t>(statement.Int(column++));
  const int outcome = column;
  if (statement.IsNull(outcome)) {
    const std::string name = statement.Text(outcome + 5);
    const std::optional<FailureKind> kind = FailureKindFromName(name);
    if (!kind.has_value()) return BadRow(stored.row, fmt::format("failure kind '{}' is not known", name));
    record.outcome = Failure{*kind, statement.Text(outcome + 6)};
  } else {
    Timing timing;
    HONE_ASSIGN_OR_RETURN(timing.seconds, ParseSeconds(stored.row, statement.Text(outcome)));
    timing.confirmed = statement.Int(outcome + 1) != 0;
    timing.verified = statement.Int(outcome + 2) != 0;
    timing.tolerance = statement.OptionalReal(outcome + 3);
    timing.reference_seconds = statement.OptionalReal(outcome + 4);
    record.outcome = std::move(timing);
  }
  record.workload_text = statement.Text(kRowColumnCount - 1);
  return stored;
}

RowWriter::RowWriter(const Connection* connection, Statement seen, Statement add_workload, Statement find_workload,
                     Statement insert)
    : connection_(connection),
      seen_(std::move(seen)),
      add_workload_(std::move(add_workload)),
      find_workload_(std::move(find_workload)),
      insert_(std::move(insert)) {}

absl::StatusOr<RowWriter> RowWriter::Prepare(const Connection& connection) {
  HONE_ASSIGN_OR_RETURN(Statement seen, connection.Prepare("SELECT 1 FROM records WHERE measurement = ?1"));
  HONE_ASSIGN_OR_RETURN(Statement add_workload,
                        connection.Prepare("INSERT INTO workloads (digest, operator, flops, text) VALUES "
                                           "(?1, ?2, ?3, ?4) ON CONFLICT (digest) DO NOTHING"));
  HONE_ASSIGN_OR_RETURN(Statement find_workload,
                        connection.Prepare("SELECT id, ?2 = '' OR text = ?2 FROM workloads WHERE digest = ?1"));
  HONE_ASSIGN_OR_RETURN(Statement insert, connection.Prepare(kInsert));
  return RowWriter(&connection, std::move(seen), std::move(add_workload), std::move(find_workload), std::move(insert));
}

absl::StatusOr<int64_t> RowWriter::WorkloadId(const Record& record) {
  const std::string& digest = record.key.workload_digest;
  find_workload_.Reset();
  find_workload_.Bind(1, digest);
  find_workload_.Bind(2, record.workload_text);
  HONE_ASSIGN_OR_RETURN(bool found, find_workload_.Step());
  if (!found) {
    if (record.workload_text.empty()) {
      return absl::FailedPreconditionError(
          fmt::format("workload {} is not stored yet, and the record brings no workload text; send the text with the "
                      "first record of a workload",
                      digest));
    }
    add_workload_.Reset();
    add_workload_.Bind(1, digest);
    add_workload_.Bind(2, record.operator_label);
    add_workload_.Bind(3, record.flops);
    add_workload_.Bind(4, record.workload_text);
    HONE_RETURN_IF_ERROR(add_workload_.Run());
    find_workload_.Reset();
    find_workload_.Bind(1, digest);
    find_workload_.Bind(2, record.workload_text);
    HONE_ASSIGN_OR_RETURN(found, find_workload_.Step());
    HONE_CHECK(found);
  }
  const int64_t id = find_workload_.Int(0);
  const bool same_text = find_workload_.Int(1) != 0;
  find_workload_.Reset();
  if (!same_text) {
    return absl::FailedPreconditionError(fmt::format(
        "workload {} is stored with another text: one of the two digests was not made from its text", digest));
  }
  return id;
}

void RowWriter::BindOutcome(const Outcome& outcome) {
  if (const auto* timing = std::get_if<Timing>(&outcome)) {
    insert_.Bind(14, json(timing->seconds).dump());
    insert_.Bind(15, MedianSeconds(timing->seconds));
    insert_.Bind(16, int64_t{timing->confirmed});
    insert_.Bind(17, int64_t{timing->verified});
    insert_.Bind(18, timing->tolerance);
    insert_.Bind(19, timing->reference_seconds);
    return;  // the failure's columns stay NULL
  }
  const auto& failure = std::get<Failure>(outcome);
  insert_.Bind(16, int64_t{0});
  insert_.Bind(17, int64_t{0});
  insert_.Bind(20, FailureKindName(failure.kind));
  insert_.Bind(21, CleanText(failure.text, kFailureTextLimit));
}

absl::StatusOr<bool> RowWriter::Write(const Record& record) {
  seen_.Reset();
  seen_.Bind(1, record.measurement_id);
  HONE_ASSIGN_OR_RETURN(const bool seen, seen_.Step());
  seen_.Reset();
  if (seen) return false;
  HONE_ASSIGN_OR_RETURN(const int64_t workload, WorkloadId(record));
  insert_.Reset();
  insert_.Bind(1, record.measurement_id);
  insert_.Bind(2, record.batch_id);
  insert_.Bind(3, workload);
  insert_.Bind(4, record.key.target);
  insert_.Bind(5, record.key.device_fingerprint);
  insert_.Bind(6, record.key.compiler_version);
  insert_.Bind(7, record.schedule);
  insert_.Bind(8, record.decisions);
  insert_.Bind(9, record.temperature_celsius);
  insert_.Bind(10, record.clock_hertz);
  insert_.Bind(11, record.measured_by);
  insert_.Bind(12, int64_t{record.measured_at.time_since_epoch().count()});
  insert_.Bind(13, static_cast<int64_t>(record.seed));
  BindOutcome(record.outcome);
  HONE_RETURN_IF_ERROR(insert_.Run());
  const bool stored = connection_->Changes() == 1;
  insert_.Reset();
  return stored;
}

}  // namespace hone::records
