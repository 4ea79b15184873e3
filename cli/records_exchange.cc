#include "cli/records_exchange.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>

#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "deploy/package/atomic_file.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "records/jsonl.h"
#include "records/store.h"

namespace hone::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using records::Filter;
using records::OpenMode;
using records::Source;

// Writes beside the target and renames, so that an export that breaks off leaves what was there.
absl::StatusOr<int64_t> ExportToFile(const RecordsOptions& options, const Source& source, const Filter& filter) {
  const fs::path file = options.file;
  std::error_code error;
  HONE_ASSIGN_OR_RETURN(const fs::path records, options.source.File());
  if (fs::equivalent(file, records, error)) {
    return UsageError(fmt::format("{} is the records file itself; export to another file", file.string()));
  }
  // A link is followed, and what is no file is written to as it is.
  const bool special = fs::exists(file, error) && !fs::is_regular_file(file, error);
  const fs::path target = package::FollowLinks(file.string());
  const fs::path partial = special ? file : fs::path(target.string() + ".partial");
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  if (!out) {
    return absl::PermissionDeniedError(
        fmt::format("cannot write {}: {}; export to a folder that exists and may be "
                    "written",
                    partial.string(), std::strerror(errno)));
  }
  absl::StatusOr<int64_t> count = records::Export(source, filter, out);
  out.close();
  if (count.ok() && !out) count = absl::ResourceExhaustedError("cannot finish the file; check that its disk has room");
  if (count.ok() && !special) {
    fs::rename(partial, target, error);
    if (!error) return count;
    count = absl::PermissionDeniedError(fmt::format("cannot replace it: {}", error.message()));
  }
  if (count.ok()) return count;
  if (!special) fs::remove(partial, error);
  return Annotate(count.status(), fmt::format("export to {}", file.string()));
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

}  // namespace

absl::Status RunExport(const RecordsOptions& options) {
  const bool to_stdout = options.file == "-";
  if (options.json && to_stdout) {
    return UsageError(
        "--json needs --output FILE here: what export writes on standard output is lines of JSON already");
  }
  HONE_ASSIGN_OR_RETURN(const auto source, options.source.Open(OpenMode::kReadOnly));
  HONE_ASSIGN_OR_RETURN(const Filter filter, options.ResolvedFilter());
  if (to_stdout) return records::Export(*source, filter, std::cout).status();
  HONE_ASSIGN_OR_RETURN(const int64_t count, ExportToFile(options, *source, filter));
  if (options.json) return PrintJson({{"records", count}, {"file", options.file}});
  return PrintText(fmt::format("wrote {} records to {}\n", count, options.file));
}

absl::Status RunImport(const RecordsOptions& options) {
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
  HONE_ASSIGN_OR_RETURN(const fs::path records, options.source.File());
  HONE_RETURN_IF_ERROR(CheckIsNoInput(records.string(), {options.file}));
  HONE_ASSIGN_OR_RETURN(const auto source, options.source.Open(OpenMode::kReadWrite));
  HONE_ASSIGN_OR_RETURN(const records::ImportReport report, records::Import(*source, from_stdin ? std::cin : file));
  HONE_RETURN_IF_ERROR(PrintReport(report, options.json));
  if (report.rejected == 0) return absl::OkStatus();
  std::string message = fmt::format("{} of {} lines of {} were not imported; the others were", report.rejected,
                                    report.lines, from_stdin ? "standard input" : options.file);
  for (const records::BadLine& bad : report.first_rejected)
    message += fmt::format("\n  line {}: {}", bad.line, bad.why);
  if (report.first_rejected.size() < report.rejected) message += "\n  and more";
  return absl::DataLossError(message);
}

}  // namespace hone::cli
