// SPDX-License-Identifier: Apache-2.0
// The state of the farm that survives a restart, besides records: jobs, fleet watches, drained agents, the health of
// devices, and the identity of the farm. It reads the rows of a storage::FarmStore as messages.
//
// A job that cannot be read is set aside, and never keeps a tracker from starting. Leases, batches and agents are not
// stored: after a restart agents register again and tuners submit their open batches again (proto/hone/v1/tuner.proto).
// Threads: one at a time. Start at Open.
#ifndef HONE_TRACKER_FARM_STATE_H_
#define HONE_TRACKER_FARM_STATE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/fleet_watch.pb.h"
#include "hone/v1/job.pb.h"
#include "storage/farm_store.h"

namespace hone::tracker {

using storage::StateChanges;
using storage::StoredJob;
using storage::ToStored;

class FarmState {
 public:
  // Opens the state file, creates it if it is missing, and begins a run at `now`. Errors as storage::OpenFarm.
  static absl::StatusOr<FarmState> Open(const std::filesystem::path& path, absl::Time now);
  static absl::StatusOr<FarmState> BeginRun(std::unique_ptr<storage::FarmStore> store, absl::Time now);

  // Minutes since 1970, or one more than in the run before if that is larger. A tracker that resumes from an older copy
  // of the file so differs from those that ran after the copy was made.
  uint64_t incarnation() const { return run_.incarnation; }
  // The latest start time of any run, this one included: a clock that shows an earlier time is wrong.
  absl::Time latest_start() const { return run_.latest_start; }
  // Random, and the same as long as the file exists. It makes the ids of measurements unique among farms.
  const std::string& farm_id() const { return run_.farm_id; }
  // A secret, the same as long as the file exists: see tracker/queue/receipt.h.
  const std::string& receipt_key() const { return run_.receipt_key; }

  // All jobs, the oldest first. Readable jobs stay stored as they are. The bytes of a job that cannot be read move to
  // the table damaged_jobs; a failed job that says so takes its place. A second call returns the same.
  absl::StatusOr<std::vector<v1::Job>> TakeJobs(absl::Time now);
  // Agent id and reason of each drained agent.
  absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Drained() const { return store_->Drained(); }
  // By name of the device. A record that cannot be read is left out and logged.
  absl::StatusOr<std::map<std::string, v1::HealthRecord>> Health() const;
  // By name. What cannot be read is logged and left out: a watch as a whole, or the nights of one of its devices.
  absl::StatusOr<std::vector<v1::FleetWatch>> Watches() const;

  // Writes all changes in one transaction, which is on the disk when it returns. On an error nothing is written.
  absl::Status Save(const StateChanges& changes) { return store_->Save(changes); }

 private:
  FarmState(std::unique_ptr<storage::FarmStore> store, storage::FarmRun run)
      : store_(std::move(store)), run_(std::move(run)) {}

  std::unique_ptr<storage::FarmStore> store_;
  storage::FarmRun run_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_FARM_STATE_H_
