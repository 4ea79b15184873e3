// SPDX-License-Identifier: Apache-2.0
// Source: the records that commands read and append, in a store on this machine (store.h) or behind a tracker
// (cli/tracker_records.h). Commands use this interface alone, so that each works on both.
//
// This header also has the values of queries and answers. Not here: which record wins (winner.h). Threads: as the
// implementation says.
#ifndef HONE_RECORDS_SOURCE_H_
#define HONE_RECORDS_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "records/record.h"

namespace hone::records {

// A row that was refused, and why. The other rows of its span were stored.
struct Rejected {
  size_t index = 0;  // in the span given to Append
  absl::Status why;
};

struct AppendReport {
  size_t appended = 0;
  size_t duplicates = 0;  // rows whose measurement_id is stored already; they changed nothing
  std::vector<Rejected> rejected;
};

// Which rows a query returns, in the order appended. An empty field does not restrict.
struct Filter {
  std::string workload_digest;  // or the beginning of one
  std::string operator_label;   // part of the label; upper and lower case differ
  std::string target;
  std::string other_target;  // another spelling of the target: rows of either pass; empty: none
  std::string device_fingerprint;
  std::string compiler_version;
  enum class Outcomes { kAll, kTimed, kFailed } outcomes = Outcomes::kAll;
  std::optional<FailureKind> failure;
  bool confirmed_only = false;
  std::string model;                // Record::model; for rows, not for winners
  int64_t after_row = 0;            // only rows above this: pass the last row seen to get the next page
  size_t limit = SIZE_MAX;          // the most rows of a page, of all that Visit visits, or winners of AllBest
  size_t byte_limit = 16 << 20;     // bytes of a page of rows (store.h), by ApproximateBytes
  bool with_workload_text = false;  // fill Record::workload_text, which is the same for every row of a workload
};

// The winner under one key. winner.h defines it; docs/RECORDS.md, "Which record is best", tells it.
struct BestRecord {
  StoredRecord stored;
  double median_seconds = 0;              // of the repeats that count
  std::optional<double> default_seconds;  // likewise, of the default schedule in the same batch, if it was there
  bool confirmed = false;                 // won the newest final comparison
  int64_t records = 0;                    // rows under this key, failures included
};

enum class Closeness { kExact, kSameDeviceOtherCompiler, kOtherDevice };
std::string_view ClosenessName(Closeness closeness);

struct NearestRecord {
  BestRecord best;
  Closeness closeness = Closeness::kExact;
  double device_similarity = 1;  // 0 to 1: share of words the two fingerprints have in common; 1 for the same device
};

struct Stats {
  int64_t records = 0;
  int64_t workloads = 0;
  int64_t devices = 0;                    // distinct device fingerprints
  std::map<FailureKind, int64_t> failed;  // every kind, with 0 where there is none
};

// Among the winners that have the workload and the target of `wanted`: the winner of exactly that key, else the one of
// the nearest device and compiler. Targets are never mixed, because code for another target may not even run.
std::optional<NearestRecord> Nearest(const Key& wanted, std::vector<BestRecord> winners);

// Sorts by operator, workload, target, device and compiler: the order of lists that users read.
void SortForDisplay(std::vector<BestRecord>& winners);

class Source {
 public:
  virtual ~Source() = default;

  virtual std::string name() const = 0;  // for messages: "records file /a/b", "tracker host:port"

  // Stores the rows, durably when it returns. On an error nothing of the span was acknowledged; appending it again is
  // safe, since a measurement is stored once.
  virtual absl::StatusOr<AppendReport> Append(std::span<const Record> records) = 0;

  // The winner of every key that passes the filter (outcomes, failure, confirmed_only and after_row do not apply), as
  // SortForDisplay has them.
  virtual absl::StatusOr<std::vector<BestRecord>> AllBest(const Filter& filter) const = 0;

  // Calls `visit` with every row that passes the filter, up to Filter::limit. An error of `visit` ends the call.
  // Rows that are appended meanwhile may or may not be visited. Damaged rows are left out; returns how many. A tracker
  // does not report that number, so it is 0 there.
  virtual absl::StatusOr<int64_t> Visit(const Filter& filter,
                                        const std::function<absl::Status(const StoredRecord&)>& visit) const = 0;
  // Visit for callers that ignore the number of damaged rows.
  absl::Status ForEach(const Filter& filter, const std::function<absl::Status(const StoredRecord&)>& visit) const {
    return Visit(filter, visit).status();
  }

  virtual absl::StatusOr<Stats> Summarize() const = 0;
};

}  // namespace hone::records

#endif  // HONE_RECORDS_SOURCE_H_
