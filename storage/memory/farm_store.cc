// SPDX-License-Identifier: Apache-2.0
#include "storage/memory/farm_store.h"

#include <algorithm>

namespace hone::storage {

absl::StatusOr<FarmRun> MemoryFarmStore::BeginRun(absl::Time now) {
  incarnation_ = std::max(incarnation_ + 1, absl::ToUnixSeconds(now) / 60);
  latest_start_ = std::max(latest_start_, now);
  return FarmRun{static_cast<uint64_t>(incarnation_), latest_start_, farm_id_, receipt_key_};
}

void MemoryFarmStore::Put(const std::string& id, const StoredJob& job) {
  auto known = std::find_if(jobs_.begin(), jobs_.end(), [&](const JobRow& row) { return row.id == id; });
  if (known == jobs_.end() && job.spec.empty()) return;  // a state alone cannot make a new job
  if (known == jobs_.end()) known = jobs_.insert(jobs_.end(), {id, {}});
  if (!job.spec.empty()) known->job.spec = job.spec;
  known->job.state = job.state;
}

absl::Status MemoryFarmStore::SetAside(std::span<const DamagedJob> damaged, absl::Time /*now*/) {
  for (const DamagedJob& each : damaged) {
    for (JobRow& row : jobs_) {
      if (row.id == each.id) row.job = {"", each.state};
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> MemoryFarmStore::Drained() const {
  return std::vector<std::pair<std::string, std::string>>(drained_.begin(), drained_.end());
}

absl::Status MemoryFarmStore::Save(const StateChanges& changes) {
  for (const auto& [id, job] : changes.jobs) {
    if (job.has_value()) {
      Put(id, *job);
    } else {
      std::erase_if(jobs_, [&](const JobRow& row) { return row.id == id; });
    }
  }
  const auto save = [](const auto& from, auto& to) {
    for (const auto& [key, value] : from) {
      if (value.has_value()) {
        to[key] = *value;
      } else {
        to.erase(key);
      }
    }
  };
  save(changes.drained, drained_);
  save(changes.health, health_);
  save(changes.watches, watches_);
  return absl::OkStatus();
}

}  // namespace hone::storage
