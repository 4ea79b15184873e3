// SPDX-License-Identifier: Apache-2.0
#include "cli/records_show.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/median.h"
#include "base/one_line.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/csv.h"
#include "cli/model_records.h"
#include "cli/output.h"
#include "cli/quantity_text.h"
#include "fmt/chrono.h"
#include "fmt/format.h"
#include "records/columns.h"
#include "records/jsonl.h"
#include "records/winner.h"

namespace hone::cli {
namespace {

using nlohmann::ordered_json;
using records::BestRecord;
using records::Failure;
using records::Filter;
using records::OpenMode;
using records::Record;
using records::StoredRecord;
using records::Timing;

// How sure the result is, and how it compares with the default schedule: "confirmed, 1.50x the default".
std::string ComparisonOf(const BestRecord& best) {
  const char* confirmed = best.confirmed ? "confirmed" : "not confirmed";
  if (!best.default_seconds.has_value()) return confirmed;
  return fmt::format("{}, {:.2f}x the default", confirmed, *best.default_seconds / best.median_seconds);
}

// Seconds of a call; nothing for a failure.
std::optional<double> DecidingMedian(const Record& record) {
  const auto* timing = std::get_if<Timing>(&record.outcome);
  if (timing == nullptr) return std::nullopt;
  const auto repeats = records::DecidingRepeats(timing->seconds, timing->first_interleaved);
  return Median({repeats.begin(), repeats.end()});
}

ordered_json MissingFields(const ModelWorkload& workload) {
  return {
      {"workload", workload.digest}, {"operator", workload.op}, {"title", workload.title}, {"calls", workload.calls}};
}

ordered_json BestOfModelFields(const ModelWorkload& workload, const records::NearestRecord& record) {
  ordered_json fields = BestFields(record.best);
  fields["calls"] = workload.calls;
  fields["match"] = records::ClosenessName(record.closeness);
  return fields;
}

absl::Status PrintBestOfModel(const RecordsOptions& options, const ModelRecords& found) {
  ordered_json best = ordered_json::array(), missing = ordered_json::array();
  std::string text;
  for (const auto& [workload, record] : found.entries) {
    if (!record.has_value()) {
      missing.push_back(MissingFields(workload));
      text +=
          fmt::format("{:.12}  {}\n    missing, called {} times\n", workload.digest, workload.title, workload.calls);
      continue;
    }
    if (best.size() == options.filter.limit) continue;
    best.push_back(BestOfModelFields(workload, *record));
    text += BestText(record->best);
  }
  if (options.csv) return PrintCsv(best, BestOfModelFields({}, {}));
  const size_t all = found.entries.size();
  if (!options.json) {
    HONE_RETURN_IF_ERROR(PrintText(text));
    PrintMessage(fmt::format("{} of {} workloads have a record for {}\n", all - found.missing, all, found.target));
    return absl::OkStatus();
  }
  return PrintJson({{"model", options.model.models.front()},
                    {"target", found.target},
                    {"workloads", all},
                    {"found", all - found.missing},
                    {"missing", found.missing},
                    {"best", std::move(best)},
                    {"without_record", std::move(missing)}});
}

// Prints rows one by one as text, JSON or CSV, because there may be millions.
class RowPrinter {
 public:
  explicit RowPrinter(const RecordsOptions& options) : options_(options) {}

  absl::Status Begin() {
    if (options_.json) return Print("{\"records\": [");
    return options_.csv ? Print(CsvLine(CsvNames())) : absl::OkStatus();
  }
  absl::Status Row(const StoredRecord& stored) {
    const bool first = std::exchange(first_, false);
    if (options_.csv) return Print(CsvLine(CsvValues(stored)));
    if (!options_.json) return Print(TextLine(stored));
    ordered_json fields = ordered_json::parse(records::RecordToJson(stored.record));
    fields["row"] = stored.row;
    return Print((first ? "\n" : ",\n") + fields.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  }
  // Ends the output. fields: further fields of the JSON document; ignored for text and CSV.
  absl::Status End(const ordered_json& fields) {
    if (!options_.json) return PrintText(std::exchange(buffer_, {}));
    std::string text = "\n]";
    for (const auto& [name, value] : fields.items()) {
      text += fmt::format(", {}: {}", ordered_json(name).dump(),
                          value.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    }
    return PrintText(std::exchange(buffer_, {}) + text + "}\n");
  }

 private:
  absl::Status Print(const std::string& text) {
    buffer_ += text;
    return buffer_.size() < (size_t{64} << 10) ? absl::OkStatus() : PrintText(std::exchange(buffer_, {}));
  }
  static std::string TextLine(const StoredRecord& stored) {
    const Record& record = stored.record;
    return cli::Row("{}  {:.12}  {}  {}  {}", stored.row, record.key.workload_digest, Utc(record.measured_at),
                    OneLine(TitleOf(record)), OutcomeText(record));
  }
  static bool InCsv(const records::Column& column) { return column.name != "text"; }
  static std::vector<std::string> CsvNames() {
    std::vector<std::string> names = {"id"};
    for (const records::Column& column : records::kColumns) {
      if (InCsv(column)) names.emplace_back(column.name);
    }
    names.emplace_back("median_ms");
    return names;
  }
  static std::vector<std::string> CsvValues(const StoredRecord& stored) {
    std::vector<std::string> values = {std::to_string(stored.row)};
    for (const records::Column& column : records::kColumns) {
      if (!InCsv(column)) continue;
      std::string& text = values.emplace_back();
      records::WithValue(stored.record, column, [&](const auto& value) { text = CsvText(value); });
    }
    const std::optional<double> median = DecidingMedian(stored.record);
    values.push_back(median.has_value() ? CsvText(*median * 1e3) : "");
    return values;
  }
  static std::string CsvText(const std::string& value) { return value; }
  static std::string CsvText(bool value) { return value ? "1" : "0"; }
  static std::string CsvText(records::Instant value) { return std::to_string(value.time_since_epoch().count()); }
  static std::string CsvText(FailureKind value) { return std::string(FailureKindName(value)); }
  static std::string CsvText(const std::optional<double>& value) {
    return value.has_value() ? ordered_json(*value).dump() : "";
  }
  template <typename Value>
  static std::string CsvText(const Value& value) {
    return ordered_json(value).dump();
  }

  const RecordsOptions& options_;
  std::string buffer_;
  bool first_ = true;
};

// Prints the rows of each workload of the model, one workload after another.
absl::Status QueryModel(const RecordsOptions& options, Filter filter, const records::Source& source,
                        RowPrinter& printer) {
  HONE_ASSIGN_OR_RETURN(const ModelRecords found, FindModelRecords(options, filter, source));
  filter.target = found.target;
  filter.operator_label.clear();
  ordered_json missing = ordered_json::array();
  const size_t most = filter.limit;
  size_t rows = 0;  // rows printed; most + 1 = there are more
  for (const auto& [workload, record] : found.entries) {
    if (!record.has_value()) missing.push_back(MissingFields(workload));
    if (rows > most) continue;
    filter.workload_digest = workload.digest;
    if (most != SIZE_MAX) filter.limit = most - rows + 1;
    HONE_RETURN_IF_ERROR(source.ForEach(
        filter, [&](const StoredRecord& stored) { return ++rows > most ? absl::OkStatus() : printer.Row(stored); }));
  }
  if (rows > most)
    PrintMessage(fmt::format("stopped at {} records; give a larger --limit, or none, to show more\n", most));
  const size_t all = found.entries.size();
  HONE_RETURN_IF_ERROR(printer.End({{"target", found.target},
                                    {"workloads", all},
                                    {"found", all - found.missing},
                                    {"missing", found.missing},
                                    {"without_record", std::move(missing)}}));
  return CheckRequired(options, found);
}

absl::Status CheckForm(const RecordsOptions& options) {
  if (options.json && options.csv) return UsageError("--json and --csv exclude each other");
  return absl::OkStatus();
}

}  // namespace

std::string Utc(records::Instant when) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(when);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

std::string OutcomeText(const Record& record) {
  if (const auto* timing = std::get_if<Timing>(&record.outcome)) {
    return fmt::format("{}{}{}", Latency(*DecidingMedian(record)), timing->verified ? "" : " unverified",
                       timing->confirmed ? " confirmed" : "");
  }
  const auto& failure = std::get<Failure>(record.outcome);
  return fmt::format("{}: {}", FailureKindName(failure.kind), failure.text.substr(0, failure.text.find('\n')));
}

namespace {

// GFLOP/s; empty for a workload with open sizes, because rates at different points are not comparable.
std::optional<double> RateOf(const BestRecord& best) {
  const Record& record = best.stored.record;
  if (!record.sizes.empty()) return std::nullopt;
  return record.flops / best.median_seconds * 1e-9;
}

// "12.3 GFLOP/s", or the points whose times the time is the sum of.
std::string RateText(const BestRecord& best) {
  const std::optional<double> rate = RateOf(best);
  return rate.has_value() ? fmt::format("{:.1f} GFLOP/s", *rate) : "at " + OneLine(best.stored.record.sizes);
}

}  // namespace

ordered_json BestFields(const BestRecord& best) {
  const Record& record = best.stored.record;
  const std::optional<double> rate = RateOf(best);
  return {{"workload", record.key.workload_digest},
          {"operator", record.operator_label},
          {"target", record.key.target},
          {"device", record.key.device_fingerprint},
          {"compiler", record.key.compiler_version},
          {"schedule", record.schedule},
          {"median_ms", best.median_seconds * 1e3},
          {"gflops", rate.has_value() ? ordered_json(*rate) : ordered_json()},
          {"default_ms", best.default_seconds.has_value() ? ordered_json(*best.default_seconds * 1e3) : ordered_json()},
          {"confirmed", best.confirmed},
          {"records", best.records},
          {"measured_at", Utc(record.measured_at)},
          {"measurement", record.measurement_id},
          {"sizes", record.sizes},
          {"title", TitleOf(record)},
          {"model", record.model},
          {"nodes", record.nodes}};
}

std::string BestText(const BestRecord& best) {
  const Record& record = best.stored.record;
  const std::string nodes =
      record.nodes.empty() ? "" : fmt::format("    {} of {}\n", OneLine(record.nodes), OneLine(record.model));
  return fmt::format("{:.12}  {}\n{}    {}  {}  best of {} records, {}, {}\n    target {}, device {}, {}\n    {}\n",
                     record.key.workload_digest, OneLine(TitleOf(record)), nodes, Latency(best.median_seconds),
                     RateText(best), best.records, ComparisonOf(best), Utc(record.measured_at),
                     OneLine(record.key.target), OneLine(record.key.device_fingerprint),
                     OneLine(record.key.compiler_version), record.schedule.empty() ? "(unscheduled)" : record.schedule);
}

absl::Status RunBest(const RecordsOptions& options) {
  HONE_RETURN_IF_ERROR(CheckForm(options));
  HONE_ASSIGN_OR_RETURN(const Filter filter, options.ResolvedFilter());
  HONE_ASSIGN_OR_RETURN(const auto source, options.OpenToRead());
  if (options.model.given()) {
    HONE_ASSIGN_OR_RETURN(const ModelRecords found, FindModelRecords(options, filter, *source));
    HONE_RETURN_IF_ERROR(PrintBestOfModel(options, found));
    return CheckRequired(options, found);
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<BestRecord> winners, source->AllBest(filter));
  ordered_json list = ordered_json::array();
  std::string text;
  for (const BestRecord& best : winners) {
    if (options.json || options.csv) {
      list.push_back(BestFields(best));
    } else {
      text += BestText(best);
    }
  }
  if (options.csv) return PrintCsv(list, BestFields({}));
  if (options.json) return PrintJson({{"best", std::move(list)}});
  if (winners.empty()) PrintMessage("no verified timing matches\n");
  return PrintText(text);
}

absl::Status RunQuery(const RecordsOptions& options) {
  HONE_RETURN_IF_ERROR(CheckForm(options));
  if (options.model.given() && options.filter.after_row > 0) {
    return UsageError("--after cannot be used with --model, because --model orders records by workload");
  }
  HONE_ASSIGN_OR_RETURN(Filter filter, options.ResolvedFilter());
  filter.with_workload_text = options.json;
  HONE_ASSIGN_OR_RETURN(const auto source, options.OpenToRead());
  RowPrinter printer(options);
  HONE_RETURN_IF_ERROR(printer.Begin());
  if (options.model.given()) return QueryModel(options, filter, *source, printer);
  Filter one_more = filter;
  if (filter.limit != SIZE_MAX) ++one_more.limit;
  size_t rows = 0;
  int64_t last = 0;
  HONE_RETURN_IF_ERROR(source->ForEach(one_more, [&](const StoredRecord& stored) {
    if (++rows > filter.limit) return absl::OkStatus();
    last = stored.row;
    return printer.Row(stored);
  }));
  if (rows > filter.limit) {
    PrintMessage(fmt::format("stopped at {} records; --after {} shows the next\n", filter.limit, last));
  }
  return printer.End(ordered_json::object());
}

absl::Status RunStats(const RecordsOptions& options) {
  HONE_RETURN_IF_ERROR(CheckForm(options));
  HONE_ASSIGN_OR_RETURN(const auto source, options.source.Open(OpenMode::kReadOnly));
  HONE_ASSIGN_OR_RETURN(const records::Stats stats, source->Summarize());
  ordered_json failed = ordered_json::object();
  for (const auto& [kind, count] : stats.failed) failed[std::string(FailureKindName(kind))] = count;
  if (options.csv) {
    ordered_json row = {{"records", stats.records}, {"workloads", stats.workloads}, {"devices", stats.devices}};
    row.update(failed);
    return PrintCsv(ordered_json::array({row}), row);
  }
  if (options.json) {
    return PrintJson({{"records", stats.records},
                      {"workloads", stats.workloads},
                      {"devices", stats.devices},
                      {"failed", std::move(failed)}});
  }
  std::string text = fmt::format("{}\n{} records, {} workloads, {} devices\n", source->name(), stats.records,
                                 stats.workloads, stats.devices);
  for (const auto& [kind, count] : stats.failed) {
    if (count > 0) text += fmt::format("failed: {} {}\n", count, FailureKindName(kind));
  }
  return PrintText(text);
}

}  // namespace hone::cli
