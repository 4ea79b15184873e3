// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>

#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/quantity_text.h"
#include "cli/records_verbs.h"
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

absl::StatusOr<records::ExportReport> ExportToFile(const RecordsOptions& options, const Source& source,
                                                   const Filter& filter) {
  HONE_ASSIGN_OR_RETURN(package::AtomicFile file, package::AtomicFile::Create(options.file));
  ProgressLine line;
  size_t bytes = 0;
  const auto write = [&](const std::string& lines) -> absl::Status {
    bytes += lines.size();
    line.Show(fmt::format("{} written", BytesText(static_cast<double>(bytes))));
    return file.Write({reinterpret_cast<const uint8_t*>(lines.data()), lines.size()});
  };
  HONE_ASSIGN_OR_RETURN(const records::ExportReport report, records::Export(source, filter, write));
  HONE_RETURN_IF_ERROR(file.Commit());
  return report;
}

absl::Status CheckNoneLeftOut(const records::ExportReport& report, const RecordsOptions& options) {
  if (report.unreadable == 0) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const fs::path records, options.source.File());
  return absl::DataLossError(fmt::format(
      "{} records of {} cannot be read; the export has the other {}; `hone records verify` says what is wrong",
      report.unreadable, records.string(), report.records));
}

absl::Status PrintReport(const records::ImportReport& report, bool json) {
  if (!json) {
    return PrintText(fmt::format("{} lines: {} records added, {} existed already\n", report.lines, report.appended,
                                 report.duplicates));
  }
  ordered_json lines = ordered_json::array();
  for (const records::BadLine& bad : report.first_rejected) lines.push_back({{"line", bad.line}, {"why", bad.why}});
  return PrintJson({{"lines", report.lines},
                    {"appended", report.appended},
                    {"duplicates", report.duplicates},
                    {"rejected", report.rejected},
                    {"to_come", report.future_dated},
                    {"first_rejected", std::move(lines)}});
}

}  // namespace

absl::Status RunExport(const RecordsOptions& options) {
  const bool to_stdout = options.file == "-";
  if (options.json && to_stdout) {
    return UsageError("export with --json needs --output FILE, because export writes the records to standard output");
  }
  if (!to_stdout) {
    HONE_RETURN_IF_ERROR(options.source.CheckNotARecordsFile(options.file));
    HONE_RETURN_IF_ERROR(CheckCanCreate(options.file));
  }
  HONE_ASSIGN_OR_RETURN(const auto source, options.source.Open(OpenMode::kReadOnly));
  HONE_ASSIGN_OR_RETURN(const Filter filter, options.ResolvedFilter());
  HONE_ASSIGN_OR_RETURN(const records::ExportReport report, to_stdout ? records::Export(*source, filter, PrintText)
                                                                      : ExportToFile(options, *source, filter));
  if (options.json) {
    HONE_RETURN_IF_ERROR(
        PrintJson({{"records", report.records}, {"unreadable", report.unreadable}, {"file", options.file}}));
  } else if (!to_stdout) {
    HONE_RETURN_IF_ERROR(PrintText(fmt::format("wrote {} records to {}\n", report.records, options.file)));
  }
  return CheckNoneLeftOut(report, options);
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
  HONE_RETURN_IF_ERROR(CheckNotAnInput(records.string(), {options.file}));
  HONE_ASSIGN_OR_RETURN(const auto source, options.source.Open(OpenMode::kReadWrite));
  const std::string name = from_stdin ? "standard input" : options.file;
  // Records with times in the future get the latest plausible time of this clock. A tracker corrects them by its own.
  const records::Instant latest =
      options.source.tracker.given()
          ? records::Instant::max()
          : records::MeasuredAtMax(std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()));
  ProgressLine line;
  const auto show = [&line](size_t lines) { line.Show(fmt::format("{} lines read", lines)); };
  const absl::StatusOr<records::ImportReport> imported =
      records::Import(*source, from_stdin ? std::cin : file, latest, show);
  line.Finish();
  if (!imported.ok()) return Annotate(imported.status(), fmt::format("import of {}", name));
  const records::ImportReport& report = *imported;
  if (from_stdin && std::ferror(stdin) != 0) {  // std::cin treats a read error as the end
    return absl::UnavailableError(
        fmt::format("standard input cannot be read after {} lines; the lines before were imported", report.lines));
  }
  HONE_RETURN_IF_ERROR(PrintReport(report, options.json));
  if (report.future_dated > 0) {
    PrintMessage(
        fmt::format("{} of the lines have a time in the future by this machine's clock; they were recorded with the "
                    "current time; check the clock\n",
                    report.future_dated));
  }
  if (report.rejected == 0) return absl::OkStatus();
  std::string message = fmt::format("{} of {} lines of {} were not imported; the others were imported", report.rejected,
                                    report.lines, name);
  for (const records::BadLine& bad : report.first_rejected)
    message += fmt::format("\n  line {}: {}", bad.line, bad.why);
  if (report.first_rejected.size() < report.rejected) message += "\n  and more";
  return absl::DataLossError(message);
}

}  // namespace hone::cli
