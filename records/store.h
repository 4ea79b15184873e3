// The database of results: one SQLite file, append-only. Start here; docs/RECORDS.md explains the schema to SQL users.
//
// At most one Store per file has it open for writing, on the whole machine; any number may read meanwhile, and each
// sees a consistent state. Append returns only when its rows would survive kill -9 and a power cut. "Best" is a query
// over all rows, never a stored answer. Not here: retention, networking, the meaning of a schedule. Threads: every
// member may be called from any thread. Appends take turns; questions have connections of their own, up to eight at a
// time, and wait for no append. Never use or destroy a Store in a forked child.
// Errors name the file and what to do: kNotFound (no file), kFailedPrecondition (not ours, a folder, a newer schema,
// being written by another process), kPermissionDenied, kResourceExhausted (disk full), kDataLoss (damaged file),
// kUnavailable (locked, or the disk failed: try again).
#ifndef HONE_RECORDS_STORE_H_
#define HONE_RECORDS_STORE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "records/database.h"
#include "records/readers.h"
#include "records/record.h"

namespace hone::records {

enum class OpenMode { kReadOnly, kReadWrite };

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
  std::string device_fingerprint;
  std::string compiler_version;
  enum class Outcomes { kAll, kTimed, kFailed } outcomes = Outcomes::kAll;
  std::optional<FailureKind> failure;
  bool confirmed_only = false;
  int64_t after_row = 0;            // only rows above this: pass the last row seen to get the next page
  size_t limit = 1000;              // rows returned at most; above 100,000 counts as 100,000
  size_t byte_limit = 16 << 20;     // what they may weigh together; one row is returned however much it weighs
  bool with_workload_text = false;  // fill Record::workload_text, which is the same for every row of a workload
};

// An answer of bounded size.
struct Page {
  std::vector<StoredRecord> rows;
  bool more = false;  // a limit ended it: ask again with after_row, the last row of this one
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

class Store {
 public:
  // kReadWrite creates the file and its folders where missing, and brings an older schema up to date.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::filesystem::path& path, OpenMode mode);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Stores the rows in one transaction and returns when they are on the disk. On an error nothing of the span was
  // acknowledged; appending it again is safe, since a measurement is stored once. Needs kReadWrite.
  absl::StatusOr<AppendReport> Append(std::span<const Record> records);

  // The winner of exactly this key, if any.
  absl::StatusOr<std::optional<BestRecord>> Best(const Key& key) const;

  // Best(key), else that of the nearest device and compiler with the same workload and target. Targets are never
  // mixed: code for another target may not even run.
  absl::StatusOr<std::optional<NearestRecord>> BestAnyDevice(const Key& key) const;

  // The winner of every key that passes the filter (outcomes, failure, confirmed_only and after_row do not apply), by
  // workload, target, device and compiler.
  absl::StatusOr<std::vector<BestRecord>> AllBest(const Filter& filter) const;

  absl::StatusOr<Page> Query(const Filter& filter) const;

  // All outcomes of one workload on every target and device, newest first: for a warm start or a cost model.
  absl::StatusOr<std::vector<StoredRecord>> ForWorkload(std::string_view digest, size_t limit = 10000) const;

  // The workload's canonical text; kNotFound where the store never saw it.
  absl::StatusOr<std::string> WorkloadText(std::string_view digest) const;

  absl::StatusOr<Stats> Summarize() const;

  // Reads the whole file (Open checks only small ones): kDataLoss with SQLite's finding if it is damaged.
  absl::Status CheckIntegrity() const;

  const std::filesystem::path& path() const { return path_; }

 private:
  Store(std::filesystem::path path, std::optional<Writer> writer, std::string reading_parameters);

  const std::filesystem::path path_;
  std::mutex write_mutex_;
  std::optional<Writer> writer_;  // guarded by write_mutex_; empty where the file was opened to be read
  mutable Readers readers_;
};

}  // namespace hone::records

#endif  // HONE_RECORDS_STORE_H_
