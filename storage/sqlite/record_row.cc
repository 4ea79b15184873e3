// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/record_row.h"

#include <span>
#include <utility>

#include "base/digest.h"
#include "base/median.h"
#include "base/status.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "records/columns.h"
#include "records/winner.h"
#include "storage/sqlite/record_schema.h"

namespace hone::storage {
namespace {

using records::CleanText;
using records::Column;
using records::DecidingRepeats;
using records::Failure;
using records::Instant;
using records::kColumns;
using records::PartOf;
using records::Record;
using records::Storage;
using records::StoredRecord;
using records::Timing;
using records::WithValue;

using nlohmann::json;

constexpr size_t kFailureTextLimit = 16 * 1024;

absl::Status BadRow(int64_t row, std::string_view what) {
  return absl::DataLossError(
      fmt::format("row {} of the records cannot be read: {}; another program wrote it", row, what));
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

// Reads one value of the statement's current row. `status` gets an error if the value cannot be read. NULL stands for
// an unknown value, as in rows that are older than their column, and reads as 0 or empty.
struct Reader {
  const Statement& statement;
  int64_t row;
  int column;
  absl::Status status;

  void operator()(std::string& value) { value = statement.Text(column); }
  void operator()(double& value) { value = statement.Real(column); }
  void operator()(std::optional<double>& value) { value = statement.OptionalReal(column); }
  void operator()(bool& value) { value = statement.Int(column) != 0; }
  void operator()(int64_t& value) { value = statement.Int(column); }
  void operator()(uint64_t& value) { value = static_cast<uint64_t>(statement.Int(column)); }
  void operator()(Instant& value) { value = Instant(std::chrono::milliseconds(statement.Int(column))); }
  void operator()(std::vector<double>& value) {
    absl::StatusOr<std::vector<double>> seconds = ParseSeconds(row, statement.Text(column));
    if (seconds.ok()) value = *std::move(seconds);
    status = seconds.status();
  }
  void operator()(FailureKind& value) {
    const std::string name = statement.Text(column);
    const std::optional<FailureKind> kind = FailureKindFromName(name);
    if (!kind.has_value()) status = BadRow(row, fmt::format("failure kind '{}' is not known", name));
    value = kind.value_or(value);
  }
};

// Binds one value to the parameter `index` of the INSERT statement.
struct Binder {
  Statement& statement;
  int index;
  const Column& column;

  void operator()(const std::string& value) {
    statement.Bind(index, PartOf<Failure>(column) ? CleanText(value, kFailureTextLimit) : value);
  }
  void operator()(double value) { statement.Bind(index, value); }
  void operator()(std::optional<double> value) { statement.Bind(index, value); }
  void operator()(bool value) { statement.Bind(index, int64_t{value}); }
  void operator()(int64_t value) { statement.Bind(index, value); }
  void operator()(uint64_t value) { statement.Bind(index, static_cast<int64_t>(value)); }
  void operator()(Instant value) { statement.Bind(index, int64_t{value.time_since_epoch().count()}); }
  void operator()(const std::vector<double>& value) { statement.Bind(index, json(value).dump()); }
  void operator()(FailureKind value) { statement.Bind(index, FailureKindName(value)); }
};

// The INSERT statement of a row. Its parameters are the workload's number, the median, and then the columns of
// measurements in the order of kColumns.
std::string InsertSql() {
  std::string names = "workload_id, median_seconds", parameters = "?, ?";
  for (const Column& column : kColumns) {
    if (column.storage == Storage::kWorkload) continue;
    names += fmt::format(", {}{}", column.name, column.storage == Storage::kText ? "_id" : "");
    parameters += ", ?";
  }
  return fmt::format("INSERT INTO measurements ({}) VALUES ({}) ON CONFLICT (measurement) DO NOTHING", names,
                     parameters);
}

// The number of the failure's kind among the columns of SelectRow, whose column 0 is the row's id.
constexpr int ColumnOfFailure() {
  for (int i = 0; i < static_cast<int>(kColumns.size()); ++i) {
    if (std::holds_alternative<FailureKind Failure::*>(kColumns[static_cast<size_t>(i)].member)) return i + 1;
  }
  return -1;
}

}  // namespace

std::string SelectRow(Scope scope) {
  std::string columns = "m.id";
  for (const Column& column : kColumns) {
    const bool left_out = (scope != Scope::kAll && column.name == "text") ||
                          (scope == Scope::kRowAlone && column.storage != Storage::kRow);
    columns += fmt::format(", {}", left_out ? "NULL" : ColumnSql(column));
  }
  return fmt::format("SELECT {} FROM {}", columns, scope == Scope::kRowAlone ? "measurements m" : RowSource());
}

absl::StatusOr<StoredRecord> ReadRow(const Statement& statement) {
  StoredRecord stored;
  stored.row = statement.Int(0);
  if (!statement.IsNull(ColumnOfFailure())) stored.record.outcome = Failure{};
  int place = 0;
  for (const Column& column : kColumns) {
    Reader reader{statement, stored.row, ++place, absl::OkStatus()};
    WithValue(stored.record, column, [&](auto& value) { reader(value); });
    HONE_RETURN_IF_ERROR(reader.status);
  }
  return stored;
}

absl::StatusOr<RowWriter> RowWriter::Prepare(const Connection& connection) {
  HONE_ASSIGN_OR_RETURN(Statement seen, connection.Prepare("SELECT 1 FROM measurements WHERE measurement = ?1"));
  HONE_ASSIGN_OR_RETURN(Statement put_workload,
                        connection.Prepare("INSERT INTO workloads (digest, operator, flops, text) VALUES "
                                           "(?1, ?2, ?3, ?4) ON CONFLICT (digest) DO UPDATE SET "
                                           "operator = ?2, flops = ?3, text = ?4"));
  HONE_ASSIGN_OR_RETURN(Statement find_workload,
                        connection.Prepare("SELECT id, ?2 = '' OR text = ?2 FROM workloads WHERE digest = ?1"));
  HONE_ASSIGN_OR_RETURN(Statement add_text, connection.Prepare("INSERT INTO texts (text) VALUES (?1)"));
  HONE_ASSIGN_OR_RETURN(Statement find_text, connection.Prepare("SELECT id FROM texts WHERE text = ?1"));
  HONE_ASSIGN_OR_RETURN(Statement insert, connection.Prepare(InsertSql()));
  return RowWriter(&connection, {std::move(seen), std::move(put_workload), std::move(find_workload),
                                 std::move(add_text), std::move(find_text), std::move(insert)});
}

absl::StatusOr<int64_t> RowWriter::WorkloadId(const Record& record) {
  const std::string& digest = record.key.workload_digest;
  const auto find = [&] {
    use_.find_workload.Reset();
    use_.find_workload.Bind(1, digest);
    use_.find_workload.Bind(2, record.workload_text);
    return use_.find_workload.Step();
  };
  HONE_ASSIGN_OR_RETURN(bool found, find());
  if (!found && record.workload_text.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("workload {} is not stored yet, and the record has no workload text; send the text with the "
                    "first record of a workload",
                    digest));
  }
  if (!found || use_.find_workload.Int(1) == 0) {
    // Only one of the two texts can have this digest. It is kept, even if the other was stored first.
    if (found && Sha256Hex(record.workload_text) != digest) {
      use_.find_workload.Reset();
      return absl::FailedPreconditionError(fmt::format(
          "workload {} is stored with another text, and the text of the record does not have this digest", digest));
    }
    use_.find_workload.Reset();
    use_.put_workload.Reset();
    use_.put_workload.Bind(1, digest);
    use_.put_workload.Bind(2, record.operator_label);
    use_.put_workload.Bind(3, record.flops);
    use_.put_workload.Bind(4, record.workload_text);
    HONE_RETURN_IF_ERROR(use_.put_workload.Run());
    HONE_ASSIGN_OR_RETURN(found, find());
    HONE_CHECK(found);
  }
  const int64_t id = use_.find_workload.Int(0);
  use_.find_workload.Reset();
  return id;
}

absl::StatusOr<int64_t> RowWriter::TextId(const std::string& text) {
  const auto known = text_ids_.find(text);
  if (known != text_ids_.end()) return known->second;
  const auto find = [&]() -> absl::StatusOr<int64_t> {
    use_.find_text.Reset();
    use_.find_text.Bind(1, text);
    HONE_ASSIGN_OR_RETURN(const bool found, use_.find_text.Step());
    const int64_t id = found ? use_.find_text.Int(0) : 0;
    use_.find_text.Reset();
    return id;
  };
  HONE_ASSIGN_OR_RETURN(int64_t id, find());
  if (id == 0) {
    use_.add_text.Reset();
    use_.add_text.Bind(1, text);
    HONE_RETURN_IF_ERROR(use_.add_text.Run());
    HONE_ASSIGN_OR_RETURN(id, find());
  }
  text_ids_.emplace(text, id);
  return id;
}

absl::StatusOr<bool> RowWriter::Write(const Record& record) {
  use_.seen.Reset();
  use_.seen.Bind(1, record.measurement_id);
  HONE_ASSIGN_OR_RETURN(const bool seen, use_.seen.Step());
  use_.seen.Reset();
  if (seen) return false;
  HONE_ASSIGN_OR_RETURN(const int64_t workload, WorkloadId(record));
  Statement& insert = use_.insert;
  insert.Reset();
  insert.Bind(1, workload);
  if (const auto* timing = std::get_if<Timing>(&record.outcome)) {
    const std::span<const double> repeats = DecidingRepeats(timing->seconds, timing->first_interleaved);
    insert.Bind(2, Median({repeats.begin(), repeats.end()}));
  }
  int index = 2;  // of the last parameter that was bound; columns of the other outcome stay NULL
  for (const Column& column : kColumns) {
    if (column.storage == Storage::kWorkload) continue;
    ++index;
    if (column.storage == Storage::kText) {
      std::string text;
      WithValue(record, column, [&](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) text = value;
      });
      HONE_ASSIGN_OR_RETURN(const int64_t id, TextId(text));
      insert.Bind(index, id);
    } else {
      WithValue(record, column, Binder{insert, index, column});
    }
  }
  HONE_RETURN_IF_ERROR(insert.Run());
  const bool stored = connection_->Changes() == 1;
  insert.Reset();
  return stored;
}

}  // namespace hone::storage
