// SPDX-License-Identifier: Apache-2.0
// The records in one SQLite file. records/store.h says what each member does; record_schema.h has the tables.
//
// At most one SqliteStore on the machine has a file open for writing. Any number may read it meanwhile, and each sees a
// consistent state. Queries have connections of their own, up to eight at a time, and never wait for an append. Never
// use or destroy an SqliteStore in a forked child: SQLite's locks belong to the process that took them.
#ifndef HONE_STORAGE_SQLITE_RECORD_STORE_H_
#define HONE_STORAGE_SQLITE_RECORD_STORE_H_

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
#include "records/store.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/readers.h"

namespace hone::storage {

class SqliteStore final : public records::Store {
 public:
  // kReadWrite creates the file and its folders if they are missing, and brings an older schema up to date.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const std::filesystem::path& path, records::OpenMode mode);
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;

  std::string name() const override;
  absl::StatusOr<records::AppendReport> Append(std::span<const records::Record> records) override;
  absl::StatusOr<std::optional<records::BestRecord>> Best(const records::Key& key) const override;
  absl::StatusOr<std::vector<records::BestRecord>> AllBest(const records::Filter& filter) const override;
  absl::StatusOr<records::Stats> Summarize() const override;
  absl::StatusOr<records::BestPage> BestPageAfter(const records::Filter& filter,
                                                  const records::KeyNumbers& after) const override;
  absl::StatusOr<records::Page> Query(const records::Filter& filter) const override;
  absl::StatusOr<records::Page> Newest(const records::Filter& filter, int64_t before_row) const override;
  absl::StatusOr<std::vector<records::StoredRecord>> Sample(const records::Filter& filter, size_t rows,
                                                            const std::string& measured_by) const override;
  absl::StatusOr<std::string> WorkloadText(std::string_view digest) const override;
  absl::StatusOr<records::PruneReport> Prune(
      const records::Filter& filter, const records::PruneRule& rule, bool remove,
      const std::function<void(const records::PruneReport& so_far)>& progress) override;
  absl::Status ForEachRow(
      const std::function<void(const absl::StatusOr<records::StoredRecord>&)>& visit) const override;
  absl::Status CheckIntegrity() const override;
  const std::filesystem::path& path() const override { return path_; }

 private:
  SqliteStore(std::filesystem::path path, std::optional<Writer> writer, std::string reading_parameters, bool snapshot);

  const std::filesystem::path path_;
  std::mutex write_mutex_;
  std::optional<Writer> writer_;  // guarded by write_mutex_; empty if the file was opened for reading only
  mutable Readers readers_;
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_SQLITE_RECORD_STORE_H_
