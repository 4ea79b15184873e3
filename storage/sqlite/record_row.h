// SPDX-License-Identifier: Apache-2.0
// Writes a record as a row of the tables of record_schema.h, and reads a row as a record. Used by SqliteStore only.
// There is one function per type of value; kColumns (records/record.h) lists the values.
#ifndef HONE_STORAGE_SQLITE_RECORD_ROW_H_
#define HONE_STORAGE_SQLITE_RECORD_ROW_H_

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "records/record.h"
#include "storage/sqlite/connection.h"

namespace hone::storage {

// Which parts of a record a query reads. The others stay empty.
enum class Scope {
  kAll,
  kWithoutText,  // all but the workload's text, which is long and the same for every row of the workload
  kRowAlone,     // only the row's own columns (Storage::kRow): no shared texts, nothing of the workload
};

// "SELECT ... FROM ..." with the columns that ReadRow reads; those outside of the scope are NULL, which ReadRow reads
// as empty. A query appends WHERE and ORDER BY.
std::string SelectRow(Scope scope);

// The record in the statement's current row. kDataLoss names the row if Append cannot have written its contents.
absl::StatusOr<records::StoredRecord> ReadRow(const Statement& statement);

// The statements of one Append. Lives no longer than its connection.
class RowWriter {
 public:
  static absl::StatusOr<RowWriter> Prepare(const Connection& connection);

  // Inserts a record that has passed Validate. False: the measurement is stored already. IsConstraintError and
  // kFailedPrecondition refuse this record only; any other error concerns the file.
  absl::StatusOr<bool> Write(const records::Record& record);

 private:
  struct Statements {
    Statement seen, put_workload, find_workload, add_text, find_text, insert;
  };
  RowWriter(const Connection* connection, Statements statements)
      : connection_(connection), use_(std::move(statements)) {}
  absl::StatusOr<int64_t> WorkloadId(const records::Record& record);
  absl::StatusOr<int64_t> TextId(const std::string& text);

  const Connection* connection_;
  Statements use_;
  std::map<std::string, int64_t> text_ids_;  // number of each text that this Append has used
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_SQLITE_RECORD_ROW_H_
