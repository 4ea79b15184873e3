// SPDX-License-Identifier: Apache-2.0
// The state of a farm in memory, for tests: storage/farm_store.h says what each member does. It ends with the object.
#ifndef HONE_STORAGE_MEMORY_FARM_STORE_H_
#define HONE_STORAGE_MEMORY_FARM_STORE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "storage/farm_store.h"

namespace hone::storage {

class MemoryFarmStore final : public FarmStore {
 public:
  // farm_id and receipt_key are what BeginRun returns.
  MemoryFarmStore(std::string farm_id, std::string receipt_key)
      : farm_id_(std::move(farm_id)), receipt_key_(std::move(receipt_key)) {}

  absl::StatusOr<FarmRun> BeginRun(absl::Time now) override;
  absl::StatusOr<std::vector<JobRow>> Jobs() const override { return jobs_; }
  absl::Status SetAside(std::span<const DamagedJob> damaged, absl::Time now) override;
  absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Drained() const override;
  absl::StatusOr<std::map<std::string, std::string>> Health() const override { return health_; }
  absl::StatusOr<std::map<WatchKey, std::string>> Watches() const override { return watches_; }
  absl::Status Save(const StateChanges& changes) override;

 private:
  void Put(const std::string& id, const StoredJob& job);

  const std::string farm_id_, receipt_key_;
  int64_t incarnation_ = 0;  // of the latest run; 0: there was none
  absl::Time latest_start_ = absl::UnixEpoch();
  std::vector<JobRow> jobs_;  // the oldest first
  std::map<std::string, std::string> drained_, health_;
  std::map<WatchKey, std::string> watches_;
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_MEMORY_FARM_STORE_H_
