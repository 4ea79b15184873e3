// SPDX-License-Identifier: Apache-2.0
#include "storage/memory/record_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/digest.h"
#include "base/status.h"
#include "fmt/format.h"
#include "records/winner.h"

namespace hone::storage {
namespace {

using records::BestRecord;
using records::Filter;
using records::KeyNumbers;
using records::Record;
using records::StoredRecord;

constexpr size_t kFailureTextBytesMax = 16 * 1024;

// Appends rows in the order given until a limit of the page is reached.
class PageFiller {
 public:
  explicit PageFiller(const Filter& filter)
      : rows_max_(std::min(filter.limit, records::kPageRowsMax)), bytes_max_(filter.byte_limit) {}

  // False: the page is full, and the row is not in it.
  bool Add(StoredRecord row) {
    page_.more = page_.rows.size() >= rows_max_ || (bytes_ >= bytes_max_ && !page_.rows.empty());
    if (page_.more) return false;
    bytes_ += records::ApproximateBytes(row.record);
    page_.rows.push_back(std::move(row));
    return true;
  }
  records::Page Take() { return std::move(page_); }

 private:
  const size_t rows_max_, bytes_max_;
  size_t bytes_ = 0;
  records::Page page_;
};

std::vector<records::Contender> ContendersOf(const std::vector<const StoredRecord*>& rows) {
  std::vector<records::Contender> contenders;
  for (const StoredRecord* row : rows) contenders.push_back(records::ContenderOf(*row));
  return contenders;
}

}  // namespace

int64_t MemoryStore::NumberOf(const std::string& text) {
  return text_numbers_.try_emplace(text, static_cast<int64_t>(text_numbers_.size()) + 1).first->second;
}

absl::Status MemoryStore::CheckWorkload(const Record& record) {
  const std::string& digest = record.key.workload_digest;
  const auto known = workloads_.find(digest);
  if (known == workloads_.end()) {
    if (record.workload_text.empty()) {
      return absl::FailedPreconditionError(
          fmt::format("workload {} is not stored yet, and the record has no workload text", digest));
    }
    workloads_[digest] = {static_cast<int64_t>(workloads_.size()) + 1, record.operator_label, record.workload_text,
                          record.flops};
    return absl::OkStatus();
  }
  if (record.workload_text.empty() || record.workload_text == known->second.text) return absl::OkStatus();
  if (Sha256Hex(record.workload_text) != digest) {
    return absl::FailedPreconditionError(fmt::format(
        "workload {} is stored with another text, and the text of the record does not have this digest", digest));
  }
  known->second = {known->second.number, record.operator_label, record.workload_text, record.flops};
  return absl::OkStatus();
}

absl::StatusOr<records::AppendReport> MemoryStore::Append(std::span<const Record> records) {
  const std::lock_guard lock(mutex_);
  records::AppendReport report;
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    absl::Status refused = Validate(record);
    if (refused.ok() && by_measurement_.contains(record.measurement_id)) {
      ++report.duplicates;
      continue;
    }
    if (refused.ok()) refused = CheckWorkload(record);
    if (!refused.ok()) {
      report.rejected.push_back({i, std::move(refused)});
      continue;
    }
    for (const std::string* text : {&record.key.target, &record.key.device_fingerprint, &record.key.compiler_version}) {
      NumberOf(*text);
    }
    by_measurement_[record.measurement_id] = ++last_row_;
    StoredRecord& stored = rows_[last_row_] = {last_row_, record};
    stored.record.operator_label.clear();
    stored.record.workload_text.clear();
    stored.record.flops = 0;
    if (auto* failure = std::get_if<records::Failure>(&stored.record.outcome)) {
      failure->text = records::CleanText(failure->text, kFailureTextBytesMax);
    }
    ++report.appended;
  }
  return report;
}

StoredRecord MemoryStore::Filled(const StoredRecord& row, bool with_text) const {
  StoredRecord filled = row;
  const Workload& workload = workloads_.at(row.record.key.workload_digest);
  filled.record.operator_label = workload.operator_label;
  filled.record.flops = workload.flops;
  if (with_text) filled.record.workload_text = workload.text;
  return filled;
}

bool MemoryStore::PassesKey(const Record& record, const Filter& filter) const {
  const auto passes = [](const std::string& wanted, const std::string& value) {
    return wanted.empty() || wanted == value;
  };
  const records::Key& key = record.key;
  const bool target =
      passes(filter.target, key.target) || (!filter.other_target.empty() && filter.other_target == key.target);
  return target && key.workload_digest.starts_with(filter.workload_digest) &&
         workloads_.at(key.workload_digest).operator_label.find(filter.operator_label) != std::string::npos &&
         passes(filter.device_fingerprint, key.device_fingerprint) &&
         passes(filter.compiler_version, key.compiler_version);
}

bool MemoryStore::PassesRow(const StoredRecord& stored, const Filter& filter) const {
  const auto* failure = std::get_if<records::Failure>(&stored.record.outcome);
  const auto* timing = std::get_if<records::Timing>(&stored.record.outcome);
  if (filter.outcomes == Filter::Outcomes::kTimed && failure != nullptr) return false;
  if (filter.outcomes == Filter::Outcomes::kFailed && failure == nullptr) return false;
  if (filter.failure.has_value() && (failure == nullptr || failure->kind != *filter.failure)) return false;
  if (filter.confirmed_only && (timing == nullptr || !timing->confirmed)) return false;
  if (!filter.model.empty() && filter.model != stored.record.model) return false;
  if (filter.after_row != 0 && stored.row <= filter.after_row) return false;
  return PassesKey(stored.record, filter);
}

std::map<KeyNumbers, MemoryStore::KeyRows> MemoryStore::KeysOf(const Filter& filter) const {
  std::map<KeyNumbers, KeyRows> keys;
  for (const auto& [row, stored] : rows_) {
    if (!PassesKey(stored.record, filter)) continue;
    const records::Key& key = stored.record.key;
    KeyRows& of_key = keys[{workloads_.at(key.workload_digest).number, text_numbers_.at(key.target),
                            text_numbers_.at(key.device_fingerprint), text_numbers_.at(key.compiler_version)}];
    of_key.key = key;
    of_key.rows.push_back(&stored);
  }
  return keys;
}

std::optional<BestRecord> MemoryStore::WinnerOf(const KeyRows& key) const {
  const std::optional<records::Winner> winner = records::FindWinner(ContendersOf(key.rows));
  if (!winner.has_value()) return std::nullopt;
  return BestRecord{Filled(*key.rows[winner->index], false), winner->seconds, winner->default_seconds,
                    winner->confirmed, static_cast<int64_t>(key.rows.size())};
}

absl::StatusOr<std::optional<BestRecord>> MemoryStore::Best(const records::Key& key) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [numbers, of_key] : KeysOf({})) {
    if (of_key.key == key) return WinnerOf(of_key);
  }
  return std::optional<BestRecord>();
}

absl::StatusOr<std::vector<BestRecord>> MemoryStore::AllBest(const Filter& filter) const {
  HONE_ASSIGN_OR_RETURN(records::BestPage page, BestPageAfter(filter, {}));
  records::SortForDisplay(page.best);
  if (page.best.size() > filter.limit) page.best.resize(filter.limit);
  return std::move(page.best);
}

absl::StatusOr<records::BestPage> MemoryStore::BestPageAfter(const Filter& filter, const KeyNumbers& after) const {
  const std::lock_guard lock(mutex_);
  records::BestPage page;  // this page has all winners, so `next` stays empty
  for (const auto& [numbers, key] : KeysOf(filter)) {
    if (numbers <= after) continue;
    if (std::optional<BestRecord> winner = WinnerOf(key); winner.has_value()) page.best.push_back(*std::move(winner));
  }
  return page;
}

absl::StatusOr<records::Stats> MemoryStore::Summarize() const {
  const std::lock_guard lock(mutex_);
  records::Stats stats;
  for (const FailureKind kind : kAllFailureKinds) stats.failed[kind] = 0;
  std::set<std::string> workloads, devices;
  for (const auto& [row, stored] : rows_) {
    workloads.insert(stored.record.key.workload_digest);
    devices.insert(stored.record.key.device_fingerprint);
    if (const auto* failure = std::get_if<records::Failure>(&stored.record.outcome)) ++stats.failed[failure->kind];
  }
  stats.records = static_cast<int64_t>(rows_.size());
  stats.workloads = static_cast<int64_t>(workloads.size());
  stats.devices = static_cast<int64_t>(devices.size());
  return stats;
}

absl::StatusOr<records::Page> MemoryStore::Query(const Filter& filter) const {
  const std::lock_guard lock(mutex_);
  PageFiller page(filter);
  for (const auto& [row, stored] : rows_) {
    if (PassesRow(stored, filter) && !page.Add(Filled(stored, filter.with_workload_text))) break;
  }
  return page.Take();
}

absl::StatusOr<records::Page> MemoryStore::Newest(const Filter& filter, int64_t before_row) const {
  const std::lock_guard lock(mutex_);
  PageFiller page(filter);
  for (auto it = std::make_reverse_iterator(rows_.lower_bound(before_row)); it != rows_.rend(); ++it) {
    if (PassesRow(it->second, filter) && !page.Add(Filled(it->second, filter.with_workload_text))) break;
  }
  return page.Take();
}

absl::StatusOr<std::vector<StoredRecord>> MemoryStore::Sample(const Filter& filter, size_t rows,
                                                              const std::string& measured_by) const {
  const std::lock_guard lock(mutex_);
  std::vector<const StoredRecord*> fitting;
  for (const auto& [row, stored] : rows_) {
    if (!PassesRow(stored, filter) || (!measured_by.empty() && stored.record.measured_by != measured_by)) continue;
    fitting.push_back(&stored);
  }
  std::vector<StoredRecord> sampled;
  if (fitting.empty() || rows == 0) return sampled;
  const int64_t first = fitting.front()->row, last = fitting.back()->row;
  const double step = static_cast<double>(last - first) / static_cast<double>(std::max<size_t>(1, rows - 1));
  for (const StoredRecord* row : fitting) {
    const auto wanted = first + static_cast<int64_t>(step * static_cast<double>(sampled.size()));
    if (!sampled.empty() && row->row < wanted) continue;
    sampled.push_back(Filled(*row, false));
    if (sampled.size() == rows) break;
  }
  return sampled;
}

absl::StatusOr<std::string> MemoryStore::WorkloadText(std::string_view digest) const {
  const std::lock_guard lock(mutex_);
  const auto known = workloads_.find(std::string(digest));
  if (known == workloads_.end()) return absl::NotFoundError(fmt::format("{} has no workload {}", name(), digest));
  return known->second.text;
}

absl::StatusOr<records::PruneReport> MemoryStore::Prune(
    const Filter& filter, const records::PruneRule& given, bool remove,
    const std::function<void(const records::PruneReport& so_far)>& progress) {
  const std::lock_guard lock(mutex_);
  records::PruneRule rule = given;
  rule.keep_row = rows_.empty() ? 0 : rows_.rbegin()->first;
  records::PruneReport report;
  for (const auto& [numbers, key] : KeysOf(filter)) {
    const std::vector<size_t> prunable = Prunable(ContendersOf(key.rows), rule);
    report.rows += static_cast<int64_t>(key.rows.size());
    report.prunable += static_cast<int64_t>(prunable.size());
    report.keys += 1;
    report.keys_prunable += prunable.empty() ? 0 : 1;
    for (const size_t index : prunable) {
      if (!remove) break;
      const StoredRecord& row = *key.rows[index];
      by_measurement_.erase(row.record.measurement_id);
      rows_.erase(row.row);
    }
    if (progress) progress(report);
  }
  return report;
}

absl::Status MemoryStore::ForEachRow(const std::function<void(const absl::StatusOr<StoredRecord>&)>& visit) const {
  std::vector<StoredRecord> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [row, stored] : rows_) all.push_back(Filled(stored, false));
  }
  for (const StoredRecord& each : all) visit(each);
  return absl::OkStatus();
}

}  // namespace hone::storage
