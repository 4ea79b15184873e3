// SPDX-License-Identifier: Apache-2.0
#include "records/jsonl.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/status.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "records/columns.h"

namespace hone::records {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr size_t kBatchRows = 500;
constexpr size_t kBatchBytes = size_t{8} << 20;     // size of a batch's lines; a batch may travel as one message
constexpr size_t kLineBytesMax = size_t{64} << 20;  // above the largest record that Validate lets through
constexpr size_t kReportedLinesMax = 100;
constexpr size_t kWrittenBytes = size_t{64} << 10;  // Export calls `write` when it has so many bytes

// The parts of a column's JSON path such as "timing.drift": the object ("" for the line itself), and the field in it.
struct Path {
  explicit Path(std::string_view text) {
    const size_t dot = text.find('.');
    if (dot != std::string_view::npos) object = text.substr(0, dot);
    name = text.substr(dot == std::string_view::npos ? 0 : dot + 1);
  }
  std::string object, name;
};

// Reads the value of one column from `object`, the JSON object that has it. Optional fields may be missing or null.
// `status` gets the first error.
struct FieldReader {
  const json& object;
  const Column& column;
  absl::Status status;

  void operator()(std::string& value) {
    const bool required = column.range == Range::kRequired || column.range == Range::kNotEmpty;
    if (const json* field = Find(required, &json::is_string, "a string")) value = field->get<std::string>();
  }
  void operator()(double& value) {
    if (const json* field = Find(false, &json::is_number, "a number")) value = field->get<double>();
  }
  void operator()(std::optional<double>& value) {
    if (const json* field = Find(false, &json::is_number, "a number")) value = field->get<double>();
  }
  void operator()(bool& value) {
    if (const json* field = Find(false, &json::is_boolean, "true or false")) value = field->get<bool>();
  }
  void operator()(int64_t& value) {
    const json* field = Find(false, &json::is_number_integer, "an integer");
    if (field == nullptr) return;
    if (field->is_number_unsigned() && field->get<uint64_t>() > INT64_MAX) {
      return Complain(fmt::format("is {}; the largest allowed value is {}", field->get<uint64_t>(), INT64_MAX));
    }
    value = field->get<int64_t>();
  }
  void operator()(uint64_t& value) {
    const json* field = Find(false, &json::is_number_unsigned, "an integer of 0 or more");
    if (field != nullptr) value = field->get<uint64_t>();
  }
  void operator()(Instant& value) {
    int64_t milliseconds = 0;
    (*this)(milliseconds);
    value = Instant(std::chrono::milliseconds(milliseconds));
  }
  void operator()(std::vector<double>& values) {
    const json* field = Find(true, &json::is_array, "a list of numbers");
    if (field == nullptr) return;
    for (const json& value : *field) {
      if (!value.is_number()) return Complain("must be a list of numbers");
      values.push_back(value.get<double>());
    }
  }
  void operator()(FailureKind& kind) {
    const json* field = Find(true, &json::is_string, "a string");
    if (field == nullptr) return;
    const std::string name = field->get<std::string>();
    const std::optional<FailureKind> known = FailureKindFromName(name);
    if (!known.has_value()) return Complain(fmt::format("'{}' is not known", name));
    kind = *known;
  }

  template <typename IsType>
  const json* Find(bool required, IsType is_type, const char* wanted) {
    const auto found = object.find(Path(column.json).name);
    if (found == object.end() || found->is_null()) {
      if (required) Complain("is missing");
      return nullptr;
    }
    if (!((*found).*is_type)()) {
      Complain(fmt::format("must be {}", wanted));
      return nullptr;
    }
    return &*found;
  }
  void Complain(std::string_view what) {
    if (status.ok()) status = absl::InvalidArgumentError(fmt::format("field {} {}", column.json, what));
  }
};

// Writes the value of one column into a line. Leaves out unknown values, and empty texts that are not of the row
// itself.
struct FieldWriter {
  ordered_json& line;
  const Column& column;

  void operator()(const std::string& value) {
    if (!value.empty() || column.storage == Storage::kRow) Field() = value;
  }
  void operator()(const std::optional<double>& value) {
    if (value.has_value()) Field() = *value;
  }
  void operator()(Instant value) { Field() = value.time_since_epoch().count(); }
  void operator()(FailureKind value) { Field() = FailureKindName(value); }
  template <typename Value>
  void operator()(const Value& value) {
    Field() = value;
  }

  ordered_json& Field() {
    const Path path(column.json);
    return path.object.empty() ? line[path.name] : line[path.object][path.name];
  }
};

// The object `name` of the line, or the line itself for "". Null if the line does not have it, or it is not an object.
const json* ObjectOf(const json& line, const std::string& name) {
  if (name.empty()) return &line;
  const auto found = line.find(name);
  return found == line.end() || !found->is_object() ? nullptr : &*found;
}

// Reads the lines of a stream. Their length is limited, so that a file without line ends cannot fill the memory.
class LineReader {
 public:
  explicit LineReader(std::istream& in) : in_(in) {}

  // False: the stream ended or failed. A line over the limit is returned empty, and TooLong() is true.
  bool Next(std::string& line) {
    line.clear();
    too_long_ = false;
    bool any = false;
    errno = 0;
    // If a file cannot be read, its buffer throws. The stream catches that and sets bad().
    for (char c = 0; in_.get(c);) {
      any = true;
      if (c == '\n') break;
      if (!too_long_) line += c;
      if (line.size() > kLineBytesMax) {
        too_long_ = true;
        line = std::string();
      }
    }
    if (in_.bad()) failure_ = errno != 0 ? errno : EIO;
    return any && failure_ == 0;
  }
  bool TooLong() const { return too_long_; }
  int failure() const { return failure_; }  // the errno of the failed read; 0: no read failed

 private:
  std::istream& in_;
  bool too_long_ = false;
  int failure_ = 0;
};

// Collects parsed records with their line numbers and appends them in batches.
class Importer {
 public:
  Importer(Source& source, Instant latest) : source_(source), latest_(latest) {}

  absl::Status Line(size_t number, const std::string& line, bool too_long) {
    ++report_.lines;
    if (too_long) {
      Reject(number, fmt::format("the line has more than {} bytes", kLineBytesMax));
      return absl::OkStatus();
    }
    absl::StatusOr<Record> record = RecordFromJson(line);
    if (!record.ok()) {
      Reject(number, std::string(record.status().message()));
      return absl::OkStatus();
    }
    if (record->measured_at > latest_) ++report_.future_dated;
    record->measured_at = std::min(record->measured_at, latest_);
    batch_.push_back(*std::move(record));
    numbers_.push_back(number);
    bytes_ += line.size();
    return batch_.size() < kBatchRows && bytes_ < kBatchBytes ? absl::OkStatus() : Flush();
  }

  absl::Status Flush() {
    if (batch_.empty()) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const AppendReport appended, source_.Append(batch_));
    report_.appended += appended.appended;
    report_.duplicates += appended.duplicates;
    for (const Rejected& row : appended.rejected) Reject(numbers_[row.index], std::string(row.why.message()));
    batch_.clear();
    numbers_.clear();
    bytes_ = 0;
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
    if (report_.first_rejected.size() < kReportedLinesMax) report_.first_rejected.push_back({line, std::move(why)});
  }

  Source& source_;
  const Instant latest_;
  ImportReport report_;
  std::vector<Record> batch_;
  size_t bytes_ = 0;             // size of the lines of batch_
  std::vector<size_t> numbers_;  // the line number of each record in batch_
};

// kInvalidArgument: the text is not a JSON object, or has a number that no double holds, or is not UTF-8.
absl::StatusOr<json> ParseLine(std::string_view text) {
  try {
    json line = json::parse(text);
    if (!line.is_object()) return absl::InvalidArgumentError("not a JSON object");
    return line;
  } catch (const json::exception& error) {
    constexpr size_t kLongest = 200;  // the library's text quotes the token, which may be as long as the line
    const std::string_view why = error.what();
    return absl::InvalidArgumentError(
        fmt::format("not JSON: {}", why.substr(0, std::min(why.find("; last read: "), kLongest))));
  }
}

}  // namespace

std::string RecordToJson(const Record& record) {
  ordered_json line = {{"hone_record", kFormat}};
  for (const Column& column : kColumns) WithValue(record, column, FieldWriter{line, column});
  return line.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

absl::StatusOr<Record> RecordFromJson(std::string_view text) {
  HONE_ASSIGN_OR_RETURN(const json line, ParseLine(text));
  if (const auto format = line.find("hone_record"); format == line.end() || *format != kFormat) {
    return absl::InvalidArgumentError(
        fmt::format("not a record of format {} (field hone_record); another version of Hone wrote it", kFormat));
  }
  const bool timed = ObjectOf(line, "timing") != nullptr;
  if (timed == (ObjectOf(line, "failure") != nullptr)) {
    return absl::InvalidArgumentError("exactly one of the fields timing and failure must be present, as an object");
  }
  Record record;
  if (!timed) record.outcome = Failure{};
  static const json kNothing = json::object();
  for (const Column& column : kColumns) {
    const json* object = ObjectOf(line, Path(column.json).object);
    FieldReader reader{object == nullptr ? kNothing : *object, column, absl::OkStatus()};
    WithValue(record, column, [&](auto& value) { reader(value); });
    HONE_RETURN_IF_ERROR(reader.status);
  }
  // The store validates too. A message to a tracker cannot carry some of the invalid numbers, so they are refused here.
  HONE_RETURN_IF_ERROR(Validate(record));
  return record;
}

absl::StatusOr<ExportReport> Export(const Source& source, Filter filter,
                                    const std::function<absl::Status(const std::string& lines)>& write) {
  filter.with_workload_text = true;
  ExportReport report;
  std::string lines;
  const auto add = [&](const StoredRecord& stored) {
    lines += RecordToJson(stored.record) + "\n";
    ++report.records;
    return lines.size() < kWrittenBytes ? absl::OkStatus() : write(std::exchange(lines, {}));
  };
  HONE_ASSIGN_OR_RETURN(report.unreadable, source.Visit(filter, add));
  if (!lines.empty()) HONE_RETURN_IF_ERROR(write(lines));
  return report;
}

absl::StatusOr<ImportReport> Import(Source& source, std::istream& in, Instant latest,
                                    const std::function<void(size_t lines)>& progress) {
  Importer importer(source, latest);
  LineReader reader(in);
  std::string line;
  size_t number = 1;
  for (; reader.Next(line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos && !reader.TooLong()) continue;
    HONE_RETURN_IF_ERROR(importer.Line(number, line, reader.TooLong()));
    if (progress) progress(number);
  }
  HONE_RETURN_IF_ERROR(importer.Flush());
  if (reader.failure() != 0) {
    return absl::UnavailableError(fmt::format(
        "line {} cannot be read: {}; the lines before it were imported, and importing them again changes nothing",
        number, std::strerror(reader.failure())));
  }
  return std::move(importer).Finish();
}

}  // namespace hone::records
