// SPDX-License-Identifier: Apache-2.0
// The records in memory, for tests: records/store.h says what each member does. They end with the object.
//
// Every query looks at all rows. Its answers are those of the SQLite file, which the conformance tests compare.
#ifndef HONE_STORAGE_MEMORY_RECORD_STORE_H_
#define HONE_STORAGE_MEMORY_RECORD_STORE_H_

#include <filesystem>
#include <functional>
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
#include "records/store.h"

namespace hone::storage {

class MemoryStore final : public records::Store {
 public:
  std::string name() const override { return "records in memory"; }
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
  absl::Status CheckIntegrity() const override { return absl::OkStatus(); }
  const std::filesystem::path& path() const override { return path_; }

 private:
  // The values that all rows of a workload share.
  struct Workload {
    int64_t number = 0;
    std::string operator_label, text;
    double flops = 0;
  };
  struct KeyRows {
    records::Key key;
    std::vector<const records::StoredRecord*> rows;  // in the order appended
  };
  // The caller of these holds mutex_.
  absl::Status CheckWorkload(const records::Record& record);
  int64_t NumberOf(const std::string& text);
  records::StoredRecord Filled(const records::StoredRecord& row, bool with_text) const;
  bool PassesKey(const records::Record& record, const records::Filter& filter) const;
  bool PassesRow(const records::StoredRecord& stored, const records::Filter& filter) const;
  std::map<records::KeyNumbers, KeyRows> KeysOf(const records::Filter& filter) const;
  std::optional<records::BestRecord> WinnerOf(const KeyRows& key) const;

  const std::filesystem::path path_;               // empty: there is no file
  mutable std::mutex mutex_;                       // guards all below
  std::map<std::string, Workload> workloads_;      // by digest
  std::map<std::string, int64_t> text_numbers_;    // of targets, devices and compilers
  std::map<int64_t, records::StoredRecord> rows_;  // by number; without what Workload holds
  std::map<std::string, int64_t> by_measurement_;  // measurement id to row
  int64_t last_row_ = 0;
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_MEMORY_RECORD_STORE_H_
