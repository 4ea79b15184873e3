#include "cli/records_command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "base/median.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "fmt/chrono.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "records/default_path.h"
#include "records/jsonl.h"
#include "records/store.h"
#include "records/winner.h"

namespace hone::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using records::BestRecord;
using records::Failure;
using records::Filter;
using records::OpenMode;
using records::Record;
using records::Store;
using records::StoredRecord;
using records::Timing;

struct Options {
  std::string records;
  bool json = false;
  Filter filter;
  std::string failure;     // a kind, "any" or empty
  std::string file = "-";  // of export and import; "-" is the standard stream
};

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const Options& options, OpenMode mode) {
  fs::path path = options.records;
  if (path.empty()) {
    HONE_ASSIGN_OR_RETURN(path, records::DefaultRecordsPath());
  }
  return Store::Open(path, mode);
}

std::string Utc(records::Instant when) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(when);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

absl::Status SetFailure(Options& options) {
  if (options.failure.empty()) return absl::OkStatus();
  options.filter.outcomes = Filter::Outcomes::kFailed;
  if (options.failure == "any") return absl::OkStatus();
  options.filter.failure = records::FailureKindFromName(options.failure);
  if (options.filter.failure.has_value()) return absl::OkStatus();
  std::string known = "any";
  for (const auto kind : records::kAllFailureKinds) known += fmt::format(", {}", records::FailureKindName(kind));
  return UsageError(fmt::format("--failed does not know '{}'; it takes one of: {}", options.failure, known));
}

ordered_json BestFields(const BestRecord& best) {
  const Record& record = best.stored.record;
  return {{"workload", record.key.workload_digest},
          {"operator", record.operator_label},
          {"target", record.key.target},
          {"device", record.key.device_fingerprint},
          {"compiler", record.key.compiler_version},
          {"schedule", record.schedule},
          {"median_ms", best.median_seconds * 1e3},
          {"gflops", record.flops / best.median_seconds * 1e-9},
          {"default_ms", best.default_seconds.has_value() ? ordered_json(*best.default_seconds * 1e3) : ordered_json()},
          {"confirmed", best.confirmed},
          {"records", best.records},
          {"measured_at", Utc(record.measured_at)},
          {"measurement", record.measurement_id}};
}

// What it was compared with.
std::string ComparisonOf(const BestRecord& best) {
  const char* confirmed = best.confirmed ? "confirmed" : "not confirmed";
  if (!best.default_seconds.has_value()) return confirmed;
  return fmt::format("{}, {:.2f}x the default", confirmed, *best.default_seconds / best.median_seconds);
}

absl::Status RunBest(const Options& options) {
  HONE_ASSIGN_OR_RETURN(const auto store, OpenStore(options, OpenMode::kReadOnly));
  HONE_ASSIGN_OR_RETURN(const std::vector<BestRecord> winners, store->AllBest(options.filter));
  if (options.json) {
    ordered_json document = {{"best", ordered_json::array()}};
    for (const BestRecord& best : winners) document["best"].push_back(BestFields(best));
    return PrintJson(document);
  }
  if (winners.empty()) fmt::print(stderr, "no verified timing matches\n");
  std::string text;
  for (const BestRecord& best : winners) {
    const Record& record = best.stored.record;
    text += fmt::format(
        "{:.12}  {}\n    {:.4f} ms  {:.1f} GFLOP/s  best of {} records, {}, {}\n    target {}, device {}, {}\n",
        record.key.workload_digest, record.operator_label, best.median_seconds * 1e3,
        record.flops / best.median_seconds * 1e-9, best.records, ComparisonOf(best), Utc(record.measured_at),
        record.key.target, record.key.device_fingerprint, record.key.compiler_version);
    text += fmt::format("    {}\n", record.schedule.empty() ? "(unscheduled)" : record.schedule);
  }
  return PrintText(text);
}

absl::Status RunQuery(const Options& given) {
  Options options = given;
  HONE_RETURN_IF_ERROR(SetFailure(options));
  HONE_ASSIGN_OR_RETURN(const auto store, OpenStore(options, OpenMode::kReadOnly));
  options.filter.byte_limit = SIZE_MAX;  // they are printed as they come
  HONE_ASSIGN_OR_RETURN(const records::Page page, store->Query(options.filter));
  const std::vector<StoredRecord>& rows = page.rows;
  if (options.json) {
    ordered_json document = {{"records", ordered_json::array()}};
    for (const StoredRecord& stored : rows) {
      ordered_json fields = ordered_json::parse(records::RecordToJson(stored.record));
      fields["row"] = stored.row;
      document["records"].push_back(std::move(fields));
    }
    return PrintJson(document);
  }
  std::string text;
  for (const StoredRecord& stored : rows) {
    const Record& record = stored.record;
    std::string outcome;
    if (const auto* timing = std::get_if<Timing>(&record.outcome)) {
      const auto repeats = records::CountingRepeats(timing->seconds, timing->first_interleaved);
      outcome = fmt::format("{:.4f} ms{}{}", Median({repeats.begin(), repeats.end()}) * 1e3,
                            timing->verified ? "" : " unverified", timing->confirmed ? " confirmed" : "");
    } else {
      const auto& failure = std::get<Failure>(record.outcome);
      outcome = fmt::format("{}: {}", records::FailureKindName(failure.kind),
                            failure.text.substr(0, failure.text.find('\n')));
    }
    text += fmt::format("{}  {:.12}  {}  {}  {}\n", stored.row, record.key.workload_digest, Utc(record.measured_at),
                        record.operator_label, outcome);
  }
  if (page.more && !rows.empty()) {
    fmt::print(stderr, "stopped at {} records; --after {} shows the next\n", rows.size(), rows.back().row);
  }
  return PrintText(text);
}

absl::Status RunStats(const Options& options) {
  HONE_ASSIGN_OR_RETURN(const auto store, OpenStore(options, OpenMode::kReadOnly));
  HONE_ASSIGN_OR_RETURN(const records::Stats stats, store->Summarize());
  ordered_json failed = ordered_json::object();
  for (const auto& [kind, count] : stats.failed) failed[std::string(records::FailureKindName(kind))] = count;
  if (options.json) {
    return PrintJson({{"records", stats.records},
                      {"workloads", stats.workloads},
                      {"devices", stats.devices},
                      {"failed", std::move(failed)}});
  }
  std::string text = fmt::format("{}\n{} records, {} workloads, {} devices\n", store->path().string(), stats.records,
                                 stats.workloads, stats.devices);
  for (const auto& [kind, count] : stats.failed) {
    if (count > 0) text += fmt::format("failed: {} {}\n", count, records::FailureKindName(kind));
  }
  return PrintText(text);
}

// Writes beside the target and renames, so that an export that breaks off leaves what was there.
absl::StatusOr<int64_t> ExportToFile(const Store& store, const Filter& filter, const fs::path& file) {
  std::error_code error;
  if (fs::equivalent(file, store.path(), error)) {
    return UsageError(fmt::format("{} is the records file itself; export to another file", file.string()));
  }
  const fs::path partial = file.string() + ".partial";
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  if (!out) {
    return absl::PermissionDeniedError(
        fmt::format("cannot write {}: {}; export to a folder that exists and may be "
                    "written",
                    partial.string(), std::strerror(errno)));
  }
  absl::StatusOr<int64_t> count = records::Export(store, filter, out);
  out.close();
  if (count.ok() && !out) count = absl::ResourceExhaustedError("cannot finish the file; check that its disk has room");
  if (count.ok()) {
    fs::rename(partial, file, error);
    if (!error) return count;
    count = absl::PermissionDeniedError(fmt::format("cannot replace it: {}", error.message()));
  }
  fs::remove(partial, error);
  return Annotate(count.status(), fmt::format("export to {}", file.string()));
}

absl::Status RunExport(const Options& options) {
  const bool to_stdout = options.file == "-";
  if (options.json && to_stdout) {
    return UsageError(
        "--json needs --output FILE here: what export writes on standard output is lines of JSON already");
  }
  HONE_ASSIGN_OR_RETURN(const auto store, OpenStore(options, OpenMode::kReadOnly));
  if (to_stdout) return records::Export(*store, options.filter, std::cout).status();
  HONE_ASSIGN_OR_RETURN(const int64_t count, ExportToFile(*store, options.filter, options.file));
  if (options.json) return PrintJson({{"records", count}, {"file", options.file}});
  return PrintText(fmt::format("wrote {} records to {}\n", count, options.file));
}

absl::Status PrintReport(const records::ImportReport& report, bool json) {
  if (!json) {
    return PrintText(fmt::format("{} lines: {} records added, {} there already\n", report.lines, report.appended,
                                 report.duplicates));
  }
  ordered_json lines = ordered_json::array();
  for (const records::BadLine& bad : report.first_rejected) lines.push_back({{"line", bad.line}, {"why", bad.why}});
  return PrintJson({{"lines", report.lines},
                    {"appended", report.appended},
                    {"duplicates", report.duplicates},
                    {"rejected", report.rejected},
                    {"first_rejected", std::move(lines)}});
}

absl::Status RunImport(const Options& options) {
  std::ifstream file;
  const bool from_stdin = options.file == "-";
  if (!from_stdin) {
    std::error_code error;
    if (fs::is_directory(options.file, error)) {
      return absl::FailedPreconditionError(options.file + " is a folder; import the files in it one by one");
    }
    file.open(options.file, std::ios::binary);
    if (!file) {
      return absl::NotFoundError(fmt::format("cannot read {}: {}", options.file, std::strerror(errno)));
    }
  }
  HONE_ASSIGN_OR_RETURN(const auto store, OpenStore(options, OpenMode::kReadWrite));
  HONE_ASSIGN_OR_RETURN(const records::ImportReport report, records::Import(*store, from_stdin ? std::cin : file));
  HONE_RETURN_IF_ERROR(PrintReport(report, options.json));
  if (report.rejected == 0) return absl::OkStatus();
  std::string message = fmt::format("{} of {} lines of {} were not imported; the others were", report.rejected,
                                    report.lines, from_stdin ? "standard input" : options.file);
  for (const records::BadLine& bad : report.first_rejected)
    message += fmt::format("\n  line {}: {}", bad.line, bad.why);
  if (report.first_rejected.size() < report.rejected) message += "\n  and more";
  return absl::DataLossError(message);
}

void AddFilter(CLI::App* command, Options& options) {
  command->add_option("--workload", options.filter.workload_digest, "workload digest, or the beginning of one");
  command->add_option("--operator", options.filter.operator_label, "part of the operator's label");
  command->add_option("--target", options.filter.target, "target text, as stored");
  command->add_option("--device", options.filter.device_fingerprint, "device fingerprint, as stored");
  command->add_option("--compiler", options.filter.compiler_version, "compiler version, as stored");
}

}  // namespace

void AddRecordsCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("records", "look into the database of results, or carry it elsewhere");
  command->require_subcommand(1);
  command->add_option("--records", options->records, "records file (default: ~/.local/share/hone/records.db)");
  command->add_flag("--json", options->json, "print one JSON document and nothing else");
  const auto add = [&](const char* name, const char* description, absl::Status (*run)(const Options&)) {
    CLI::App* sub = command->add_subcommand(name, description);
    sub->fallthrough();  // --records and --json may come before or after its name
    sub->callback([options, result, run] { *result = run(*options); });
    return sub;
  };

  CLI::App* best = add("best", "the fastest verified schedule of each workload, target, device and compiler", RunBest);
  AddFilter(best, *options);
  best->add_option("--limit", options->filter.limit, "winners shown at most (default 1000)");

  CLI::App* query = add("query", "records in the order they were made, failures included", RunQuery);
  AddFilter(query, *options);
  query->add_option("--failed", options->failure, "only failures of this kind, or any");
  query->add_flag("--confirmed", options->filter.confirmed_only, "only timings of a final comparison");
  query->add_option("--after", options->filter.after_row, "only rows after this one");
  query->add_option("--limit", options->filter.limit, "records shown at most (default 1000, at most 100000)");

  add("stats", "how many records, workloads, devices and failures", RunStats);

  CLI::App* to = add("export", "write records as lines of JSON", RunExport);
  AddFilter(to, *options);
  to->add_option("-o,--output", options->file, "file to write; standard output without it");

  CLI::App* from = add("import", "add records from lines of JSON; those there already are skipped", RunImport);
  from->add_option("file", options->file, "file to read, or - for standard input")->required();
}

}  // namespace hone::cli
