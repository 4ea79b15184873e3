// SPDX-License-Identifier: Apache-2.0
// The agent's folder of results that the tracker has not acknowledged yet. It saves measuring a batch again after the
// agent, the tracker or the machine was restarted.
//
// Each result is a file, which appears under its name only when it is complete. Beyond the limits the oldest results
// are removed, and the log says so. If the disk is full, SyncLoop keeps results in memory only. Not thread-safe:
// SyncLoop guards it.
#ifndef HONE_DEVICE_AGENT_AGENT_OUTBOX_H_
#define HONE_DEVICE_AGENT_AGENT_OUTBOX_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hone/v1/agent.pb.h"

namespace hone::agent {

class Outbox {
 public:
  struct Limits {
    size_t results = 4096;  // enough for a night of a busy board without its tracker
    int64_t bytes = int64_t{256} << 20;
  };

  // Opens `folder`. A missing folder is created, without access for other users.
  static absl::StatusOr<Outbox> Open(std::filesystem::path folder, Limits limits);
  static absl::StatusOr<Outbox> Open(std::filesystem::path folder) { return Open(std::move(folder), Limits()); }

  // All results, by lease id. A file that cannot be parsed is renamed to NAME.broken.
  std::map<std::string, v1::LeaseResult> Read() const;
  // Writes the result; it is on the disk when this returns OK. kInvalidArgument: the lease id cannot be a file name.
  absl::Status StoreResult(const v1::LeaseResult& result);
  void Forget(const std::string& lease_id);

 private:
  Outbox(std::filesystem::path folder, Limits limits) : folder_(std::move(folder)), limits_(limits) {}
  // Returns the time of the newest file; the smallest time if there is none.
  std::filesystem::file_time_type EvictOldest(int64_t bytes) const;

  std::filesystem::path folder_;
  Limits limits_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_OUTBOX_H_
