// SPDX-License-Identifier: Apache-2.0
// The audit log of a farm in memory, for tests: storage/audit_store.h says what each member does.
#ifndef HONE_STORAGE_MEMORY_AUDIT_STORE_H_
#define HONE_STORAGE_MEMORY_AUDIT_STORE_H_

#include <vector>

#include "storage/audit_store.h"

namespace hone::storage {

class MemoryAuditStore final : public AuditStore {
 public:
  absl::Status Append(const AuditRow& row, std::optional<int64_t> kept) override;
  absl::StatusOr<std::vector<AuditRow>> Newest(int64_t limit) const override;

 private:
  int64_t last_number_ = 0;
  std::vector<AuditRow> rows_;  // the oldest first
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_MEMORY_AUDIT_STORE_H_
