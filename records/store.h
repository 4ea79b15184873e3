// SPDX-License-Identifier: Apache-2.0
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

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
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
#include "records/prune.h"
#include "records/readers.h"
#include "records/record.h"
#include "records/source.h"

namespace hone::records {

enum class OpenMode { kReadOnly, kReadWrite };

// An answer of bounded size: at most 100,000 rows and Filter::byte_limit, but one row however much it weighs.
struct Page {
  std::vector<StoredRecord> rows;
  bool more = false;       // a limit ended it: ask again after (Newest: before) the last row of this one
  int64_t unreadable = 0;  // rows that were passed over
};

// A key by the numbers that its texts have in the file: workload, target, device, compiler.
using KeyNumbers = std::array<int64_t, 4>;

struct PruneReport {
  int64_t rows = 0, going = 0;       // of those keys: all, and those that go
  int64_t keys = 0, keys_going = 0;  // keys, and those of which rows go
  absl::Status shrunk;               // why the file keeps its size though rows were removed
};

struct BestPage {
  std::vector<BestRecord> best;    // by numbers of their keys
  std::optional<KeyNumbers> next;  // there may be more, after this one
};

class Store final : public Source {
 public:
  // kReadWrite creates the file and its folders where missing, and brings an older schema up to date.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::filesystem::path& path, OpenMode mode);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  std::string name() const override;

  // In one transaction. Needs kReadWrite.
  absl::StatusOr<AppendReport> Append(std::span<const Record> records) override;

  // The winner of exactly this key, if any.
  absl::StatusOr<std::optional<BestRecord>> Best(const Key& key) const;

  // Best(key), else the Nearest.
  absl::StatusOr<std::optional<NearestRecord>> BestAnyDevice(const Key& key) const;

  absl::StatusOr<std::vector<BestRecord>> AllBest(const Filter& filter) const override;
  absl::StatusOr<int64_t> Visit(const Filter& filter,
                                const std::function<absl::Status(const StoredRecord&)>& visit) const override;
  absl::StatusOr<Stats> Summarize() const override;

  // A part of AllBest, for who cannot hold it all: the winners of the next keys after that one.
  absl::StatusOr<BestPage> SomeBest(const Filter& filter, const KeyNumbers& after) const;

  // A part of Visit.
  absl::StatusOr<Page> Query(const Filter& filter) const;

  // The same from the other end: the newest first, of the rows below that one.
  absl::StatusOr<Page> Newest(const Filter& filter, int64_t before_row = INT64_MAX) const;

  // At most so many of the rows that fit, spread evenly over the numbers that these have, the first and the last among
  // them. measured_by: of which device or agent; "": of any. Asks for each by itself, so it is for some hundred.
  absl::StatusOr<std::vector<StoredRecord>> Sample(const Filter& filter, size_t rows,
                                                   const std::string& measured_by = "") const;

  // The workload's canonical text; kNotFound where the store never saw it.
  absl::StatusOr<std::string> WorkloadText(std::string_view digest) const;

  // Counts the rows that may go (Prunable) under the keys that pass the filter; with `remove`, removes them, key by
  // key, and gives their room back to the file system. The newest row of all stays: no number is given again. Only
  // where a person asked for it. `remove` needs kReadWrite.
  absl::StatusOr<PruneReport> Prune(const Filter& filter, const PruneRule& rule, bool remove,
                                    const std::function<void(const PruneReport& so_far)>& progress = {});

  // Shows every row, or why it cannot be read (kDataLoss naming it): other questions skip those.
  absl::Status EveryRow(const std::function<void(const absl::StatusOr<StoredRecord>&)>& visit) const;

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
