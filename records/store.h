// SPDX-License-Identifier: Apache-2.0
// The database of results: append-only rows, and the queries that are asked of them. docs/RECORDS.md describes them.
//
// Store is an interface. storage/sqlite/record_store.h keeps the rows in an SQLite file, and
// storage/memory/record_store.h keeps them in memory for tests. storage/open.h opens the one that an address names.
// Both pass tests/unit/storage/records_conformance_test.cc, and so must every other.
// "Best" is a query over all rows, never a stored answer. Not here: retention, networking, the meaning of a schedule.
// Threads: every member may be called from any thread.
// Errors name the store and what to do: kNotFound (no file), kFailedPrecondition (not ours, a folder, a newer schema,
// opened for reading only, being written by another process), kPermissionDenied, kResourceExhausted (disk full),
// kDataLoss (damaged), kUnavailable (locked, or the disk failed: try again).
#ifndef HONE_RECORDS_STORE_H_
#define HONE_RECORDS_STORE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "records/prune.h"
#include "records/record.h"
#include "records/source.h"

namespace hone::records {

// kSnapshot: as kReadOnly, but every query sees the file as it was when it was opened, even if it changes or is
// deleted.
enum class OpenMode { kReadOnly, kSnapshot, kReadWrite };

inline constexpr size_t kPageRowsMax = 100'000;

// One page of an answer: at most kPageRowsMax rows and Filter::byte_limit bytes. A page holds at least one row, if
// there is one, however large that row is.
struct Page {
  std::vector<StoredRecord> rows;
  bool more = false;       // a limit ended the page: ask again after (Newest: before) its last row
  int64_t unreadable = 0;  // rows that the page left out because they are damaged
};

// The memory that a row takes, in a page or in a message: the lengths of its texts and a constant.
size_t ApproximateBytes(const Record& record);

// A key as the numbers that the store gave to its texts: workload, target, device, compiler. All zeros: before every
// key.
using KeyNumbers = std::array<int64_t, 4>;

struct PruneReport {
  int64_t rows = 0, prunable = 0;       // rows under the keys that were looked at, and how many of them go
  int64_t keys = 0, keys_prunable = 0;  // keys that were looked at, and how many of them lose rows
  absl::Status shrunk;                  // not OK: rows were removed, but the file keeps its size for this reason
};

struct BestPage {
  std::vector<BestRecord> best;    // in the order of the keys' numbers
  std::optional<KeyNumbers> next;  // pass it to get the following keys; empty: there are none
};

class Store : public Source {
 public:
  // One transaction, which is on the disk when Append returns: its rows survive kill -9 and a power cut. Appends from
  // several threads take turns.
  absl::StatusOr<AppendReport> Append(std::span<const Record> records) override = 0;

  // The winner of exactly this key; empty if the key has none.
  virtual absl::StatusOr<std::optional<BestRecord>> Best(const Key& key) const = 0;

  // The winner of exactly this key, else the Nearest.
  absl::StatusOr<std::optional<NearestRecord>> BestAnyDevice(const Key& key) const;

  // One page of AllBest, for callers that cannot hold all of it: the winners of the next keys after `after`. The store
  // chooses the size of the page; Filter::limit does not apply.
  virtual absl::StatusOr<BestPage> BestPageAfter(const Filter& filter, const KeyNumbers& after) const = 0;

  // One page of Visit.
  virtual absl::StatusOr<Page> Query(const Filter& filter) const = 0;

  absl::StatusOr<int64_t> Visit(const Filter& filter,
                                const std::function<absl::Status(const StoredRecord&)>& visit) const final;

  // A page from the other end: the newest rows first, of those that pass the filter (after_row too) and are below
  // `before_row`.
  virtual absl::StatusOr<Page> Newest(const Filter& filter, int64_t before_row = INT64_MAX) const = 0;

  // At most `rows` of the rows that pass the filter, spread evenly over their numbers; the first and the last are among
  // them. measured_by: only rows of this device or agent; "": of any. Each row costs a query, so ask for a few hundred.
  // Workload texts are not filled in.
  virtual absl::StatusOr<std::vector<StoredRecord>> Sample(const Filter& filter, size_t rows,
                                                           const std::string& measured_by = "") const = 0;

  // The canonical text of the workload with this whole digest. It is never empty, because the first record of a
  // workload must bring it. It stays when the workload's rows are pruned. kNotFound: the store never saw the workload.
  virtual absl::StatusOr<std::string> WorkloadText(std::string_view digest) const = 0;

  // Counts the rows that may go (Prunable) under the keys that pass the filter. With `remove` it removes them, one key
  // after the other, and gives their room back to the file system. Only a user's explicit request may set `remove`. The
  // newest row always stays, so that no row number is given twice. `remove` needs kReadWrite. progress, if given, is
  // called after each key.
  virtual absl::StatusOr<PruneReport> Prune(const Filter& filter, const PruneRule& rule, bool remove,
                                            const std::function<void(const PruneReport& so_far)>& progress = {}) = 0;

  // Shows every row, or why it cannot be read (kDataLoss naming it). Other queries leave such rows out. Workload texts
  // are not filled in.
  virtual absl::Status ForEachRow(const std::function<void(const absl::StatusOr<StoredRecord>&)>& visit) const = 0;

  // Reads the whole store, while opening checks only small files: kDataLoss with the finding if it is damaged.
  virtual absl::Status CheckIntegrity() const = 0;

  // The file that holds the rows, whose disk they fill; empty if the store has no file on this machine.
  virtual const std::filesystem::path& path() const = 0;
};

}  // namespace hone::records

#endif  // HONE_RECORDS_STORE_H_
