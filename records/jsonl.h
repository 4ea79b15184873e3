// SPDX-License-Identifier: Apache-2.0
// Records as lines of JSON: one self-contained object per line, for exchange, backup in text form and other tools.
//
// Import merges: a measurement that the store has already is skipped, so importing a file twice, or two files that
// overlap, changes nothing more. A damaged line is reported with its number and never keeps the others out.
// docs/RECORDS.md lists the fields. Not for tables of numbers: plain SQL on the file serves those (docs/RECORDS.md).
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

// One line without its end.
std::string RecordToJson(const Record& record);

// kInvalidArgument naming the field that is missing, of the wrong type, or not as Validate wants it. Unknown fields are
// ignored.
absl::StatusOr<Record> RecordFromJson(std::string_view line);

struct ExportReport {
  int64_t records = 0;
  int64_t unreadable = 0;  // rows that were left out, as Source::Visit tells
};

// Gives the rows that pass the filter to `write`, in the order appended, as whole lines, many at a time. Appends may go
// on meanwhile: rows added after the call began may or may not be included.
absl::StatusOr<ExportReport> Export(const Source& source, Filter filter,
                                    const std::function<absl::Status(const std::string& lines)>& write);

struct BadLine {
  size_t line = 0;  // from 1
  std::string why;
};

struct ImportReport {
  size_t lines = 0;  // empty ones apart
  size_t appended = 0;
  size_t duplicates = 0;
  size_t rejected = 0;
  size_t to_come = 0;                   // were measured after `latest`
  std::vector<BadLine> first_rejected;  // at most 100 of them
};

// Appends in batches; a record that was measured after `latest` (LatestSaid) has that as its time. An error concerns
// the source, or a line of the stream that cannot be read (kUnavailable), never what is in a line; what was imported
// before it stays. progress: is told how many lines were read, after each.
absl::StatusOr<ImportReport> Import(Source& source, std::istream& in, Instant latest,
                                    const std::function<void(size_t lines)>& progress = {});

}  // namespace hone::records

#endif  // HONE_RECORDS_JSONL_H_
