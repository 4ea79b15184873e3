// SPDX-License-Identifier: Apache-2.0
// Records as lines of JSON: one self-contained object per line, for exchange, backup in text form and other tools.
//
// Import merges: it skips a measurement that the store has already, so importing a file twice changes nothing more. A
// damaged line is reported with its number, and the other lines are imported. docs/RECORDS.md lists the fields. Not for
// tables of numbers: those come from plain SQL on the file. Start at Export and Import.
#ifndef HONE_RECORDS_JSONL_H_
#define HONE_RECORDS_JSONL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "records/record.h"
#include "records/source.h"

namespace hone::records {

// The record as one line, without the line end.
std::string RecordToJson(const Record& record);

// kInvalidArgument names the field that is missing, has the wrong type, or fails Validate. Unknown fields are ignored.
absl::StatusOr<Record> RecordFromJson(std::string_view line);

struct ExportReport {
  int64_t records = 0;
  int64_t unreadable = 0;  // damaged rows, which were left out; 0 for a tracker, which does not report them
};

// Calls `write` with the rows that pass the filter, in the order appended, as whole lines, many at a time. An error of
// `write` ends the call. Other threads may append meanwhile: rows added after the call began may or may not be
// included.
absl::StatusOr<ExportReport> Export(const Source& source, Filter filter,
                                    const std::function<absl::Status(const std::string& lines)>& write);

struct BadLine {
  size_t line = 0;  // counted from 1
  std::string why;
};

struct ImportReport {
  size_t lines = 0;  // that are not empty
  size_t appended = 0;
  size_t duplicates = 0;                // records that the source has already
  size_t rejected = 0;                  // lines that are no record, and records that the source refused
  size_t future_dated = 0;              // records with a measured_at after `latest`, duplicates included
  std::vector<BadLine> first_rejected;  // at most 100, sorted by line
};

// Appends the records of the stream in batches. A record with a measured_at after `latest` (MeasuredAtMax) gets
// `latest` instead. A bad line is reported and never fails the call. Errors: those of the source, and kUnavailable if
// the stream cannot be read; what was imported before stays stored. progress, if given, is called after each line that
// is not empty with the number of that line.
absl::StatusOr<ImportReport> Import(Source& source, std::istream& in, Instant latest,
                                    const std::function<void(size_t lines)>& progress = {});

}  // namespace hone::records

#endif  // HONE_RECORDS_JSONL_H_
