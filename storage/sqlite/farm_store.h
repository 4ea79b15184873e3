// SPDX-License-Identifier: Apache-2.0
// The state file of a farm in SQLite; storage/farm_store.h says what each member does. One tracker at a time has it
// open.
#ifndef HONE_STORAGE_SQLITE_FARM_STORE_H_
#define HONE_STORAGE_SQLITE_FARM_STORE_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/farm_store.h"
#include "storage/sqlite/database.h"

namespace hone::storage {

extern const DatabaseKind kFarmStateFile;

class SqliteFarmStore final : public FarmStore {
 public:
  static absl::StatusOr<std::unique_ptr<SqliteFarmStore>> Open(const std::filesystem::path& path);

  absl::StatusOr<FarmRun> BeginRun(absl::Time now) override;
  absl::StatusOr<std::vector<JobRow>> Jobs() const override;
  absl::Status SetAside(std::span<const DamagedJob> damaged, absl::Time now) override;
  absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Drained() const override;
  absl::StatusOr<std::map<std::string, std::string>> Health() const override;
  absl::StatusOr<std::map<WatchKey, std::string>> Watches() const override;
  absl::Status Save(const StateChanges& changes) override;

 private:
  explicit SqliteFarmStore(Writer file) : file_(std::move(file)) {}
  absl::Status SaveDrained(const StateChanges& changes) const;
  absl::Status SaveHealth(const StateChanges& changes) const;
  absl::Status SaveWatches(const StateChanges& changes) const;

  const Writer file_;
  const Connection& connection_ = file_.connection;
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_SQLITE_FARM_STORE_H_
