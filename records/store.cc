// SPDX-License-Identifier: Apache-2.0
#include "records/store.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace hone::records {
namespace {

// Rows that Visit reads as one page.
constexpr size_t kVisitRows = 1000;
// The same for one workload: each page sorts all rows of the workload, so fewer and larger pages are faster.
constexpr size_t kVisitRowsOfWorkload = 20'000;

}  // namespace

size_t ApproximateBytes(const Record& record) {
  const auto* timing = std::get_if<Timing>(&record.outcome);
  const auto* failure = std::get_if<Failure>(&record.outcome);
  constexpr size_t kNumbers = 200;
  return kNumbers + record.key.workload_digest.size() + record.key.target.size() +
         record.key.device_fingerprint.size() + record.key.compiler_version.size() + record.measurement_id.size() +
         record.batch_id.size() + record.schedule.size() + record.decisions.size() + record.operator_label.size() +
         record.workload_text.size() + record.environment.size() + record.measured_by.size() +
         (timing != nullptr ? timing->seconds.size() * sizeof(double) : 0) +
         (failure != nullptr ? failure->text.size() : 0);
}

absl::StatusOr<std::optional<NearestRecord>> Store::BestAnyDevice(const Key& key) const {
  HONE_ASSIGN_OR_RETURN(std::vector<BestRecord> winners,
                        AllBest({.workload_digest = key.workload_digest, .target = key.target}));
  return Nearest(key, std::move(winners));
}

absl::StatusOr<int64_t> Store::Visit(const Filter& given,
                                     const std::function<absl::Status(const StoredRecord&)>& visit) const {
  const size_t most = given.workload_digest.empty() ? kVisitRows : kVisitRowsOfWorkload;
  Filter filter = given;
  int64_t unreadable = 0;
  for (size_t left = given.limit; left > 0;) {
    filter.limit = std::min(left, most);
    HONE_ASSIGN_OR_RETURN(const Page page, Query(filter));
    for (const StoredRecord& stored : page.rows) HONE_RETURN_IF_ERROR(visit(stored));
    unreadable += page.unreadable;
    if (!page.more || page.rows.empty()) break;
    left -= page.rows.size();
    filter.after_row = page.rows.back().row;
  }
  return unreadable;
}

}  // namespace hone::records
