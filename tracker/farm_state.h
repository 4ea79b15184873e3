// SPDX-License-Identifier: Apache-2.0
// What of the farm survives a restart besides records: jobs, drained agents, the health of devices, when it was
// started, and its id. One small SQLite file, which one tracker at a time has open.
//
// Leases, batches and agents are not here on purpose: after a restart agents register again and tuners submit their
// open batches again (proto/hone/v1/tuner.proto). What a job asks for is written once; where it stands is a row of its
// own. Not thread-safe: one thread at a time. Start at Open.
#ifndef HONE_TRACKER_FARM_STATE_H_
#define HONE_TRACKER_FARM_STATE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/job.pb.h"
#include "records/database.h"

namespace hone::tracker {

// A job as it is stored.
struct StoredJob {
  std::string spec;   // a serialized JobSpec; empty: the one that is stored stays
  std::string state;  // a serialized Job without its spec
};
StoredJob ToStored(const v1::Job& job, bool with_spec);

// What is to be written. Later changes can be laid over earlier ones.
struct StateChanges {
  std::map<std::string, std::optional<StoredJob>> jobs;       // by id; empty: forget it
  std::map<std::string, std::optional<std::string>> drained;  // agent id to reason; empty: drained no more
  std::map<std::string, std::optional<std::string>> health;   // device to a serialized HealthRecord; empty: forget it

  bool empty() const { return jobs.empty() && drained.empty() && health.empty(); }
  void Add(StateChanges later);
};

extern const records::DatabaseKind kFarmStateFile;

class FarmState {
 public:
  // Creates the file where missing. now: what this start is told by, so that one that goes on from an older copy of the
  // file is not taken for one that came after that copy.
  // kFailedPrecondition: another process has it, or a newer Hone wrote it. kDataLoss: the file is damaged.
  static absl::StatusOr<FarmState> Open(const std::filesystem::path& path, absl::Time now);

  // Minutes since 1970, or one more than at the start before where that is more.
  uint64_t incarnation() const { return incarnation_; }
  // The latest time of any start, this one among them: no clock that is right is behind it.
  absl::Time latest_start() const { return latest_start_; }
  // Random, the same for as long as the file exists: what two farms measured has different ids wherever it meets.
  const std::string& farm_id() const { return farm_id_; }
  // A secret, the same for as long as the file exists: see tracker/queue/receipt.h.
  const std::string& receipt_key() const { return receipt_key_; }

  // All jobs, the oldest first. One that cannot be read is set aside: what was stored of it goes to the table
  // damaged_jobs, and in its place is a failed job that says so.
  absl::StatusOr<std::vector<v1::Job>> TakeJobs(absl::Time now);
  absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Drained() const;  // agent id, reason
  absl::StatusOr<std::map<std::string, v1::HealthRecord>> Health() const;            // by name of the device

  // All of it in one transaction, and on the disk when it returns; else nothing.
  absl::Status Save(const StateChanges& changes);

 private:
  explicit FarmState(records::Writer file) : file_(std::make_unique<records::Writer>(std::move(file))) {}
  const records::Connection& connection() const { return file_->connection; }
  absl::Status Start(absl::Time now);
  absl::Status SaveDrained(const StateChanges& changes) const;
  absl::Status SaveHealth(const StateChanges& changes) const;

  std::unique_ptr<records::Writer> file_;
  uint64_t incarnation_ = 0;
  absl::Time latest_start_;
  std::string farm_id_, receipt_key_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_FARM_STATE_H_
