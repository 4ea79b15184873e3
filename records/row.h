// How a record becomes a row of the tables of schema.h, and a row a record again. Used by Store only.
#ifndef HONE_RECORDS_ROW_H_
#define HONE_RECORDS_ROW_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "records/record.h"
#include "records/sqlite.h"

namespace hone::records {

// The columns ReadRow wants, in its order, of `records r JOIN workloads w`, but for the last: the workload's text.
extern const std::string_view kRowColumns;
inline constexpr int kRowColumnCount = 24;  // with the text; further columns of a query start here

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
  RowWriter(const Connection* connection, Statement seen, Statement add_workload, Statement find_workload,
            Statement insert);
  absl::StatusOr<int64_t> WorkloadId(const Record& record);
  void BindOutcome(const Outcome& outcome);

  const Connection* connection_;
  Statement seen_;
  Statement add_workload_;
  Statement find_workload_;
  Statement insert_;
};

}  // namespace hone::records

#endif  // HONE_RECORDS_ROW_H_
