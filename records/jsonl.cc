#include "records/jsonl.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/status.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace hone::records {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr size_t kPageRows = 1000;
constexpr size_t kBatchRows = 500;
constexpr size_t kMaxLineBytes = size_t{64} << 20;  // above the largest record that Validate lets through
constexpr size_t kReportedLines = 100;

// Reads fields of one JSON object and keeps the first complaint. Optional fields may be missing or null.
class FieldReader {
 public:
  FieldReader(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  void Read(const char* name, std::string& value, bool required = false) {
    if (const json* field = Find(name, required, &json::is_string, "a string")) value = field->get<std::string>();
  }
  void Read(const char* name, double& value) {
    if (const json* field = Find(name, false, &json::is_number, "a number")) value = field->get<double>();
  }
  void Read(const char* name, std::optional<double>& value) {
    if (const json* field = Find(name, false, &json::is_number, "a number")) value = field->get<double>();
  }
  void Read(const char* name, bool& value) {
    if (const json* field = Find(name, false, &json::is_boolean, "true or false")) value = field->get<bool>();
  }
  void Read(const char* name, int64_t& value) {
    if (const json* field = Find(name, false, &json::is_number_integer, "an integer")) value = field->get<int64_t>();
  }
  void Read(const char* name, uint64_t& value) {
    if (const json* field = Find(name, false, &json::is_number_unsigned, "an integer not below 0")) {
      value = field->get<uint64_t>();
    }
  }
  void Read(const char* name, std::vector<double>& values) {
    const json* field = Find(name, true, &json::is_array, "a list of numbers");
    if (field == nullptr) return;
    for (const json& value : *field) {
      if (!value.is_number()) return Complain(name, "must be a list of numbers");
      values.push_back(value.get<double>());
    }
  }
  // Null where it is missing or no object.
  const json* Object(const char* name, bool required) { return Find(name, required, &json::is_object, "an object"); }
  void Adopt(const FieldReader& inner) {
    if (status_.ok()) status_ = inner.status_;
  }
  const absl::Status& status() const { return status_; }

 private:
  template <typename IsType>
  const json* Find(const char* name, bool required, IsType is_type, const char* wanted) {
    const auto found = object_.find(name);
    if (found == object_.end() || found->is_null()) {
      if (required) Complain(name, "is missing");
      return nullptr;
    }
    if (!((*found).*is_type)()) {
      Complain(name, fmt::format("must be {}", wanted));
      return nullptr;
    }
    return &*found;
  }
  void Complain(const char* name, std::string_view what) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(fmt::format("field {}{} {}", where_, name, what));
  }

  const json& object_;
  std::string where_;
  absl::Status status_;
};

absl::StatusOr<Outcome> ReadOutcome(FieldReader& fields) {
  const json* timing_object = fields.Object("timing", false);
  const json* failure_object = fields.Object("failure", false);
  HONE_RETURN_IF_ERROR(fields.status());
  if ((timing_object == nullptr) == (failure_object == nullptr)) {
    return absl::InvalidArgumentError("exactly one of the fields timing and failure must be there");
  }
  if (timing_object != nullptr) {
    FieldReader reader(*timing_object, "timing.");
    Timing timing;
    reader.Read("seconds", timing.seconds);
    reader.Read("confirmed", timing.confirmed);
    reader.Read("verified", timing.verified);
    reader.Read("tolerance", timing.tolerance);
    reader.Read("reference_seconds", timing.reference_seconds);
    HONE_RETURN_IF_ERROR(reader.status());
    return timing;
  }
  FieldReader reader(*failure_object, "failure.");
  std::string kind;
  Failure failure;
  reader.Read("kind", kind, true);
  reader.Read("text", failure.text);
  HONE_RETURN_IF_ERROR(reader.status());
  const std::optional<FailureKind> known = FailureKindFromName(kind);
  if (!known.has_value()) return absl::InvalidArgumentError(fmt::format("failure.kind '{}' is not known", kind));
  failure.kind = *known;
  return failure;
}

void ReadWorkload(FieldReader& fields, Record& record) {
  const json* workload = fields.Object("workload", true);
  if (workload == nullptr) return;
  FieldReader reader(*workload, "workload.");
  reader.Read("digest", record.key.workload_digest, true);
  reader.Read("operator", record.operator_label);
  reader.Read("flops", record.flops);
  reader.Read("text", record.workload_text);
  fields.Adopt(reader);
}

ordered_json OutcomeFields(const Timing& timing) {
  ordered_json fields = {{"seconds", timing.seconds}, {"confirmed", timing.confirmed}, {"verified", timing.verified}};
  if (timing.tolerance.has_value()) fields["tolerance"] = *timing.tolerance;
  if (timing.reference_seconds.has_value()) fields["reference_seconds"] = *timing.reference_seconds;
  return fields;
}

// Lines of a stream, with a limit on their length so that a file without line ends cannot fill the memory.
class LineReader {
 public:
  explicit LineReader(std::istream& in) : in_(in) {}

  // False at the end. A line over the limit comes out empty with TooLong() set.
  bool Next(std::string& line) {
    line.clear();
    too_long_ = false;
    bool any = false;
    for (int c = in_.rdbuf()->sbumpc(); c != std::char_traits<char>::eof(); c = in_.rdbuf()->sbumpc()) {
      any = true;
      if (c == '\n') break;
      if (!too_long_) line += static_cast<char>(c);
      if (line.size() > kMaxLineBytes) {
        too_long_ = true;
        line = std::string();
      }
    }
    return any;
  }
  bool TooLong() const { return too_long_; }

 private:
  std::istream& in_;
  bool too_long_ = false;
};

// Collects parsed records with their line numbers and appends them in batches.
class Importer {
 public:
  explicit Importer(Store& store) : store_(store) {}

  absl::Status Line(size_t number, const std::string& line, bool too_long) {
    ++report_.lines;
    if (too_long) {
      Reject(number, fmt::format("the line has more than {} bytes", kMaxLineBytes));
      return absl::OkStatus();
    }
    absl::StatusOr<Record> record = RecordFromJson(line);
    if (!record.ok()) {
      Reject(number, std::string(record.status().message()));
      return absl::OkStatus();
    }
    batch_.push_back(*std::move(record));
    numbers_.push_back(number);
    return batch_.size() < kBatchRows ? absl::OkStatus() : Flush();
  }

  absl::Status Flush() {
    HONE_ASSIGN_OR_RETURN(const AppendReport appended, store_.Append(batch_));
    report_.appended += appended.appended;
    report_.duplicates += appended.duplicates;
    for (const Rejected& row : appended.rejected) Reject(numbers_[row.index], std::string(row.why.message()));
    batch_.clear();
    numbers_.clear();
    return absl::OkStatus();
  }

  ImportReport Finish() && {
    std::sort(report_.first_rejected.begin(), report_.first_rejected.end(),
              [](const BadLine& a, const BadLine& b) { return a.line < b.line; });
    return std::move(report_);
  }

 private:
  void Reject(size_t line, std::string why) {
    ++report_.rejected;
    if (report_.first_rejected.size() < kReportedLines) report_.first_rejected.push_back({line, std::move(why)});
  }

  Store& store_;
  ImportReport report_;
  std::vector<Record> batch_;
  std::vector<size_t> numbers_;  // the line of each record in batch_
};

}  // namespace

std::string RecordToJson(const Record& record) {
  ordered_json line = {{"hone_record", kFormat}, {"measurement", record.measurement_id}, {"batch", record.batch_id}};
  line["workload"] = {
      {"digest", record.key.workload_digest}, {"operator", record.operator_label}, {"flops", record.flops}};
  if (!record.workload_text.empty()) line["workload"]["text"] = record.workload_text;
  line["target"] = record.key.target;
  line["device"] = record.key.device_fingerprint;
  line["compiler"] = record.key.compiler_version;
  line["schedule"] = record.schedule;
  line["decisions"] = record.decisions;
  if (const auto* timing = std::get_if<Timing>(&record.outcome)) {
    line["timing"] = OutcomeFields(*timing);
  } else {
    const auto& failure = std::get<Failure>(record.outcome);
    line["failure"] = {{"kind", FailureKindName(failure.kind)}, {"text", failure.text}};
  }
  if (record.temperature_celsius.has_value()) line["temperature_celsius"] = *record.temperature_celsius;
  if (record.clock_hertz.has_value()) line["clock_hertz"] = *record.clock_hertz;
  line["measured_by"] = record.measured_by;
  line["measured_at_ms"] = record.measured_at.time_since_epoch().count();
  line["seed"] = record.seed;
  return line.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

absl::StatusOr<Record> RecordFromJson(std::string_view text) {
  const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) return absl::InvalidArgumentError("not a JSON object");
  FieldReader fields(line, "");
  int64_t format = 0;
  fields.Read("hone_record", format);
  HONE_RETURN_IF_ERROR(fields.status());
  if (format != kFormat) {
    return absl::InvalidArgumentError(
        fmt::format("not a record of format {} (field hone_record); another Hone wrote it", kFormat));
  }
  Record record;
  ReadWorkload(fields, record);
  fields.Read("measurement", record.measurement_id, true);
  fields.Read("batch", record.batch_id);
  fields.Read("target", record.key.target, true);
  fields.Read("device", record.key.device_fingerprint, true);
  fields.Read("compiler", record.key.compiler_version, true);
  fields.Read("schedule", record.schedule, true);
  fields.Read("decisions", record.decisions);
  fields.Read("temperature_celsius", record.temperature_celsius);
  fields.Read("clock_hertz", record.clock_hertz);
  fields.Read("measured_by", record.measured_by);
  int64_t measured_at_ms = 0;
  fields.Read("measured_at_ms", measured_at_ms);
  record.measured_at = Instant(std::chrono::milliseconds(measured_at_ms));
  fields.Read("seed", record.seed);
  HONE_RETURN_IF_ERROR(fields.status());
  HONE_ASSIGN_OR_RETURN(record.outcome, ReadOutcome(fields));
  return record;
}

absl::StatusOr<int64_t> Export(const Store& store, Filter filter, std::ostream& out) {
  filter.limit = kPageRows;
  filter.with_workload_text = true;
  int64_t written = 0;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const std::vector<StoredRecord> page, store.Query(filter));
    if (page.empty()) break;
    for (const StoredRecord& stored : page) out << RecordToJson(stored.record) << '\n';
    if (!out) break;
    written += static_cast<int64_t>(page.size());
    filter.after_row = page.back().row;
  }
  if (!out.flush()) {
    return absl::ResourceExhaustedError(
        "cannot write all of the export; check that its disk has room and that its reader is still there");
  }
  return written;
}

absl::StatusOr<ImportReport> Import(Store& store, std::istream& in) {
  Importer importer(store);
  LineReader reader(in);
  std::string line;
  for (size_t number = 1; reader.Next(line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos && !reader.TooLong()) continue;
    HONE_RETURN_IF_ERROR(importer.Line(number, line, reader.TooLong()));
  }
  HONE_RETURN_IF_ERROR(importer.Flush());
  return std::move(importer).Finish();
}

}  // namespace hone::records
