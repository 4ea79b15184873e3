// SPDX-License-Identifier: Apache-2.0
#include "storage/memory/audit_store.h"

#include <algorithm>

namespace hone::storage {
namespace {

bool IsOfMembership(const AuditRow& row) {
  return row.result == "ok" &&
         (row.role == "admin" || row.method == "JoinService/Join" || row.method == "IdentityService/RevokeIdentity");
}

}  // namespace

absl::Status MemoryAuditStore::Append(const AuditRow& row, std::optional<int64_t> kept) {
  rows_.push_back(row);
  rows_.back().number = ++last_number_;
  if (!kept.has_value()) return absl::OkStatus();
  for (const bool of_membership : {true, false}) {
    const auto of_sort = [&](const AuditRow& each) { return IsOfMembership(each) == of_membership; };
    int64_t excess = std::count_if(rows_.begin(), rows_.end(), of_sort) - *kept;
    std::erase_if(rows_, [&](const AuditRow& each) { return of_sort(each) && excess-- > 0; });
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<AuditRow>> MemoryAuditStore::Newest(int64_t limit) const {
  std::vector<AuditRow> newest(rows_.rbegin(), rows_.rend());
  if (static_cast<int64_t>(newest.size()) > limit) newest.resize(static_cast<size_t>(limit));
  return newest;
}

}  // namespace hone::storage
