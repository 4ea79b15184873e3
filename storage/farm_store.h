// SPDX-License-Identifier: Apache-2.0
// Where a tracker keeps its farm across restarts: jobs, drained agents, health of devices, fleet watches,
// starts, id and receipt key.
//
// FarmStore is an interface of rows: it knows no state of a job. tracker/farm_state.h gives the rows their meaning.
// Leases and batches are not stored: after a restart agents register again and tuners submit their open batches again.
// storage/sqlite/farm_store.h keeps the rows in an SQLite file, storage/memory/farm_store.h in memory for tests; both
// pass tests/unit/storage/state_conformance_test.cc. Threads: one at a time. Start at BeginRun and Save.
#ifndef HONE_STORAGE_FARM_STORE_H_
#define HONE_STORAGE_FARM_STORE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/job.pb.h"

namespace hone::storage {

// A job as it is stored. The specification may be large and never changes; the state is written every few seconds.
struct StoredJob {
  std::string spec;   // a serialized JobSpec; empty in a change: the stored one stays
  std::string state;  // a serialized Job without its spec
};
// with_spec false leaves `spec` empty.
StoredJob ToStored(const v1::Job& job, bool with_spec);

struct JobRow {
  std::string id;
  StoredJob job;
};

// A stored job that could not be read. Its bytes are kept for a person, and `state` takes its place among the jobs.
struct DamagedJob {
  std::string id, why;
  StoredJob found;
  std::string state;  // a serialized Job without its spec
};

// A row of a fleet watch: its name and one of its devices. The device "" is the watch itself.
using WatchKey = std::pair<std::string, std::string>;

// Changes to write. Later changes can be laid over earlier ones.
struct StateChanges {
  std::map<std::string, std::optional<StoredJob>> jobs;       // by job id; empty: forget the job
  std::map<std::string, std::optional<std::string>> drained;  // agent id to reason; empty: the agent is not drained
  std::map<std::string, std::optional<std::string>> health;   // device to a serialized HealthRecord; empty: forget it

  // To a serialized FleetWatch without devices, or FleetWatchDevice; empty: forget it.
  std::map<WatchKey, std::optional<std::string>> watches;

  bool empty() const { return jobs.empty() && drained.empty() && health.empty() && watches.empty(); }
  void Add(StateChanges later);
};

// One run of a tracker over this store.
struct FarmRun {
  uint64_t incarnation = 0;  // larger than that of every earlier run: max(earlier + 1, minutes since 1970)
  absl::Time latest_start;   // the latest start time of any run, this one included
  std::string farm_id;       // 16 random hexadecimal digits, made with the store
  std::string receipt_key;   // 64 random hexadecimal digits, made with the store; a secret
};

class FarmStore {
 public:
  virtual ~FarmStore() = default;

  // Every member that changes something does all of it in one transaction, which is on the disk when it returns; on an
  // error nothing changed.

  // Notes that a tracker starts at `now`. Runs are told apart by a counter and not by a time, because clocks step back.
  virtual absl::StatusOr<FarmRun> BeginRun(absl::Time now) = 0;

  virtual absl::StatusOr<std::vector<JobRow>> Jobs() const = 0;  // the oldest first
  // Stores the bytes of damaged jobs apart, with `now`. Each job then has an empty spec and the state in DamagedJob.
  virtual absl::Status SetAside(std::span<const DamagedJob> damaged, absl::Time now) = 0;

  virtual absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Drained() const = 0;  // agent id, reason
  virtual absl::StatusOr<std::map<std::string, std::string>> Health() const = 0;  // device, serialized HealthRecord

  virtual absl::StatusOr<std::map<WatchKey, std::string>> Watches() const = 0;  // as StateChanges::watches

  virtual absl::Status Save(const StateChanges& changes) = 0;
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_FARM_STORE_H_
