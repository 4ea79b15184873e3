// What of the farm survives a restart besides records: jobs, drained agents, the health of devices, when it was
// started, and its id. One small SQLite file.
//
// Leases, batches and agents are not here on purpose: after a restart agents register again and tuners submit their
// open batches again (proto/hone/v1/tuner.proto). Not thread-safe: Shell guards it.
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
#include "hone/v1/job.pb.h"
#include "records/sqlite.h"

namespace hone::tracker {

class FarmState {
 public:
  // Creates the file where missing. now: what this start is told by, so that one that goes on from an older copy of the
  // file is not taken for one that came after that copy.
  static absl::StatusOr<FarmState> Open(const std::filesystem::path& path, absl::Time now);

  // Minutes since 1970, or one more than at the start before where that is more.
  uint64_t incarnation() const { return incarnation_; }
  // Random, the same for as long as the file exists: what two farms measured has different ids wherever it meets.
  const std::string& farm_id() const { return farm_id_; }
  // A secret, the same for as long as the file exists: see tracker/queue/receipt.h.
  const std::string& receipt_key() const { return receipt_key_; }
  absl::StatusOr<std::vector<v1::Job>> Jobs() const;
  absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Drained() const;  // agent id, reason

  absl::StatusOr<std::map<std::string, v1::HealthRecord>> Health() const;  // by name of the device

  // On the disk when they return.
  absl::Status Save(const std::vector<const v1::Job*>& jobs);
  absl::Status SaveHealth(const std::map<std::string, v1::HealthRecord>& changed);  // empty ones are forgotten
  absl::Status SaveDrained(const std::string& agent_id, const std::string& reason);
  absl::Status ForgetDrained(const std::string& agent_id);

 private:
  explicit FarmState(std::unique_ptr<records::Connection> connection) : connection_(std::move(connection)) {}
  std::unique_ptr<records::Connection> connection_;
  uint64_t incarnation_ = 0;
  std::string farm_id_, receipt_key_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_FARM_STATE_H_
