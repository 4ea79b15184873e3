// SPDX-License-Identifier: Apache-2.0
// How a record becomes a row of the tables of schema.h, and a row a record again. Used by Store only. One function per
// kind of value; which values there are stands in kColumns.
#ifndef HONE_RECORDS_ROW_H_
#define HONE_RECORDS_ROW_H_

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "records/record.h"
#include "records/sqlite.h"

namespace hone::records {

// How much of a record is looked up; the rest stays empty.
enum class Scope {
  kAll,
  kWithoutText,  // not the text of its workload, which is the same for every row of it, and long
  kRowAlone,     // what is in its own row: nothing of its workload, and no text that many rows have alike
};

// "SELECT ... FROM ...", with the columns ReadRow wants first; a query adds WHERE and ORDER BY.
std::string SelectRow(Scope scope);

// kDataLoss naming the row where its contents are not what Append writes.
absl::StatusOr<StoredRecord> ReadRow(const Statement& statement);

// The statements of one Append. Lives no longer than its connection.
class RowWriter {
 public:
  static absl::StatusOr<RowWriter> Prepare(const Connection& connection);

  // False where the measurement is stored already. IsConstraintError and kFailedPrecondition concern this record only;
  // any other error concerns the file. `record` has passed Validate.
  absl::StatusOr<bool> Write(const Record& record);

 private:
  struct Statements {
    Statement seen, put_workload, find_workload, add_text, find_text, insert;
  };
  RowWriter(const Connection* connection, Statements statements)
      : connection_(connection), use_(std::move(statements)) {}
  absl::StatusOr<int64_t> WorkloadId(const Record& record);
  absl::StatusOr<int64_t> TextId(const std::string& text);

  const Connection* connection_;
  Statements use_;
  std::map<std::string, int64_t> text_ids_;  // of this Append
};

}  // namespace hone::records

#endif  // HONE_RECORDS_ROW_H_
