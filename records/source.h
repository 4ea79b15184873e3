// SPDX-License-Identifier: Apache-2.0
// Where records come from and go to: a file here (store.h), or the farm behind a tracker (cli/tracker_records.h). What
// is asked of records is asked of this, so that every command works on either.
//
// Also the values of questions and answers. Not here: which record wins (winner.h). Threads: as the implementation
// says.
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

// A row that was not stored, and why; the others of its batch were.
struct Rejected {
  size_t index = 0;  // in the span given to Append
  absl::Status why;
};

struct AppendReport {
  size_t appended = 0;
  size_t duplicates = 0;  // rows whose measurement_id the store had already: nothing was changed
  std::vector<Rejected> rejected;
};

// Which rows; what is left empty does not restrict. Rows come in the order appended.
struct Filter {
  std::string workload_digest;  // or the beginning of one
  std::string operator_label;   // part of the label
  std::string target;
  std::string other_target;  // the same in other words: rows of either pass
  std::string device_fingerprint;
  std::string compiler_version;
  enum class Outcomes { kAll, kTimed, kFailed } outcomes = Outcomes::kAll;
  std::optional<FailureKind> failure;
  bool confirmed_only = false;
  int64_t after_row = 0;            // only rows above this: pass the last row seen to get the next page
  size_t limit = SIZE_MAX;          // rows at most
  size_t byte_limit = 16 << 20;     // of a page of them (store.h): what its rows may weigh together
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

// Of the winners with the workload and the target of `wanted`, that of exactly this key, else of the nearest device and
// compiler. Targets are never mixed: code for another target may not even run.
std::optional<NearestRecord> Nearest(const Key& wanted, std::vector<BestRecord> winners);

// In the order in which people look for one: by operator, workload, target, device and compiler.
void SortForPeople(std::vector<BestRecord>& winners);

class Source {
 public:
  virtual ~Source() = default;

  virtual std::string name() const = 0;  // for messages: "records file /a/b", "tracker host:port"

  // Stores the rows, durably when it returns. On an error nothing of the span was acknowledged; appending it again is
  // safe, since a measurement is stored once.
  virtual absl::StatusOr<AppendReport> Append(std::span<const Record> records) = 0;

  // The winner of every key that passes the filter (outcomes, failure, confirmed_only and after_row do not apply), as
  // SortForPeople has them.
  virtual absl::StatusOr<std::vector<BestRecord>> AllBest(const Filter& filter) const = 0;

  // Every row that passes the filter, however many there are. An error of `visit` ends it. Rows that are appended
  // meanwhile may or may not come. Those that cannot be read are passed over; returns how many these were, which a
  // tracker does not tell.
  virtual absl::StatusOr<int64_t> Visit(const Filter& filter,
                                        const std::function<absl::Status(const StoredRecord&)>& visit) const = 0;
  // For whoever can do without these.
  absl::Status ForEach(const Filter& filter, const std::function<absl::Status(const StoredRecord&)>& visit) const {
    return Visit(filter, visit).status();
  }

  virtual absl::StatusOr<Stats> Summarize() const = 0;
};

}  // namespace hone::records

#endif  // HONE_RECORDS_SOURCE_H_
